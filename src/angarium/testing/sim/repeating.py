"""Clients of a simulated topic that grows which send their requests again, under idempotency keys.

Each request goes to another door, which knows the topic as its node does: one sends it by the
newest layout, the next by an older one. A door does as `doors.intake.recalling`: it asks where
earlier layouts have sent the request, and then publishes. Whatever a client does not know, or
knows, it asks for again: a request that was answered has to be answered with the same place.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.api.layout import former_layouts, layout_of
from angarium.batch import encode
from angarium.errors import AngariumError, LayoutChanged, NotLeader
from angarium.ids import Epoch, ReplicaId, node_of
from angarium.machine.keys import identity_of
from angarium.machine.outcomes import Appended, Duplicate, Refused
from angarium.modes import DeliveryMode
from angarium.testing.history import Publish, Result
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.requests import PublishReply, PublishRequest

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId, Term
    from angarium.testing.sim.world import World

KEYS: Final = 6
OPEN_MAX: Final = 4
"""Requests that have no answer yet, at a time."""
REPEATED_SHARE: Final = 0.5
"""How often a request that was answered is sent again, instead of a new one."""
PATIENCE: Final = 400 * MILLISECOND
PRODUCERS_FROM: Final = 10_000
"""Each request is its own producer's: between them there is no order."""


@dataclass(slots=True)
class _Request:
    """One request on its way through a door."""

    publish: Publish
    key: bytes
    steps: list[tuple[RaftGroupId, int]]
    """Partitions that are still to be asked, each by which layout; the last one is to store it."""


class Repeater:
    """Publishes records, each under a key of its own, and sends all of them again and again."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.name = "repeater"
        self.active = True
        self.rng = random.Random(seed)
        self._open: dict[bytes, _Request] = {}
        self._pending: dict[int, _Request] = {}
        self._answered: list[tuple[Publish, bytes]] = []
        self._leaders: dict[RaftGroupId, NodeId] = {}
        self._made = 0
        self._number = 0

    @property
    def in_flight(self) -> int:
        """How many requests have no answer."""
        return len(self._open)

    def start(self) -> None:
        """Begin to publish."""
        self.world.scheduler.after(self.rng.randrange(1, 20 * MILLISECOND), self._publish)

    def _publish(self) -> None:
        if not self.active:
            return
        self.world.scheduler.after(self.rng.randrange(1, 30 * MILLISECOND), self._publish)
        if len(self._open) >= OPEN_MAX:
            return
        if self._answered and self.rng.random() < REPEATED_SHARE:
            publish, key = self.rng.choice(self._answered)
        else:
            key = b"grown-%d" % self.rng.randrange(KEYS)
            self._made += 1
            value = b"again.%d" % self._made
            publish = Publish(
                group=self.world.groups[0],
                producer=PRODUCERS_FROM + self._made,
                epoch=0,
                sequence=0,
                values=(value,),
                mode=DeliveryMode.CONSISTENT,
                invoked=self.world.scheduler.now,
            )
        if publish.values[0] not in self._open:
            self._open[publish.values[0]] = _Request(publish, key, [])
            self._begin(self._open[publish.values[0]])

    def _begin(self, request: _Request) -> None:
        """Send a request to one of the doors, which has heard of this layout or that."""
        node = self.world.nodes[self.rng.choice(self.world.node_ids)]
        info = self.world.growing[0].info(node)
        layout = layout_of(info)
        own = layout.of_key(request.key)
        former = {one.of_key(request.key): one.number for one in former_layouts(info)}
        former.pop(own, None)
        groups = self.world.groups
        request.steps = [(groups[partition], number) for partition, number in former.items()]
        request.steps.append((groups[own], layout.number))
        self._ask(request)

    def _ask(self, request: _Request) -> None:
        group, layout = request.steps[0]
        value = request.publish.values[0]
        producer, sequence = identity_of(value, value)
        batch = encode(
            (value,),
            keys=[request.key],
            producer_id=producer,
            epoch=Epoch(0),
            sequence=sequence,
        )
        self._number += 1
        self._pending[self._number] = request
        leader = self._leaders.get(group) or self.rng.choice(self.world.node_ids)
        asked = PublishRequest(
            self.name, self._number, group, bytes(batch), DeliveryMode.CONSISTENT, layout=layout
        )
        self.world.network.send_once(self.name, f"node-{leader}", asked)
        self.world.scheduler.after(PATIENCE, self._expire, self._number)

    def _expire(self, number: int) -> None:
        request = self._pending.pop(number, None)
        if request is not None:
            self._leaders.pop(request.steps[0][0], None)
            self._begin(request)

    def receive(self, reply: PublishReply) -> None:
        """Take an answer."""
        request = self._pending.pop(reply.number, None)
        if request is None:
            return
        answer, group = reply.answer, request.steps[0][0]
        if isinstance(answer, AngariumError):
            self._leaders.pop(group, None)
            if isinstance(answer, NotLeader) and answer.leader:
                self._leaders[group] = node_of(ReplicaId(answer.leader))
            self._again(request)
            return
        self._leaders[group] = reply.node
        outcome = answer.outcomes[0]
        if isinstance(outcome, Appended | Duplicate):
            self._done(request, group, outcome, reply, answer.term)
            return
        is_elsewhere = isinstance(outcome, Refused) and outcome.code == LayoutChanged.code
        if is_elsewhere and len(request.steps) > 1:
            del request.steps[0]
            self._ask(request)
        else:
            self._again(request)

    def _again(self, request: _Request) -> None:
        pause = self.rng.randrange(1, 30 * MILLISECOND)
        self.world.scheduler.after(pause, self._begin, request)

    def _done(
        self,
        request: _Request,
        group: RaftGroupId,
        outcome: Appended | Duplicate,
        reply: PublishReply,
        term: Term,
    ) -> None:
        publish = request.publish
        del self._open[publish.values[0]]
        assert outcome.base_offset is not None, "keys are remembered with their offsets"
        where = (group, outcome.base_offset)
        if publish.result is not Result.OK:
            publish.group, publish.base_offset = where
            publish.result, publish.completed = Result.OK, self.world.scheduler.now
            publish.node, publish.term = reply.node, term
            self.world.history.publishes.append(publish)
            self.world.history.groups.keys[publish.values[0]] = (request.key, 0)
            self._answered.append((publish, request.key))
            self.world.operation_done(publish)
        elif where != (publish.group, publish.base_offset):
            self.world.history.incidents.append(
                f"C6: {publish.values[0]!r} came again and was answered with {where}, "
                f"not {(publish.group, publish.base_offset)}"
            )
