"""What can be chosen about a client. Every bound says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from angarium.batch import Codec
from angarium.errors import InvalidArgument
from angarium.retrying import Backoff
from angarium.wire import WireLimits

if TYPE_CHECKING:
    from angarium.security.tls import TlsOptions

REMEMBERED_BATCHES: Final = 5
"""How many of a producer's last batches a partition answers with their offsets when they come
again. No more may be on their way, or a repeated one could be acknowledged without its offset."""

_POSITIVE: Final = (
    "publish_timeout_s",
    "request_timeout_s",
    "attempt_timeout_s",
    "dial_timeout_s",
    "close_timeout_s",
    "refresh_s",
    "discover_s",
    "batch_bytes",
    "batch_records_max",
    "batches_in_flight_max",
    "gather_from_in_flight",
    "buffered_bytes_max",
    "delivery_bytes_max",
    "fetch_bytes",
    "topics_max",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Times are seconds, sizes bytes. The defaults suit a cluster in one data centre."""

    publish_timeout_s: float = 30.0
    """From `publish` to its answer, all repetitions included. A record that may have been stored
    then fails with `OutcomeUnknown`, any other one with the last refusal."""

    request_timeout_s: float = 10.0
    """The same for every other call; a call that failed all along raises its last error."""

    attempt_timeout_s: float = 1.0
    """How long a node may take before the same request is sent again, elsewhere if the leader has
    changed. Doubles each time that it was too short, so that a slow cluster is not asked ever
    faster."""

    dial_timeout_s: float = 2.0
    """How long a node may take to accept a connection before it counts as unreachable."""

    close_timeout_s: float = 10.0
    """How long `close` waits for what is still to be published; what is left fails."""

    backoff: Backoff = field(default=Backoff(first_s=0.02, longest_s=0.5))
    """Pauses between repetitions."""

    batch_bytes: int = 256 * 1024
    """Records gather up to this size; a full batch is sent although others are on their way."""

    batch_records_max: int = 16_384
    """Records in one batch. One more begins the next batch."""

    batches_in_flight_max: int = REMEMBERED_BATCHES
    """Unanswered batches per partition. At the bound further records gather into the next ones."""

    gather_from_in_flight: int = 1
    """With so many unanswered batches in a partition, further records gather instead of leaving at
    once. More means smaller batches sooner, and more of them."""

    buffered_bytes_max: int = 64 * 1024 * 1024
    """What was published and is not answered yet. At the bound `publish` waits and
    `publish_nowait` raises `LimitExceeded`. One record may overdraw it."""

    delivery_bytes_max: int = 8 * 1024 * 1024
    """What a subscription has received and nobody has taken yet. At the bound it stops reading, and
    so the node stops sending. One delivery may overdraw it."""

    fetch_bytes: int = 1024 * 1024
    """How much one fetch asks for."""

    refresh_s: float = 30.0
    """How often addresses and leaders in use are asked for when nothing goes wrong."""

    discover_s: float = 5.0
    """How often a subscription looks for new partitions, for new topics of its patterns, and for
    leaders that have moved."""

    topics_max: int = 10_000
    """Topics whose leaders are remembered. At the bound the one learned first is forgotten, and
    asked for again when it is needed."""

    codec: Codec = Codec.NONE
    """How batches are compressed; nodes pass them on as they are."""

    idempotent: bool = True
    """Number batches, so that repeating one never stores it twice, and none overtakes another.
    Without it a publish whose outcome is unknown fails at once, and a batch that was refused and
    repeated may end up behind later ones."""

    waits_for_quota: bool = True
    """Where a node says that a quota is used up and when to come again, come again then, as long as
    the timeouts above allow it. Without it `QuotaExceeded` is raised at once."""

    region: str | None = None
    """Where this client is: it connects to nodes of that region first, reads from replicas there,
    and publishes to the partitions of homed topics that live there. "auto": the region whose nodes
    answer soonest. None: what ANGARIUM_REGION says. Without any it goes to leaders, wherever they
    are."""

    tls: TlsOptions | None = None
    """Whom to believe, and what to show: `TlsOptions(ca="ca.crt")`. None: what the environment says
    (ANGARIUM_TLS_CA, _CERT, _KEY, _SERVER_NAME); without any of it TLS is not spoken."""

    wire: WireLimits = field(default=WireLimits())

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise InvalidArgument(f"{name} is more than 0, not {getattr(self, name)}")
        if self.batches_in_flight_max > REMEMBERED_BATCHES:
            raise InvalidArgument(
                f"batches_in_flight_max is at most {REMEMBERED_BATCHES}, as many as a partition "
                f"remembers, not {self.batches_in_flight_max}"
            )
        if self.gather_from_in_flight > self.batches_in_flight_max:
            raise InvalidArgument(
                f"gather_from_in_flight is at most batches_in_flight_max "
                f"({self.batches_in_flight_max}), not {self.gather_from_in_flight}"
            )
