"""A leader opens no group for a member that does not know yet what the group is."""

from __future__ import annotations

from tests.unit.lending.test_groups_that_cannot_be_read import Leader, Member

from angarium.api import Start, StartAt
from angarium.errors import NotLeader
from angarium.kinds import GroupKind
from angarium.lending.ports import Membership, Opening, Wanted
from angarium.testing.sim.lending import TOPIC
from angarium.testing.sim.member import CONFIG
from angarium.testing.sim.script import GROUP


def join(leader: Leader, name: str, *, may_open: bool) -> Member:
    member = Member()
    opening = Opening(GroupKind.QUEUE, CONFIG, Start(StartAt.EARLIEST))
    membership = Membership("g", name, leader.node.id, 1, (TOPIC,))
    wanted = Wanted(TOPIC, GROUP, opening, 1, (), may_open=may_open)
    leader.node.do(lambda: leader.lending.host.attach(membership, wanted, member))
    return member


def test_it_is_told_to_come_again() -> None:
    leader = Leader()
    early = join(leader, "a", may_open=False)
    leader.wait(lambda: early.error)
    assert isinstance(early.error, NotLeader)
    assert "not open" in str(early.error)
    assert "g" not in leader.lending.replicas[GROUP].partition.machine.groups.by_name


def test_it_joins_a_group_that_exists() -> None:
    leader = Leader()
    first = join(leader, "a", may_open=True)
    leader.wait(lambda: first.loans)
    second = join(leader, "b", may_open=False)
    leader.wait(lambda: second.loans)
