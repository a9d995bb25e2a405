"""Clients of a simulated topic that grows: publishers that deal by key, and readers of all of it.

A publisher does what `client.publishing` does: a row of records for each partition, several on
their way at once; when one is refused for its layout all rows come to rest, and what is left is
dealt anew. A reader asks as `client.reading` does, and goes through gates by `api.fences`.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final
from zlib import crc32

from angarium.api.fences import bound_of, gates_open
from angarium.batch import Batch, encode
from angarium.errors import AngariumError, LayoutChanged, NotLeader
from angarium.ids import Epoch, Offset, ProducerId, ReplicaId, Sequence, node_of
from angarium.machine.outcomes import Appended, Duplicate, Refused
from angarium.modes import DeliveryMode
from angarium.testing.history import Publish, Result
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.requests import FetchReply, FetchRequest, PublishReply, PublishRequest

if TYPE_CHECKING:
    from angarium.api import TopicInfo
    from angarium.ids import NodeId, RaftGroupId
    from angarium.testing.sim.world import World

KEYS: Final = 6
OPEN_MAX: Final = 3
"""Records that one publisher has on their way at a time."""
LOOKS_SHARE: Final = 0.04
"""How often a publisher asks about the topic by itself: some learn of a layout later."""
PATIENCE: Final = 400 * MILLISECOND
PRODUCERS_FROM: Final = 900


class _Row:
    """Records on their way into one partition, in order."""

    def __init__(self) -> None:
        self.open: list[Publish] = []
        self.sequence = 0


class KeyedPublisher:
    """Publishes one record after the other, of keys that others use, too."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world = world
        self.number = PRODUCERS_FROM + number
        self.name = f"keyed-{number}"
        self.active = True
        self.rng = random.Random(seed)
        self._order = 0
        self._layout = 0
        self._count = len(world.growing[0].topic.groups)
        self._rows: dict[RaftGroupId, _Row] = {}
        self._pending: dict[int, Publish] = {}
        self._outdated: set[bytes] = set()
        self._leaders: dict[RaftGroupId, NodeId] = {}
        self._keys: dict[bytes, bytes] = {}
        self._is_turning = False
        self._request = 0

    @property
    def in_flight(self) -> int:
        """How many records have no answer."""
        return sum(len(row.open) for row in self._rows.values())

    def start(self) -> None:
        """Begin to publish."""
        self.world.scheduler.after(self.rng.randrange(1, 20 * MILLISECOND), self._publish)

    def _publish(self) -> None:
        if not self.active:
            return
        self.world.scheduler.after(self.rng.randrange(1, 40 * MILLISECOND), self._publish)
        if self.rng.random() < LOOKS_SHARE:
            view = self.world.growing[0].views[self.rng.choice(self.world.node_ids)]
            if view.layout > self._layout:
                self._turn()
        if self.in_flight >= OPEN_MAX:
            return
        key = b"grown-%d" % self.rng.randrange(KEYS)
        value = b"%d.k.%d" % (self.number, self._order)
        self._keys[value] = key
        publish = Publish(
            group=self._group_of(key),
            producer=self.number,
            epoch=0,
            sequence=0,
            values=(value,),
            mode=DeliveryMode.CONSISTENT,
            invoked=self.world.scheduler.now,
        )
        self.world.history.publishes.append(publish)
        self.world.history.groups.keys[value] = (key, 0)
        self.world.growing[0].note(key, publish, self._order)
        self._order += 1
        self._put(publish)

    def _group_of(self, key: bytes) -> RaftGroupId:
        return self.world.groups[(crc32(key) or 1) % self._count]

    def _put(self, publish: Publish) -> None:
        row = self._rows.setdefault(publish.group, _Row())
        publish.sequence = row.sequence
        row.sequence += 1
        row.open.append(publish)
        # What is published while it turns waits behind the rest, by the old layout.
        if not self._is_turning:
            self._send(publish)

    def _send(self, publish: Publish) -> None:
        row = self._rows[publish.group]
        if publish not in row.open or publish in self._pending.values():
            return
        if self._is_turning and row.open[0].values[0] in self._outdated:
            return  # nothing behind it can be stored
        if self._is_turning and not publish.attempts:
            return  # it never left
        publish.attempts += 1
        self._request += 1
        self._pending[self._request] = publish
        batch = encode(
            publish.values,
            keys=[self._keys[publish.values[0]]],
            producer_id=ProducerId(self.number),
            epoch=Epoch(0),
            sequence=Sequence(publish.sequence),
        )
        target = self._leaders.get(publish.group) or self.rng.choice(self.world.node_ids)
        request = PublishRequest(
            self.name,
            self._request,
            publish.group,
            bytes(batch),
            publish.mode,
            layout=self._layout,
        )
        self.world.network.send_once(self.name, f"node-{target}", request)
        self.world.scheduler.after(PATIENCE, self._expire, self._request)

    def _expire(self, number: int) -> None:
        publish = self._pending.pop(number, None)
        if publish is not None:
            self._leaders.pop(publish.group, None)
            self._send(publish)

    def receive(self, reply: PublishReply) -> None:
        """Take an answer."""
        publish = self._pending.pop(reply.number, None)
        if publish is None or publish not in self._rows[publish.group].open:
            return
        answer = reply.answer
        if isinstance(answer, AngariumError):
            hint = answer.leader if isinstance(answer, NotLeader) else None
            self._leaders.pop(publish.group, None)
            if hint:
                self._leaders[publish.group] = node_of(ReplicaId(hint))
            self._again(publish)
            return
        self._leaders[publish.group] = reply.node
        outcome = answer.outcomes[0]
        if isinstance(outcome, Appended | Duplicate):
            publish.completed = self.world.scheduler.now
            if outcome.base_offset is None:
                publish.stored = True  # so long ago that nobody remembers where
            else:
                publish.base_offset, publish.result = outcome.base_offset, Result.OK
                publish.node, publish.term = reply.node, answer.term
            self._rows[publish.group].open.remove(publish)
            self.world.operation_done(publish)
        elif isinstance(outcome, Refused) and outcome.code == LayoutChanged.code:
            self._outdated.add(publish.values[0])
            self._turn()
        else:
            self._again(publish)

    def _again(self, publish: Publish) -> None:
        pause = self.rng.randrange(1, 30 * MILLISECOND)
        self.world.scheduler.after(pause, self._send, publish)

    # --- from one layout to the next ------------------------------------------------------------

    def _turn(self) -> None:
        if not self._is_turning:
            self._is_turning = True
            self.world.scheduler.after(10 * MILLISECOND, self._look)

    def _look(self) -> None:
        self.world.scheduler.after(10 * MILLISECOND, self._go_on)

    def _is_at_rest(self, row: _Row) -> bool:
        sent = [one for one in row.open if one.attempts]
        if any(one in self._pending.values() for one in sent):
            return False
        return not sent or sent[0].values[0] in self._outdated

    def _go_on(self) -> None:
        rows = list(self._rows.values())
        if not all(self._is_at_rest(row) for row in rows):
            self.world.scheduler.after(10 * MILLISECOND, self._go_on)
            return
        node = self.world.nodes[self.rng.choice(self.world.node_ids)]
        view = self.world.growing[0].views[node.id]
        is_newer = view.layout > self._layout
        if not is_newer and len(view.layouts) - 1 > self._layout:
            self.world.scheduler.after(30 * MILLISECOND, self._go_on)  # soon there is
            return
        if is_newer:
            self._layout = view.layout
            self._count = view.layouts[view.layout]
        left = [one for row in rows for one in row.open]
        for row in rows:
            if row.open:
                row.sequence = row.open[0].sequence
                row.open = []
        self._outdated.clear()
        self._is_turning = False
        for publish in left:
            publish.attempts = 0
            publish.group = self._group_of(self._keys[publish.values[0]])
            self._put(publish)


class KeyedReader:
    """Reads all partitions of the topic from their beginnings, from any node."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world = world
        self.name = f"keyed-reader-{number}"
        self.active = True
        self.in_flight = 0
        self.rng = random.Random(seed)
        self.seen: dict[tuple[RaftGroupId, bytes], int] = {}
        """What came, by partition and value, and in which place of the row."""
        self._next: dict[int, int] = {}
        self._stopped: dict[int, int] = {}
        self._info: TopicInfo | None = None
        self._opened = 0
        self._request = 0
        self._pending: dict[int, tuple[int, int, int]] = {}

    def start(self) -> None:
        """Begin to read."""
        self.world.scheduler.after(self.rng.randrange(1, 40 * MILLISECOND), self._ask)

    def _ask(self) -> None:
        self.world.scheduler.after(self.rng.randrange(1, 80 * MILLISECOND), self._ask)
        node = self.world.nodes[self.rng.choice(self.world.node_ids)]
        described = self.world.growing[0].info(node)
        if self._info is None or len(described.layouts) >= len(self._info.layouts):
            self._info = described
        info = self._info
        positions = {
            one.number: max(self._next.get(one.number, 0), self._stop_of(one.number))
            for one in info.partitions
        }
        self._opened = gates_open(info, positions, self._opened)
        partition = self.rng.choice(info.partitions).number
        bound = bound_of(info, partition, self._opened)
        if bound is not None and positions[partition] >= bound:
            return
        self._request += 1
        offset = self._next.get(partition, 0)
        self._pending[self._request] = (partition, offset, self._opened)
        group = self.world.groups[partition]
        request = FetchRequest(
            self.name, self._request, group, Offset(offset), 2_000, layout=self._opened
        )
        self.world.network.send_once(self.name, f"node-{node.id}", request)

    def _stop_of(self, partition: int) -> int:
        stopped = self._stopped.get(partition, 0)
        if not stopped or self._info is None:
            return 0
        return bound_of(self._info, partition, stopped - 1) or 0

    def receive(self, reply: FetchReply) -> None:
        """Take what comes next, once."""
        partition, offset, opened = self._pending.pop(reply.number, (0, -1, 0))
        if offset != self._next.get(partition, 0):
            return
        if reply.is_stopped:
            self._stopped[partition] = max(self._stopped.get(partition, 0), opened + 1)
        for buffer in reply.batches:
            batch = Batch.parse(buffer, compacted=True)
            for record in batch:
                if record.offset >= offset and record.value is not None:
                    where = self.world.groups[partition]
                    self.seen.setdefault((where, record.value), len(self.seen))
            self._next[partition] = max(self._next.get(partition, 0), batch.next_offset)
