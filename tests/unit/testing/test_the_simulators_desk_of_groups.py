"""The simulator's desk steps only those groups that have something to do."""

from __future__ import annotations

from tests.unit.delivery.model import SECOND, Leader

from angarium.ids import Micros
from angarium.kinds import GroupKind
from angarium.testing.records import Slot
from angarium.testing.sim.group_desk import Desk


def test_the_desk_steps_whoever_was_touched_or_is_due_and_nobody_else() -> None:
    leader = Leader(GroupKind.QUEUE, records=3)
    desk = Desk()
    desk.add(leader.delivery)
    assert desk.wake_at == 0
    assert len(list(desk.step(leader.now))) == 1
    desk.records_arrived()
    assert list(desk.step(leader.now)) == [], "nobody wants records"
    leader.delivery.attach("a", credit=5, now=leader.now)
    desk.touch("g")
    ((_, effects),) = desk.step(leader.now)
    assert len(effects.deliveries) == 1
    assert desk.wake_at == effects.wake_at is not None
    leader.records.add(Slot())
    desk.records_arrived()
    ((_, effects),) = desk.step(leader.now)
    assert effects.deliveries[0].ranges == (3, 4)
    later = Micros(leader.now + 31 * SECOND)
    ((_, effects),) = desk.step(later)
    assert len(effects.proposals) == 4, "the leases have ended"
    desk.remove("g")
    assert list(desk.step(Micros(later + 100 * SECOND))) == []
