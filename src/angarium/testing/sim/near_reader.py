"""A simulated consumer that reads from a node of its own region, and goes elsewhere if it must.

Every question names what it has seen, so that no other replica shows it less, and now and then what
somebody has just written, or how stale the answer may be.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from angarium.batch import Batch
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.testing.history import Fetch, Result
from angarium.testing.sim.burials import shown
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.requests import FetchReply, FetchRequest

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId
    from angarium.testing.sim.world import World

BOUNDS: Final = (None, 50 * MILLISECOND, 300 * MILLISECOND, 1_000 * MILLISECOND)
"""How stale an answer may be; one of these per question."""

SHARE_AFTER_A_WRITE: Final = 0.3
"""Questions that name the offset of a receipt."""

SHARE_ELSEWHERE: Final = 0.2
"""Questions that go to any node, as they do when the nearest one does not answer."""

THINK: Final = 80 * MILLISECOND
BYTES_MAX: Final = 2_000


class NearReader:
    """Reads every partition, each from where it has come to."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world = world
        self.name = f"near-reader-{number}"
        self.active = True
        self._rng = random.Random(seed)
        self._number = 0
        self._pending: dict[int, tuple[FetchRequest, int]] = {}
        self._next: dict[RaftGroupId, int] = {}
        self._seen: dict[RaftGroupId, int] = {}
        """Up to where it was shown each log to go."""

    def start(self) -> None:
        """Begin to read."""
        self.world.scheduler.after(self._rng.randrange(THINK), self._ask)

    def _ask(self) -> None:
        if not self.active:
            return
        rng, group = self._rng, self._rng.choice(self.world.groups)
        self._number += 1
        at_least = self._seen.get(group, 0)
        if rng.random() < SHARE_AFTER_A_WRITE:
            at_least = max(at_least, self._last_write(group))
        request = FetchRequest(
            self.name,
            self._number,
            group,
            Offset(self._next.get(group, 0)),
            BYTES_MAX,
            at_least,
            rng.choice(BOUNDS),
        )
        self._pending[self._number] = (request, self.world.scheduler.now)
        target = f"node-{self._target(group)}"
        self.world.network.send_once(self.name, target, request)
        self.world.scheduler.after(rng.randrange(1, THINK), self._ask)

    def _target(self, group: RaftGroupId) -> NodeId:
        regions = self.world.network.regions
        own = regions.get(self.name)
        holders = sorted(self.world.operator.holders(group))
        near = [one for one in holders if regions.get(f"node-{one}") == own]
        is_elsewhere = not near or self._rng.random() < SHARE_ELSEWHERE
        return self._rng.choice(holders if is_elsewhere else near)

    def _last_write(self, group: RaftGroupId) -> int:
        """Return the offset after one of the last records that were acknowledged."""
        for publish in reversed(self.world.history.publishes[-20:]):
            is_sure = publish.mode is DeliveryMode.CONSISTENT and publish.result is Result.OK
            if is_sure and publish.group == group:
                return publish.base_offset + len(publish.values)
        return 0

    def receive(self, reply: FetchReply) -> None:
        """Write down what was shown."""
        request, invoked = self._pending.pop(reply.number, (None, 0))
        if request is None:
            return
        group = request.group
        if reply.start:
            self._next[group] = max(self._next.get(group, 0), reply.start)
            return
        records = tuple(
            (offset, value)
            for batch in reply.batches
            for offset, value in shown(Batch.parse(batch, compacted=True))
            if offset >= request.offset
        )
        if records:
            self._next[group] = max(self._next.get(group, 0), records[-1][0] + 1)
        self._seen[group] = max(self._seen.get(group, 0), reply.end)
        self.world.saw(group, reply.end)
        self.world.history.fetches.append(
            Fetch(
                group,
                reply.node,
                invoked,
                self.world.scheduler.now,
                request.offset,
                records,
                end=reply.end,
                is_empty=not reply.batches,
                reader=self.name,
                at_least=request.at_least,
                staleness_max=request.staleness_max,
                staleness=reply.staleness,
                answered=reply.answered,
            )
        )
