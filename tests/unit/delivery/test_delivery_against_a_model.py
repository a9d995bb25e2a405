"""Groups under everything that can happen to them, compared with a naive model."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.delivery.model import SECOND, Leader

from angarium.delivery import Accepted
from angarium.ids import Micros
from angarium.kinds import GroupKind, Poison
from angarium.machine.changes import GroupSettings
from angarium.testing.memory_records import Slot

MEMBERS = ("ann", "bob", "cat")


class GroupUnderLoad(RuleBasedStateMachine):
    """One group, three members, a leader that changes, an operator, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.leader = Leader(GroupKind.QUEUE)

    @initialize(
        kind=st.sampled_from((GroupKind.QUEUE, GroupKind.STREAM, GroupKind.KEY)),
        attempts=st.integers(1, 3),
    )
    def begin(self, kind: GroupKind, attempts: int) -> None:
        self.leader = Leader(
            kind,
            GroupSettings(
                max_attempts=attempts,
                ack_timeout_micros=5 * SECOND,
                backoff_min_micros=SECOND,
                backoff_max_micros=4 * SECOND,
                poison=Poison.DEAD_LETTER,
            ),
            # Near the end of a block, so that most things happen on both sides of it.
            floor=1_010,
        )

    # --- records -----------------------------------------------------------------------------

    @rule(
        count=st.sampled_from((1, 3, 20)),
        key=st.integers(0, 3),
        odd=st.sampled_from(("", "", "", "gap", "expires", "delayed")),
    )
    def append(self, count: int, key: int, odd: str) -> None:
        now = self.leader.now
        for number in range(count):
            slot = Slot(key=(key + number) % 4)
            if odd == "gap":
                slot = Slot(is_there=False)
            elif odd == "expires":
                slot = slot._replace(expires_at=now + (1 + number % 7) * SECOND)
            elif odd == "delayed":
                slot = slot._replace(deliver_at=now + (1 + number * 5 % 9) * SECOND)
            self.leader.records.add(slot)

    @rule(share=st.floats(0, 0.5))
    def trim(self, share: float) -> None:
        start, floor = self.leader.records.start_offset, self.leader.group.floor
        self.leader.records.trim(start + int((floor - start) * share))

    # --- members -------------------------------------------------------------------------------

    @rule(member=st.sampled_from(MEMBERS), credit=st.sampled_from((0, 1, 5, 40)))
    def attach(self, member: str, credit: int) -> None:
        self.leader.attach(member, credit)

    @rule(member=st.sampled_from(MEMBERS), credit=st.sampled_from((0, 1, 5, 40)))
    def change_credit(self, member: str, credit: int) -> None:
        self.leader.delivery.set_credit(member, credit)

    @rule(member=st.sampled_from(MEMBERS), clean=st.booleans())
    def detach(self, member: str, clean: bool) -> None:
        self.leader.detach(member, clean=clean)

    @rule(member=st.sampled_from((*MEMBERS, "")))
    def prefer(self, member: str) -> None:
        self.leader.delivery.prefer(member)

    def _some(self, member: str, data: Any) -> list[int]:
        held = sorted(self.leader.held.get(member, {}))
        if not held:
            return []
        start = data.draw(st.integers(0, len(held) - 1))
        count = data.draw(st.sampled_from((1, 2, 10, 5_000)))
        return held[start : start + count]

    @rule(member=st.sampled_from(MEMBERS), data=st.data(), cumulative=st.booleans())
    def ack(self, member: str, data: Any, cumulative: bool) -> None:
        offsets = self._some(member, data)
        if offsets:
            done = self.leader.ack(member, *offsets, cumulative=cumulative)
            self._judge(member, done)

    @rule(member=st.sampled_from(MEMBERS), data=st.data(), delay=st.sampled_from((None, 0, SECOND)))
    def nack(self, member: str, data: Any, delay: int | None) -> None:
        offsets = self._some(member, data)[:50]
        if offsets:
            self._judge(member, self.leader.nack(member, *offsets, delay=delay))

    @rule(member=st.sampled_from(MEMBERS), data=st.data())
    def reject(self, member: str, data: Any) -> None:
        offsets = self._some(member, data)[:3]
        if offsets:
            self._judge(member, self.leader.nack(member, *offsets, is_final=True))

    @rule(member=st.sampled_from(MEMBERS), data=st.data())
    def release(self, member: str, data: Any) -> None:
        offsets = self._some(member, data)
        if offsets:
            self._judge(member, self.leader.release(member, *offsets))

    @rule(member=st.sampled_from(MEMBERS), data=st.data())
    def extend(self, member: str, data: Any) -> None:
        offsets = self._some(member, data)
        for offset in offsets[:3]:
            self.leader.delivery.extend(member, (offset, offset + 1), now=self.leader.now)

    def _judge(self, member: str, done: object) -> None:
        """What the model says is held can be settled, unless the leader has taken it back just now.

        The model learns of that only with the next step, so a refusal is looked at again there.
        """
        if not isinstance(done, Accepted):
            held = dict(self.leader.held.get(member, {}))
            is_attached = member in self.leader.delivery.members
            taken = self.leader.step().taken
            assert not held or not is_attached or any(one.member == member for one in taken), done

    @rule(liar=st.sampled_from(MEMBERS), data=st.data(), verb=st.sampled_from(("ack", "nack")))
    def lie(self, liar: str, data: Any, verb: str) -> None:
        """Somebody settles what another one holds: nothing may change."""
        for other, held in self.leader.held.items():
            if other == liar or not held or other not in self.leader.delivery.members:
                continue
            offset = data.draw(st.sampled_from(sorted(held)))
            if offset in self.leader.group.acked:
                continue
            before = (self.leader.delivery.on_loan, self.leader.group.acked.copy())
            delivery, now, ranges = self.leader.delivery, self.leader.now, (offset, offset + 1)
            if verb == "ack":
                done = delivery.acknowledge(liar, ranges, now=now)
            else:
                done = delivery.fail(liar, ranges, now=now)
            self.leader.step()
            if offset in self.leader.held.get(other, {}):
                assert not isinstance(done, Accepted), f"{liar} settled {offset} of {other}"
                assert before[1] == self.leader.group.acked
            return

    # --- the rest of the world -----------------------------------------------------------------

    @rule()
    def step(self) -> None:
        self.leader.step()

    @rule()
    @precondition(lambda self: self.leader.log)
    def commit(self) -> None:
        self.leader.commit_next()

    @rule()
    @precondition(lambda self: self.leader.log)
    def refuse(self) -> None:
        """The log has no room: what was proposed does not happen, and nobody may lose by it."""
        self.leader.refuse_next()

    @rule(seconds=st.sampled_from((0.01, 0.3, 1.0, 6.0)))
    def time_passes(self, seconds: float) -> None:
        self.leader.now = Micros(self.leader.now + int(seconds * SECOND))

    @rule(expected=st.sets(st.sampled_from(MEMBERS)), keep=st.integers(0, 3))
    def fail_over(self, expected: set[str], keep: int) -> None:
        self.leader.fail_over(expected=sorted(expected), keep=keep)

    @rule(share=st.floats(0, 1))
    def seek(self, share: float) -> None:
        start, end = 1_010, self.leader.records.end_offset
        self.leader.seek(max(start + int((end - start) * share), self.leader.records.start_offset))

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.leader.pause(paused=paused)

    @rule()
    def bury_one(self) -> None:
        intents = self.leader.group.intents
        told = [one for one, intent in intents.items() if intent.sequence in self.leader.letters]
        if told:
            self.leader.delivery.buried(told[0], intents[told[0]].sequence)

    @invariant()
    def nobody_has_more_than_credit_and_counts_agree(self) -> None:
        delivery = self.leader.delivery
        assert delivery.on_loan >= sum(delivery.members.values())
        assert all(count >= 0 for count in delivery.members.values())

    def teardown(self) -> None:
        """Everything comes to an end when members are well: acknowledged, or a dead letter."""
        wind_up(self.leader)


def wind_up(leader: Leader) -> None:
    """Let all members be well until everything has come to an end."""
    leader.pause(paused=False)
    leader.step()
    while leader.log:
        leader.commit_next()
    leader.delivery.prefer("")
    if leader.group.is_behind(leader.records.start_offset):
        leader.seek(leader.records.start_offset)
    for member in MEMBERS:
        leader.attach(member, 10_000)
    for _ in range(100):
        leader.wait(3 * SECOND)
        leader.bury()
        for member in MEMBERS:
            held = leader.held.get(member, {})
            if held:
                assert isinstance(leader.ack(member, *held), Accepted)
        leader.settle_down()
        if leader.group.floor == leader.records.end_offset:
            break
    assert leader.group.floor == leader.records.end_offset, "something was forgotten"
    assert leader.delivery.on_loan == 0
    busy = leader.delivery._ledger.order._sweep.busy  # type: ignore[attr-defined]
    assert busy.count == 0, "something is busy although all is done"


@pytest.mark.parametrize("kind", [GroupKind.STREAM, GroupKind.QUEUE, GroupKind.KEY])
def test_what_the_log_refuses_is_not_forgotten_and_not_overtaken(kind: GroupKind) -> None:
    """Walks of few kinds of steps, so that a hand-over or a rewind and a refusal meet often.

    Among everything else that can happen above they hardly ever do: a stream that was handed over
    while acknowledgements were refused (seed 21523 of the simulator) went unseen for thousands of
    runs, and one that was rewound (seed 110981) for tens of thousands. Without the mending of the
    first 8 of these 300 walks fail, without that of the second 5.
    """
    for seed in range(300):
        try:
            _walk(kind, random.Random(seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def _walk(kind: GroupKind, dice: random.Random) -> None:
    leader = Leader(kind, records=20)
    for member in MEMBERS:
        leader.attach(member, 10)
    for _ in range(40):
        member = dice.choice(MEMBERS)
        held = sorted(leader.held.get(member, {}))
        match dice.choice(
            ("ack", "ack", "prefer", "step", "step", "log", "log", "add", "nack", "release")
        ):
            case "ack" if held:
                is_cumulative = kind is GroupKind.STREAM and dice.random() < 0.7
                leader.ack(member, held[dice.randrange(len(held))], cumulative=is_cumulative)
            case "prefer":
                leader.delivery.prefer(member)
            case "step":
                leader.step()
            case "log" if leader.log:
                dice.choice((leader.commit_next, leader.refuse_next))()
            case "add":
                leader.records.add(Slot(key=dice.randrange(4)))
            case "nack" if held:
                leader.nack(member, held[0])
            case "release" if held:
                leader.release(member, held[0])
            case _:
                pass
    wind_up(leader)


@pytest.mark.filterwarnings("ignore")
class TestGroupUnderLoad(GroupUnderLoad.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(
        max_examples=60,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
