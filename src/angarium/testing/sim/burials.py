"""Storing the dead letters of a simulated partition's groups.

They go into the last partition of the world, one by one for each group, until each is stored once:
what gets no answer in time is sent again under its old sequence.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from angarium.batch import encode
from angarium.errors import AngariumError
from angarium.ids import ProducerId, Sequence, node_of
from angarium.machine.outcomes import Appended, Duplicate
from angarium.modes import DeliveryMode
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.requests import PublishRequest

if TYPE_CHECKING:
    from angarium.delivery import DeadLetterDue
    from angarium.testing.sim.lender import Lender
    from angarium.testing.sim.requests import PublishReply

LETTER_PRODUCER = 900_000
"""Producer ids from here on belong to groups, which store their dead letters with them."""

PATIENCE = 250 * MILLISECOND


class Burials:
    """The letters of one lender that are not stored yet."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender
        self._unsent: dict[str, deque[DeadLetterDue]] = {}
        """By group, the one under way included."""
        self._under_way: dict[int, tuple[str, DeadLetterDue]] = {}
        """By the number of the request."""

    def add(self, name: str, letter: DeadLetterDue) -> None:
        """Take a letter of a group; `send` sends it when its turn comes."""
        self._unsent.setdefault(name, deque()).append(letter)

    def send(self, name: str) -> None:
        """Store the first letter of a group that is not stored, unless it is under way."""
        lender = self._lender
        if lender.is_over or any(group == name for group, _ in self._under_way.values()):
            return
        unsent = self._unsent.get(name)
        if not unsent:
            return
        node, world = lender.node, lender.node.world
        number = node.service.next_letter()
        self._under_way[number] = (name, unsent[0])
        dead_letters = world.groups[-1]
        batch = self._batch(name, unsent[0])
        request = PublishRequest(
            node.name, number, dead_letters, bytes(batch), DeliveryMode.CONSISTENT
        )
        leader = world.operator.leader(dead_letters)
        target = node.id if leader is None else node_of(leader.id)
        world.network.send_once(node.name, f"node-{target}", request)
        lender.later(PATIENCE, self._lost, number)

    def _batch(self, name: str, letter: DeadLetterDue) -> bytearray:
        """Return a letter as a batch, and write down what it is about."""
        replica, history = self._lender.replica, self._lender.node.world.history
        group = replica.partition.machine.groups.by_name.get(name)
        intent = None if group is None else group.intents.get(letter.offset)
        generation = 0 if intent is None else intent.generation
        facts = (replica.group, name, letter.sequence, letter.offset, generation)
        value = ".".join(map(str, ("letter", *facts, letter.attempts))).encode()
        about = (replica.group, name, letter.offset, generation, letter.attempts)
        history.groups.letters[value] = about
        return encode(
            [value],
            producer_id=ProducerId(LETTER_PRODUCER + 100 * replica.group + _number_of(name)),
            sequence=Sequence(letter.sequence),
        )

    def _lost(self, number: int) -> None:
        name, _ = self._under_way.pop(number, ("", None))
        if name:
            self.send(name)

    def answered(self, reply: PublishReply) -> None:
        """Hear what became of a letter, if it was one of these."""
        if reply.number not in self._under_way:
            return
        name, letter = self._under_way.pop(reply.number)
        outcome = None if isinstance(reply.answer, AngariumError) else reply.answer.outcomes[0]
        if isinstance(outcome, Appended | Duplicate):
            self._unsent[name].popleft()
            self._note(name, letter, outcome)
            self._lender.buried(name, letter)
            self.send(name)
        else:
            self._lender.later(20 * MILLISECOND, self.send, name)

    def _note(self, name: str, letter: DeadLetterDue, stored: Appended | Duplicate) -> None:
        """Write down where a letter was stored, unless that is not remembered."""
        world = self._lender.node.world
        if stored.base_offset is not None:
            place = (self._lender.replica.group, name, letter.offset)
            world.history.groups.buried[place] = (world.groups[-1], stored.base_offset)


def _number_of(name: str) -> int:
    """Return the number at the end of a simulated group's name."""
    return int(name.rsplit("-", 1)[1])
