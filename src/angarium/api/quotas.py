"""How much a principal may use and create, and how much topics may hold: quotas.

A quota belongs to a user, to each who has a role, or to everybody else (the default), and limits
what one principal may do in the whole cluster; one of a topic prefix limits what is stored there.
The rows lie in the catalog beside the grants. `security.quotas` says what they come to,
`service.access` sees to it that they are kept.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class QuotaKind(StrEnum):
    """What is limited. The values are names of limits in errors and labels of metrics."""

    BYTES_IN = "bytes_in"
    BYTES_OUT = "bytes_out"
    REQUESTS = "requests"
    PUBLISHES = "publishes"
    CONNECTIONS = "connections"
    STORED_BYTES = "stored_bytes"
    TOPICS = "topics"
    PARTITIONS = "partitions"


ABOUT_KINDS: Final[Mapping[QuotaKind, str]] = {
    QuotaKind.BYTES_IN: "bytes published in a second, as packed in batches",
    QuotaKind.BYTES_OUT: "bytes read in a second: fetched, subscribed to, or lent by a group",
    QuotaKind.REQUESTS: "requests in a second, through any door",
    QuotaKind.PUBLISHES: "records published in a second, however they are batched",
    QuotaKind.CONNECTIONS: "connections and streams that are open at a time",
    QuotaKind.STORED_BYTES: "bytes that the topics under a prefix hold, one copy of each",
    QuotaKind.TOPICS: "topics that the principal has created and that still exist",
    QuotaKind.PARTITIONS: "partitions that it has created and that still exist",
}
"""What each of them counts."""

OF_PRINCIPALS: Final = tuple(one for one in QuotaKind if one is not QuotaKind.STORED_BYTES)
"""What the quota of a user, a role or the default may limit."""

CREATED: Final = (QuotaKind.TOPICS, QuotaKind.PARTITIONS)
"""Of those, what is counted for as long as it exists, by the catalog."""

USED: Final = tuple(one for one in OF_PRINCIPALS if one not in CREATED)
"""Of those, what is counted at the moment or in a second, by each node."""

UNLIMITED: Final = -1
"""As a limit: there is none, whatever the roles or the default say."""


class QuotaSubject(StrEnum):
    """Whose a quota is."""

    USER = "user"
    ROLE = "role"
    """What each who has the role may use, not all of them together."""
    DEFAULT = "default"
    """What everybody may use for whom nothing else is said; it has no name."""
    TOPIC = "topic"
    """A prefix of names of topics, ending at a boundary as those of grants do."""


class QuotaInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One quota."""

    subject_kind: QuotaSubject
    subject: str = ""
    limits: dict[QuotaKind, int]
    """What is limited to how much; `UNLIMITED`: not at all. What is not here is said elsewhere."""
    counts: tuple[CountedLimit, ...] = ()
    """Of a description: what counts in the end, and how much of it is used."""


class CountedLimit(msgspec.Struct, frozen=True, kw_only=True):
    """What counts for a principal, or for the topics under a prefix."""

    kind: QuotaKind
    limit: int | None
    """None: nothing limits it."""
    why: str = ""
    """Whose quota says so."""
    used: float = 0.0
    """In a second, or at the moment, as far as the node that was asked knows."""


class QuotaBroker(Protocol):
    """The part of the contract that is about quotas."""

    async def set_quota(
        self,
        subject_kind: QuotaSubject,
        subject: str,
        limits: Mapping[QuotaKind, int],
        *,
        cleared: Sequence[QuotaKind] = (),
    ) -> QuotaInfo:
        """Limit what is in `limits`, and say nothing any more of what is `cleared`; what else the
        quota says stays."""

    async def delete_quota(self, subject_kind: QuotaSubject, subject: str) -> None:
        """Say nothing any more; `NotFound`."""

    async def describe_quota(self, subject_kind: QuotaSubject, subject: str) -> QuotaInfo:
        """Return a quota, and of a user or a prefix what counts and what is used; about oneself
        everybody may ask."""

    async def list_quotas(self) -> tuple[QuotaInfo, ...]:
        """Return every quota."""
