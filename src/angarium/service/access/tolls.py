"""Tolls: what principals use of their quotas on this node, and how they are slowed down.

Backpressure comes first. Who is over its quota waits until the debt of what it did before is paid,
up to `DELAY_S_MAX`; what would have to wait longer is refused and told when to come again. Streams
are never refused for what they read: they wait. Nobody waits for somebody else: each principal has
a toll of its own, and who has no quota has none.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.api.access import Proof
from angarium.api.quotas import QuotaKind
from angarium.errors import QuotaExceeded
from angarium.security.quotas import RATES, Bucket
from angarium.security.shares import Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from angarium.api.access import Principal
    from angarium.security.quotas import Limit
    from angarium.telemetry.throttling import ThrottleMeters

    Cost: TypeAlias = tuple[QuotaKind, float]

DELAY_S_MAX: Final = 1.0
"""How long somebody over its quota is made to wait. What would wait longer is refused."""

WAITING_MAX: Final = 1_024
"""Publishes of one principal that wait. One more is refused."""

TOLLS_MAX: Final = 4_096
"""Principals whose use is remembered. At the bound the one that came longest ago is forgotten."""

LOOK_S: Final = 0.5
"""How long a stream waits before it looks again: its quota may have been raised meanwhile."""

IDLE_RATE: Final = 0.01
"""Who uses less in a second uses nothing."""

FRESH: Final = 0.5
"""The part of a measured rate that comes from the last look; the rest is what was before."""

PUBLISHED: Final = (QuotaKind.BYTES_IN, QuotaKind.PUBLISHES)
INWARDS: Final = (QuotaKind.REQUESTS, QuotaKind.BYTES_IN, QuotaKind.PUBLISHES)
"""What the other side of a connection sends us."""


class Toll:
    """What one principal uses on this node. Times are those of `clock`."""

    def __init__(self, name: str, meters: ThrottleMeters, clock: Callable[[], float]) -> None:
        self.name = name
        self.limits: Mapping[QuotaKind, Limit] = {}
        """Of the whole cluster."""
        self.connections_elsewhere = 0
        """At other nodes, as of the last time they told."""
        self._meters = meters
        self._clock = clock
        self._buckets: dict[QuotaKind, Bucket] = {}
        """For what may be used here: a share of the limits."""
        self._used = dict.fromkeys(RATES, 0.0)
        self._pressed: set[QuotaKind] = set()
        self._uses: dict[QuotaKind, Use] = dict.fromkeys(RATES, Use())
        self._waiting = 0
        self._last: asyncio.Future[None] | None = None
        """Done when the last one that waits has gone."""

    def set_limits(self, limits: Mapping[QuotaKind, Limit], *, nodes: int = 1) -> None:
        """Let other limits count from now on; debts and shares stay.

        What was not limited before begins with an equal share, of so many nodes.
        """
        before, self.limits, now = self.limits, limits, self._clock()
        for kind in RATES:
            limit = limits.get(kind)
            if limit is None:
                self._buckets.pop(kind, None)
                continue
            bucket, known = self._buckets.get(kind), before.get(kind)
            if bucket is None or known is None:
                self._buckets[kind] = Bucket(limit.amount / nodes, now)
            elif known.amount != limit.amount:
                bucket.set_rate(bucket.rate * limit.amount / known.amount, now)

    # --- inwards ------------------------------------------------------------------------------

    def take_request(self) -> float:
        """Count a request; return for how long nothing more is to be taken from the other side.

        Raises `QuotaExceeded`.
        """
        self._admit(((QuotaKind.REQUESTS, 1),), is_counted=False)
        return self.rest_s()

    async def admit_request(self) -> None:
        """Count a request, and wait until it may go; raises `QuotaExceeded`."""
        wait_s = self._admit(((QuotaKind.REQUESTS, 1),))
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def begin_request(self) -> float:
        """Count a request, and return how long it has to wait; raises `QuotaExceeded`."""
        return self._admit(((QuotaKind.REQUESTS, 1),))

    def rest_s(self) -> float:
        """Return for how long nothing more is to be taken from a connection."""
        wait_s, kind = self._debt(INWARDS)
        if wait_s <= 0:
            return 0.0
        rest_s = min(wait_s, DELAY_S_MAX)
        self._note_wait(kind, rest_s)
        return rest_s

    def must_wait(self) -> bool:
        """Tell whether a publish would have to wait now."""
        return self._waiting > 0 or self._debt(PUBLISHED)[0] > 0

    def take_publish(self, size: int, records: int) -> None:
        """Charge a publish that goes at once; raises `QuotaExceeded`.

        Whoever sent it is kept from sending more for `rest_s`.
        """
        self._admit(_costs(size, records), is_counted=False)

    async def pay_publish(self, size: int, records: int) -> None:
        """Charge a publish, and wait until it may go, behind those who wait already; raises
        `QuotaExceeded`."""
        if self._waiting >= WAITING_MAX:
            raise self._refusal(self._debt(PUBLISHED)[1], DELAY_S_MAX)
        wait_s = self._admit(_costs(size, records))
        if wait_s <= 0 and self._last is None:
            return
        before = self._last
        mine = self._last = asyncio.get_running_loop().create_future()
        self._waiting += 1
        try:
            await asyncio.sleep(wait_s)
            if before is not None:
                # Debts only grow, so it has gone already but for the precision of timers. Records
                # of one producer must not overtake each other.
                await asyncio.wait((before,))
        finally:
            self._waiting -= 1
            mine.set_result(None)
            if self._last is mine:
                self._last = None

    def take_back(self, size: int, records: int) -> None:
        """Take back the charge for a publish that came to nothing and will be tried again."""
        for kind, amount in _costs(size, records):
            self._used[kind] -= amount
            bucket = self._buckets.get(kind)
            if bucket is not None:
                bucket.give_back(amount)

    # --- outwards -----------------------------------------------------------------------------

    def read(self, size: int) -> None:
        """Count bytes that are handed out."""
        self._charge(QuotaKind.BYTES_OUT, size, self._clock())

    async def until_paid(self) -> None:
        """Wait until more may be handed out; for streams, which wait as long as it takes."""
        wait_s, kind = self._debt((QuotaKind.BYTES_OUT,))
        while wait_s > 0:
            pause_s = min(wait_s, LOOK_S)
            self._note_wait(kind, pause_s)
            await asyncio.sleep(pause_s)
            wait_s, kind = self._debt((QuotaKind.BYTES_OUT,))

    async def before_reading(self) -> None:
        """Wait until something may be read; raises `QuotaExceeded`."""
        wait_s = self._admit(((QuotaKind.BYTES_OUT, 0),))
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    # --- connections --------------------------------------------------------------------------

    def check_connections(self, here: int) -> None:
        """Raise `QuotaExceeded` if there are as many as there may be; `here` are open here."""
        limit = self.limits.get(QuotaKind.CONNECTIONS)
        if limit is not None and here + self.connections_elsewhere >= limit.amount:
            raise self._refusal(QuotaKind.CONNECTIONS, DELAY_S_MAX)

    # --- shares -------------------------------------------------------------------------------

    def measure(self, elapsed_s: float) -> Mapping[QuotaKind, Use]:
        """Return what was used in a second lately; `elapsed_s` is how long ago it was asked."""
        for kind in RATES:
            before = self._uses[kind].rate
            rate = FRESH * self._used[kind] / elapsed_s + (1 - FRESH) * before
            self._used[kind] = 0.0
            self._uses[kind] = Use(max(rate, 0.0), kind in self._pressed)
        self._pressed.clear()
        return self._uses

    @property
    def uses(self) -> Mapping[QuotaKind, Use]:
        """What was measured last."""
        return self._uses

    @property
    def is_used(self) -> bool:
        """Whether anything was used lately, or wanted."""
        return any(one.is_pressed or one.rate >= IDLE_RATE for one in self._uses.values())

    def set_share(self, kind: QuotaKind, rate: float) -> None:
        """Let so much a second be used here."""
        bucket = self._buckets.get(kind)
        if bucket is not None and rate > 0:
            bucket.set_rate(rate, self._clock())

    def share(self, kind: QuotaKind) -> float | None:
        """Return how much a second may be used here; None: as much as there is."""
        bucket = self._buckets.get(kind)
        return None if bucket is None else bucket.rate

    # --- inside -------------------------------------------------------------------------------

    def _admit(self, costs: tuple[Cost, ...], *, is_counted: bool = True) -> float:
        """Charge what somebody is about to do; return how long it has to wait."""
        wait_s, kind = self._debt(kind for kind, _ in costs)
        if wait_s > DELAY_S_MAX:
            raise self._refusal(kind, wait_s)
        now = self._clock()
        for what, amount in costs:
            self._charge(what, amount, now)
        if wait_s > 0 and is_counted:
            self._note_wait(kind, wait_s)
        return wait_s

    def _charge(self, kind: QuotaKind, amount: float, now: float) -> None:
        self._used[kind] += amount
        bucket = self._buckets.get(kind)
        if bucket is not None:
            bucket.take(amount, now)

    def _debt(self, kinds: Iterable[QuotaKind]) -> tuple[float, QuotaKind]:
        """Return how long until no debt is left, and of what that is the longest."""
        longest, of, now = 0.0, QuotaKind.REQUESTS, self._clock()
        for kind in kinds:
            bucket = self._buckets.get(kind)
            wait_s = 0.0 if bucket is None else bucket.wait_s(now)
            if wait_s > longest:
                longest, of = wait_s, kind
        return longest, of

    def _note_wait(self, kind: QuotaKind, seconds: float) -> None:
        self._pressed.add(kind)
        self._meters.waits(kind, seconds)

    def _refusal(self, kind: QuotaKind, wait_s: float) -> QuotaExceeded:
        self._pressed.add(kind)
        self._meters.refuses(kind)
        limit = self.limits.get(kind)
        what = "its quota"
        if limit is not None:
            each = "" if kind is QuotaKind.CONNECTIONS else " a second"
            what = f"{limit.amount}{each} ({limit.why})"
        return QuotaExceeded(
            kind.value,
            f"{self.name!r} has used up {what}; try again in {wait_s:.1f} s",
            retry_after=round(wait_s, 3),
        )


class Tolls:
    """The tolls of all principals that have a quota."""

    def __init__(self, meters: ThrottleMeters, clock: Callable[[], float] = time.monotonic) -> None:
        self.meters = meters
        self.nodes = 1
        """How many share the limits, as of the last look."""
        self._clock = clock
        self._tolls: dict[str, Toll] = {}

    def __len__(self) -> int:
        return len(self._tolls)

    def of(self, principal: Principal, limits: Mapping[QuotaKind, Limit]) -> Toll | None:
        """Return the toll of a principal with these limits; None without any."""
        key = key_of(principal)
        toll = self._tolls.pop(key, None)
        if not limits:
            return None
        if toll is None:
            if len(self._tolls) >= TOLLS_MAX:
                del self._tolls[next(iter(self._tolls))]
            toll = Toll(principal.name, self.meters, self._clock)
        self._tolls[key] = toll
        toll.set_limits(limits, nodes=self.nodes)
        return toll

    def find(self, key: str) -> Toll | None:
        """Return the toll of whom nodes call so; None without a quota."""
        return self._tolls.get(key)

    def items(self) -> list[tuple[str, Toll]]:
        """Return all of them, by what nodes call their principals."""
        return list(self._tolls.items())


def key_of(principal: Principal) -> str:
    """Return what nodes call a principal: one user whatever its proof, and nobody else."""
    return f"{'jwt' if principal.proof is Proof.JWT else 'user'}:{principal.name}"


def _costs(size: int, records: int) -> tuple[Cost, ...]:
    return ((QuotaKind.BYTES_IN, size), (QuotaKind.PUBLISHES, records))
