"""Storing the dead letters of a simulated node's groups, by the procedure that nodes follow.

They go into the last partition of the world, whichever topic they are meant for. The catalog that
numbers their producers is not simulated: its machine answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from angarium.api import Ack
from angarium.batch import Batch
from angarium.errors import AngariumError
from angarium.ids import RaftGroupId, node_of
from angarium.lending.letters import PREFIX, Pause, Publish
from angarium.machine.catalog import ProducerShare
from angarium.machine.keys import KEYED_FROM
from angarium.machine.outcomes import Appended, Duplicate, Refused
from angarium.machine.producers import NAMED_FROM
from angarium.modes import DeliveryMode
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.requests import PublishRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Offset
    from angarium.lending.letters import Burial
    from angarium.machine.outcomes import Outcome
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.requests import PublishReply

PATIENCE = 250 * MILLISECOND


class Burials:
    """The letters that one node owes, in one life of its process."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._world = node.world
        self._under_way: dict[int, tuple[Burial, Publish]] = {}
        """By the number of the request."""
        self._number = node.life << 32  # an answer may outlive the process that asked

    def carry_out(self, burial: Burial) -> None:
        """Begin to store letters."""
        self._go_on(burial, None, None)

    def answered(self, reply: PublishReply) -> None:
        """Hear what became of letters."""
        burial, errand = self._under_way.pop(reply.number, (None, None))
        if burial is None or errand is None:
            return
        if isinstance(reply.answer, AngariumError):
            self._go_on(burial, None, reply.answer)
        else:
            outcomes = reply.answer.outcomes
            if len(outcomes) != len(errand.batches):
                outcomes = (outcomes[0],) * len(errand.batches)
            acks = [
                self._stored(bytes(batch), outcome)
                for batch, outcome in zip(errand.batches, outcomes, strict=True)
            ]
            self._go_on(burial, tuple(acks), None)

    def _go_on(self, burial: Burial, answer: object, failure: Exception | None) -> None:
        try:
            errand = burial.send(answer) if failure is None else burial.throw(failure)
        except StopIteration:
            return
        match errand:
            case Publish():
                self._publish(burial, errand)
            case ProducerShare():
                self._node.later(0, self._go_on, burial, self._world.enter(errand), None)
            case Pause():
                self._node.later(int(errand.seconds * SECOND), self._go_on, burial, None, None)
            case _:
                assert_never(errand)

    def _publish(self, burial: Burial, errand: Publish) -> None:
        node, world = self._node, self._world
        self._number += 1
        self._under_way[self._number] = (burial, errand)
        first, *others = (bytes(one) for one in errand.batches)
        for batch in (first, *others):
            self._note(batch)
        target = world.groups[-1]
        request = PublishRequest(
            node.name, self._number, target, first, DeliveryMode.CONSISTENT, tuple(others)
        )
        leader = world.operator.leader(target)
        to = node.id if leader is None else node_of(leader.id)
        world.network.send_once(node.name, f"node-{to}", request)
        node.later(PATIENCE + self._world.settings.slack, self._lost, self._number)

    def _lost(self, number: int) -> None:
        burial, _ = self._under_way.pop(number, (None, None))
        if burial is not None:
            self._go_on(burial, None, TimeoutError("nobody has answered"))

    # --- for the checkers -----------------------------------------------------------------------

    def _note(self, batch: bytes) -> None:
        """Write down what a letter is about that this leader tries to store."""
        host, history = self._node.host, self._world.history.groups
        assert host is not None
        about = Batch.parse(batch)
        raft_group, name, offset, attempts = _about(about)
        replica = host.replicas.get(raft_group)
        group = None if replica is None else replica.partition.machine.groups.by_name.get(name)
        intent = None if group is None else group.intents.get(offset)
        generation = 0 if intent is None else intent.generation
        value = letter_value(about)
        history.letters[value] = (raft_group, name, offset, generation, attempts)
        history.keys[value] = (next(iter(about)).key, 0)

    def _stored(self, batch: bytes, outcome: Outcome) -> Ack:
        """Write down where a letter was stored, unless that is not remembered."""
        ack = Ack(mode=DeliveryMode.CONSISTENT, topic="", partition=0)
        if isinstance(outcome, Refused):
            return replace(ack, code=outcome.code, message=outcome.message)
        assert isinstance(outcome, Appended | Duplicate)
        if outcome.base_offset is not None:
            raft_group, name, offset, _ = _about(Batch.parse(batch))
            stored = (self._world.groups[-1], outcome.base_offset)
            self._world.history.groups.buried[raft_group, name, offset] = stored
        return ack


def shown(batch: Batch) -> Iterator[tuple[Offset, bytes]]:
    """Yield a batch's records as histories have them: a letter is told from the record it is of."""
    has_letter = is_letter(batch)
    for record in batch:
        if has_letter:
            yield record.offset, letter_value(batch)
        elif record.value is not None:
            yield record.offset, record.value


def is_letter(batch: Batch) -> bool:
    """Return whether a batch is a dead letter: those are published under names, not under keys."""
    return NAMED_FROM <= batch.producer_id < KEYED_FROM


def letter_value(batch: Batch) -> bytes:
    """Return what stands for a letter, the only one with its producer, epoch and sequence."""
    (record,) = batch
    name = (batch.producer_id, batch.epoch, batch.first_sequence)
    told = *name, *_about(batch), (record.value or b"").decode()
    return ".".join(map(str, ("letter", *told))).encode()


def _about(batch: Batch) -> tuple[RaftGroupId, str, int, int]:
    """Return the partition, the group, the offset and the attempts that a letter tells of."""
    (record,) = batch
    told = {
        name.removeprefix(PREFIX): (value or b"").decode()
        for name, value in record.headers
        if name.startswith(PREFIX)
    }
    raft_group = RaftGroupId(int(told["partition"]))
    return raft_group, told["group"], int(told["offset"]), int(told["attempts"])
