"""Simulated clients: producers that retry until they know, and readers that look everywhere."""

from __future__ import annotations

import random
from itertools import cycle
from typing import TYPE_CHECKING, Any

from angarium.batch import Batch, encode
from angarium.errors import AngariumError, NotLeader, OutcomeUnknown
from angarium.ids import Epoch, NodeId, Offset, ProducerId, ReplicaId, Sequence, node_of
from angarium.machine.outcomes import Appended, Duplicate, Refused
from angarium.modes import DeliveryMode
from angarium.testing.history import Fetch, HighWater, Publish, Result
from angarium.testing.sim.burials import shown
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.compacting import keys_of_values
from angarium.testing.sim.consumers import deliver_at_of, keys_of
from angarium.testing.sim.requests import (
    FetchReply,
    FetchRequest,
    HighWaterReply,
    HighWaterRequest,
    PublishReply,
    PublishRequest,
)

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.replica.acks import Published
    from angarium.testing.sim.world import World

PATIENCE = 250 * MILLISECOND
"""How long a client waits for an answer before it asks again, perhaps somebody else."""

GIVES_UP = 0.1
"""The chance that a producer takes a definite refusal for its answer, instead of asking again."""

SEEN_BEFORE = 3
"""Offsets before those that are new to a reader from which on it reads when it asks for the end."""

ATTEMPTS_MAX = 60
"""Attempts after which a producer gives an operation up and goes on in a new epoch."""


class Producer:
    """Publishes batches to one partition, one or a few at a time, each until its fate is known."""

    def __init__(
        self,
        world: World,
        number: int,
        group: RaftGroupId,
        seed: int,
        *,
        window: int,
        eager: bool,
        gives_up: float = GIVES_UP,
        attempts_max: int = ATTEMPTS_MAX,
        in_turns: bool = False,
    ) -> None:
        self.world = world
        self.name = f"producer-{number}"
        self.number = number
        self.group = group
        self.rng = random.Random(seed)
        self.consistent_share = self.rng.choice((0.5, 0.8, 1.0))
        self.active = True
        self.in_flight = 0
        self._window = window
        self._eager = eager
        self._gives_up = gives_up
        self._attempts_max = attempts_max
        self._turns = cycle(world.node_ids) if in_turns else None
        """Whom to ask next who leads; None: anybody."""
        self._epoch = 0
        self._sequence = 0
        self._request = 0
        self._leader: NodeId | None = None
        self._pending: dict[int, Publish] = {}
        self._open: list[Publish] = []
        self._uncertain: set[int] = set()

    # --- sending ----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to publish."""
        self.world.scheduler.after(self.rng.randrange(20 * MILLISECOND), self._publish)

    def _publish(self) -> None:
        if not self.active:
            return
        if len(self._open) < self._window and self.world.scheduler.now >= self.world.quiet_until:
            self.publish_one(self._choose_mode())
        think = 4 * MILLISECOND if self._eager else 25 * MILLISECOND
        self.world.scheduler.after(self.rng.randrange(1, think), self._publish)

    def publish_one(self, mode: DeliveryMode) -> Publish:
        """Start one operation."""
        count = self.rng.choice((1, 1, 1, 2, 3, 5))
        operation = Publish(
            group=self.group,
            producer=self.number,
            epoch=self._epoch,
            sequence=self._sequence,
            values=self._values(count),
            mode=mode,
            invoked=self.world.scheduler.now,
        )
        self._sequence += count
        self.world.history.publishes.append(operation)
        self._open.append(operation)
        self.in_flight = len(self._open)
        self._attempt(operation)
        return operation

    def _values(self, count: int) -> tuple[bytes, ...]:
        # A value names its record, so that it can be judged wherever it turns up.
        start = self._sequence
        return tuple(
            b"%d.%d.%d" % (self.number, self._epoch, start + position) for position in range(count)
        )

    def _choose_mode(self) -> DeliveryMode:
        consistent = self.rng.random() < self.consistent_share
        return DeliveryMode.CONSISTENT if consistent else DeliveryMode.EVENTUAL

    def _attempt(self, operation: Publish) -> None:
        if operation not in self._open:
            return
        if operation.attempts >= self._attempts_max:
            self._give_up(operation)
            return
        operation.attempts += 1
        self._request += 1
        number = self._request
        self._pending[number] = operation
        target = self._leader or self._somebody()
        keys: list[bytes | None] | None = None
        deliver_at = 0
        if self.world.settings.members:
            keys, deliver_at = keys_of(operation), deliver_at_of(operation)
            for value, key in zip(operation.values, keys, strict=True):
                self.world.history.groups.keys[value] = (key, deliver_at)
        elif self.world.settings.compactors:
            keys = keys_of_values(operation.values)
        batch = encode(
            operation.values,
            keys=keys,
            deliver_at=deliver_at,
            producer_id=ProducerId(operation.producer),
            epoch=Epoch(operation.epoch),
            sequence=Sequence(operation.sequence),
        )
        request = PublishRequest(self.name, number, self.group, bytes(batch), operation.mode)
        self.world.network.send_once(self.name, f"node-{target}", request)
        self.world.scheduler.after(PATIENCE + self.world.settings.slack, self._expire, number)

    def _somebody(self) -> NodeId:
        return self.rng.choice(self.world.node_ids) if self._turns is None else next(self._turns)

    def _expire(self, number: int) -> None:
        operation = self._pending.pop(number, None)
        if operation is None:
            return
        # No answer: it may have been stored, it may not.
        self._uncertain.add(id(operation))
        self._leader = None
        self._attempt(operation)

    # --- hearing back -----------------------------------------------------------------------

    def receive(self, reply: PublishReply) -> None:
        """Take an answer; one that comes twice or too late changes nothing."""
        operation = self._pending.pop(reply.number, None)
        if operation is None or operation not in self._open:
            return
        answer = reply.answer
        if isinstance(answer, AngariumError):
            self._refused(operation, answer)
        else:
            self._answered(operation, reply.node, answer)

    def _refused(self, operation: Publish, error: AngariumError) -> None:
        if isinstance(error, OutcomeUnknown):
            self._uncertain.add(id(operation))
        hint = error.leader if isinstance(error, NotLeader) else None
        self._leader = node_of(ReplicaId(hint)) if hint else None
        if id(operation) not in self._uncertain and self.rng.random() < self._gives_up:
            self._new_epoch(operation)
        else:
            self._again(operation)

    def _answered(self, operation: Publish, node: NodeId, answer: Published) -> None:
        self._leader = node
        outcome = answer.outcomes[0]
        match outcome:
            case Appended() | Duplicate():
                self._succeed(operation, node, answer, outcome)
            case Refused():
                self._judge(operation, outcome)

    def _succeed(
        self, operation: Publish, node: NodeId, answer: Published, outcome: Appended | Duplicate
    ) -> None:
        if outcome.base_offset is None:
            # Known to be stored, but so long ago that its offset is forgotten.
            operation.stored = True
            self._close(operation, Result.INFO)
            return
        operation.base_offset = outcome.base_offset
        operation.node = node
        operation.term = answer.term
        operation.provisional = answer.provisional
        self._close(operation, Result.OK)

    def _judge(self, operation: Publish, refused: Refused) -> None:
        if refused.code != "SEQUENCE_GAP":
            self.world.note(self.name, "is refused:", refused.code)
        first = self._open[0] is operation
        if refused.code == "SEQUENCE_GAP" and not first:
            # An earlier one of mine is still on its way.
            self._again(operation)
            return
        # Something that was answered is gone: an EVENTUAL suffix. Go on in a new epoch.
        self._new_epoch(operation)

    def _again(self, operation: Publish) -> None:
        pause = self.rng.randrange(1, 30 * MILLISECOND)
        self.world.scheduler.after(pause, self._attempt, operation)

    def _give_up(self, operation: Publish) -> None:
        self._new_epoch(operation)

    def _new_epoch(self, operation: Publish) -> None:
        """Abandon everything under way: a later epoch fences whatever still wanders about."""
        for abandoned in tuple(self._open):
            certain = abandoned is operation and id(abandoned) not in self._uncertain
            self._close(abandoned, Result.FAIL if certain else Result.INFO)
        self._pending.clear()
        self._epoch += 1
        self._sequence = 0

    def _close(self, operation: Publish, result: Result) -> None:
        operation.result = result
        operation.completed = self.world.scheduler.now
        self._open.remove(operation)
        self._uncertain.discard(id(operation))
        self.in_flight = len(self._open)
        self.world.operation_done(operation)


class Reader:
    """Reads from any node, and asks leaders where the log ends."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        self.world = world
        self.name = f"reader-{number}"
        self.rng = random.Random(seed)
        self.active = True
        self._request = 0
        self._pending: dict[int, tuple[Any, int]] = {}
        self._next: dict[RaftGroupId, int] = {}
        self._leaders: dict[RaftGroupId, NodeId] = {}
        """Who has last known where a log ends."""

    def start(self) -> None:
        """Begin to read."""
        self.world.scheduler.after(self.rng.randrange(40 * MILLISECOND), self._ask)

    def fetch_from(self, node: NodeId, group: RaftGroupId, offset: Offset) -> None:
        """Ask one node for records, as a script says."""
        self._request += 1
        self._send(node, FetchRequest(self.name, self._request, group, offset, 2_000))

    def go_back(self, group: RaftGroupId, end: int) -> None:
        """Read on from `end` at the latest, and take no answer to what was asked before."""
        self._next[group] = min(end, self._next.get(group, 0))
        self._pending.clear()

    def _send(self, node: NodeId, request: FetchRequest | HighWaterRequest) -> None:
        self._pending[self._request] = (request, self.world.scheduler.now)
        self.world.network.send_once(self.name, f"node-{node}", request)

    def _ask(self) -> None:
        if not self.active:
            return
        self._request += 1
        group = self.rng.choice(self.world.groups)
        node = self.rng.choice(self.world.node_ids)
        request: FetchRequest | HighWaterRequest
        if self.rng.random() < 0.5:
            offset = self._next.get(group, 0)
            if self.rng.random() < 0.3:
                offset = self.rng.randrange(offset + 1)
            request = FetchRequest(self.name, self._request, group, Offset(offset), 2_000)
        else:
            # With a few records that were seen before: those at least have to be there.
            known = Offset(max(0, self._next.get(group, 0) - SEEN_BEFORE))
            request = HighWaterRequest(self.name, self._request, group, known, 2_000)
            if group in self._leaders and self.rng.random() < 0.6:
                node = self._leaders[group]
        self._send(node, request)
        self.world.scheduler.after(self.rng.randrange(1, 60 * MILLISECOND), self._ask)

    def receive(self, reply: FetchReply | HighWaterReply) -> None:
        """Write down what was seen."""
        pending = self._pending.pop(reply.number, None)
        if pending is None:
            return
        request, invoked = pending
        now = self.world.scheduler.now
        if isinstance(reply, FetchReply) and reply.start:
            self._next[request.group] = max(self._next.get(request.group, 0), reply.start)
            return
        if isinstance(reply, HighWaterReply):
            self._leaders[request.group] = reply.node
            self.world.saw(request.group, reply.end)
            self.world.history.high_waters.append(
                HighWater(request.group, reply.node, invoked, now, reply.end)
            )
            if reply.batches is None:
                return
        fetch = _as_fetched(request, reply, invoked, now)
        if fetch.records and isinstance(reply, FetchReply):
            after = fetch.records[-1][0] + 1
            self._next[request.group] = max(self._next.get(request.group, 0), after)
            self.world.saw(request.group, after)
        self.world.history.fetches.append(fetch)


def _as_fetched(
    request: FetchRequest | HighWaterRequest,
    reply: FetchReply | HighWaterReply,
    invoked: int,
    now: int,
) -> Fetch:
    batches = reply.batches or ()
    return Fetch(
        request.group,
        reply.node,
        invoked,
        now,
        request.offset,
        tuple(
            (offset, value)
            for batch in batches
            for offset, value in shown(Batch.parse(batch, compacted=True))
            if offset >= request.offset
        ),
        end=reply.end,
        is_empty=not batches,
    )
