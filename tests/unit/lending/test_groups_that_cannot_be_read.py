"""A leader that cannot read its log gives a group up, tells everybody, and begins it anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from angarium.api import Settlement, Start, StartAt, Verb
from angarium.errors import AngariumError, CorruptData, NotLeader
from angarium.kinds import GroupKind
from angarium.lending.ports import Membership, Opening, Wanted
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.lending import TOPIC, SimLending
from angarium.testing.sim.member import CONFIG
from angarium.testing.sim.script import GROUP, THREE
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import GroupConfig, Settled
    from angarium.lending.ports import Lending
    from angarium.testing.sim.watched_delivery import WatchedDelivery


class Member:
    """Hears what comes of an attachment, all of it."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.loans: list[Lending] = []
        self.answers: list[Settled] = []
        self.error: AngariumError | None = None

    def attached(self, kind: GroupKind, config: GroupConfig) -> None:
        del kind, config
        self.heard.append("attached")

    def lent(self, lending: Lending) -> None:
        self.heard.append("lent")
        self.loans.append(lending)

    def told(self, ask: int, settled: Sequence[Settled]) -> None:
        del ask
        self.answers += settled

    def allowed(self, credit: int) -> None:
        del credit

    def withdrawn(self, ranges: tuple[int, ...]) -> None:
        del ranges

    def dropped(self, error: AngariumError) -> None:
        self.heard.append("dropped")
        self.error = error


class Damaged(SimLending):
    """A leader whose log can be read, or cannot, as a test says."""

    unreadable: str = ""
    """The method of a group's decisions that meets the damage."""

    def delivery(self, *arguments: Any, **named: Any) -> WatchedDelivery:
        self.meet("delivery")
        delivery = super().delivery(*arguments, **named)
        for name in ("attach", "detach", "acknowledge", "confirmed", "advance"):
            setattr(delivery, name, self._reading(name, getattr(delivery, name)))
        return delivery

    def meet(self, name: str) -> None:
        if name == self.unreadable:
            raise CorruptData("segment 0 cannot be read")

    def _reading(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*arguments: Any, **named: Any) -> Any:
            self.meet(name)
            return method(*arguments, **named)

        return reading


class Leader:
    """A node that leads a partition with some records in it."""

    def __init__(self) -> None:
        self.world = World(1, replace(THREE, readers=1))
        self.world.form()
        self.world.wait(10 * SECOND, lambda: self.world.seen_end(GROUP) > 10)
        leader = self.world.operator.leader(GROUP)
        assert leader is not None
        self.node = self.world.node_of(leader.id)
        self.lending = Damaged(self.node)
        self.seats: dict[str, Any] = {}

    def attach(self, name: str) -> Member:
        member = Member()
        topics = (TOPIC,)
        opening = Opening(GroupKind.QUEUE, CONFIG, Start(StartAt.EARLIEST))
        membership = Membership("g", name, self.node.id, 1, topics)
        wanted = Wanted(TOPIC, GROUP, opening, 1, ())

        def attach() -> None:
            self.seats[name] = self.lending.host.attach(membership, wanted, member)

        self.node.do(attach)
        return member

    def wait(self, done: Callable[[], object]) -> None:
        self.world.wait(5 * SECOND, lambda: bool(done()))
        assert done()
        assert not self.world.history.incidents

    def acknowledge(self, name: str, loan: Lending) -> None:
        said = Settlement(TOPIC, GROUP, Verb.ACK, loan.ranges)
        self.node.do(self.seats[name].ask, 1, (said,))


@pytest.mark.parametrize("when", ["delivery", "attach", "advance"])
def test_whoever_comes_is_told_to_come_again(when: str) -> None:
    leader = Leader()
    leader.lending.unreadable = when
    member = leader.attach("a")
    leader.wait(lambda: member.error)
    assert isinstance(member.error, NotLeader)
    leader.lending.unreadable = ""
    again = leader.attach("a")
    leader.wait(lambda: again.loans)


@pytest.mark.parametrize("when", ["acknowledge", "confirmed"])
def test_whoever_settles_is_answered_and_let_go(when: str) -> None:
    leader = Leader()
    first, second = leader.attach("a"), leader.attach("b")
    leader.wait(lambda: first.loans and second.loans)
    leader.lending.unreadable = when
    leader.acknowledge("a", first.loans[0])
    leader.wait(lambda: first.error and second.error)
    assert first.answers[0].code in {NotLeader.code, "OUTCOME_UNKNOWN"}
    leader.lending.unreadable = ""
    again = leader.attach("a")
    leader.wait(lambda: again.loans)


def test_whoever_leaves_takes_the_others_along() -> None:
    leader = Leader()
    first, second = leader.attach("a"), leader.attach("b")
    leader.wait(lambda: first.loans and second.loans)
    leader.lending.unreadable = "detach"
    leader.node.do(lambda: leader.seats["a"].detach(lost=False))
    leader.wait(lambda: second.error)
    leader.lending.unreadable = ""
    again = leader.attach("b")
    leader.wait(lambda: again.loans)
