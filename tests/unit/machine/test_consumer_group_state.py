"""Where consumer groups stand, and what moves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.machine.leader import Leader, assert_refused, batch

from angarium.ids import Index, Micros, Offset, Sequence
from angarium.kinds import Behind, GroupKind
from angarium.machine import (
    Acknowledged,
    DeadLettering,
    Done,
    MembersSet,
    PartitionLimits,
    Positioned,
    Trim,
)
from angarium.machine.changes import (
    Ack,
    DeadLetter,
    DeadLettered,
    Delete,
    GroupSettings,
    Member,
    Members,
    Open,
    Pause,
    Retry,
    Seek,
    Set,
)

if TYPE_CHECKING:
    from angarium.machine.cursors import Group


class Fixture:
    """A partition of 100 records with one queue group at its start."""

    def __init__(self, limits: PartitionLimits | None = None) -> None:
        self.leader = Leader(limits)
        self.leader.publish(batch(100))
        (opened,) = self.leader.change(Open("g", GroupKind.QUEUE, Offset(0)))
        assert isinstance(opened, Positioned)
        self.generation = opened.generation

    @property
    def group(self) -> Group:
        return self.leader.machine.groups.by_name["g"]

    def ack(self, *ranges: int) -> object:
        return self.leader.change(Ack("g", self.generation, ranges))[0]

    def retry(self, offset: int, attempts: int, *, reason: str = "") -> object:
        change = Retry("g", self.generation, Offset(offset), attempts, Micros(5_000), reason)
        return self.leader.change(change)[0]

    def dead_letter(self, offset: int) -> object:
        return self.leader.change(DeadLetter("g", self.generation, Offset(offset), "poison"))[0]


def test_a_group_keeps_its_kind_and_its_place() -> None:
    one = Fixture()
    one.ack(0, 10)
    leader = one.leader
    (again,) = leader.change(Open("g", GroupKind.QUEUE, Offset(50)))
    assert again == Positioned(Offset(10), one.generation, repeated=True)
    assert_refused(leader.change(Open("g", GroupKind.STREAM, Offset(0)))[0], "ALREADY_EXISTS")


def test_a_group_cannot_start_beyond_the_end() -> None:
    outcome = Fixture().leader.change(Open("h", GroupKind.STREAM, Offset(101)))[0]
    assert_refused(outcome, "OFFSET_OUT_OF_RANGE")


def test_the_floor_waits_for_what_is_not_acknowledged() -> None:
    one = Fixture()
    assert one.ack(1, 5, 7, 100) == Acknowledged(Offset(0), 97)
    assert one.ack(0, 1) == Acknowledged(Offset(5), 1)
    assert one.ack(0, 7) == Acknowledged(Offset(100), 2)


def test_acknowledging_twice_adds_nothing() -> None:
    one = Fixture()
    one.ack(3, 6)
    assert one.ack(3, 6) == Acknowledged(Offset(0), 0)
    assert one.ack(2, 7) == Acknowledged(Offset(0), 2)


def test_acknowledgements_outside_the_partition_are_refused_whole() -> None:
    one = Fixture()
    assert_refused(one.ack(0, 5, 90, 101), "OFFSET_OUT_OF_RANGE")
    assert_refused(one.ack(5, 5), "OFFSET_OUT_OF_RANGE")
    assert_refused(one.ack(5), "INVALID_ARGUMENT")
    assert one.group.floor == 0


def test_an_unknown_group_is_an_error() -> None:
    leader = Leader()
    outcomes = leader.change(
        Ack("none", Index(1), (0, 1)), Seek("none", Offset(0)), Pause("none", True), Delete("none")
    )
    for outcome in outcomes:
        assert_refused(outcome, "NOT_FOUND")


def test_one_entry_carries_the_changes_of_many_groups() -> None:
    leader = Leader()
    leader.publish(batch(10))
    leader.change(*(Open(f"g{n}", GroupKind.QUEUE, Offset(0)) for n in range(50)))
    outcomes = leader.change(
        *(Ack(f"g{n}", Index(leader.index), (0, n % 10 + 1)) for n in range(50))
    )
    assert [one.floor for one in outcomes if isinstance(one, Acknowledged)] == [
        n % 10 + 1 for n in range(50)
    ]


def test_a_group_that_was_moved_ignores_older_deliveries() -> None:
    one = Fixture()
    one.ack(0, 50)
    one.retry(60, 1)
    (moved,) = one.leader.change(Seek("g", Offset(20)))
    assert isinstance(moved, Positioned)
    assert_refused(one.ack(20, 30), "GROUP_FENCED")
    assert_refused(one.retry(60, 2), "GROUP_FENCED")
    assert one.group.floor == 20
    assert one.group.attempts == {}
    one.generation = moved.generation
    assert one.ack(20, 30) == Acknowledged(Offset(30), 10)


def test_a_group_opened_again_is_another_group() -> None:
    one = Fixture()
    before = one.group.opened_index
    one.leader.change(Delete("g"))
    one.leader.change(Open("g", GroupKind.STREAM, Offset(5)))
    assert_refused(one.ack(5, 6), "GROUP_FENCED")
    assert one.group.opened_index > before


def test_attempts_are_remembered_with_their_reason_and_times() -> None:
    one = Fixture()
    assert one.retry(4, 1, reason="timeout") == Done()
    first = one.leader.machine.clock
    one.retry(4, 2, reason="x" * 10_000)
    attempts = one.group.attempts[4]
    assert (attempts.count, attempts.not_before, attempts.first_at) == (2, 5_000, first)
    assert attempts.last_at == one.leader.machine.clock
    assert len(attempts.reason) == 512


def test_attempts_never_become_fewer() -> None:
    one = Fixture()
    one.retry(4, 3)
    assert_refused(one.retry(4, 2), "INVALID_ARGUMENT")
    # A release does not count: the same number again, with another time.
    assert one.retry(4, 3) == Done()


def test_an_acknowledged_record_has_no_attempts_any_more() -> None:
    one = Fixture()
    for offset in (3, 4, 50):
        one.retry(offset, 1)
    one.ack(4, 5)
    assert sorted(one.group.attempts) == [3, 50]
    one.ack(0, 100)
    assert one.group.attempts == {}
    assert_refused(one.retry(4, 2), "NOT_FOUND")


def test_dead_letters_get_sequences_without_gap_and_keep_them() -> None:
    one = Fixture()
    assert one.dead_letter(7) == DeadLettering(Sequence(0))
    assert one.dead_letter(3) == DeadLettering(Sequence(1))
    assert one.dead_letter(7) == DeadLettering(Sequence(0), repeated=True)


def test_a_record_ends_when_its_dead_letter_is_stored_and_not_before() -> None:
    one = Fixture()
    one.dead_letter(7)
    # Neither a cumulative acknowledgement nor a late one passes the promise.
    assert one.ack(0, 20) == Acknowledged(Offset(7), 19)
    assert one.ack(7, 8) == Acknowledged(Offset(7), 0)
    leader = one.leader
    assert leader.change(DeadLettered("g", Offset(7), Sequence(9)))[0] == Done(changed=False)
    assert leader.change(DeadLettered("g", Offset(7), Sequence(0)))[0] == Done()
    assert one.group.floor == 20
    assert leader.change(DeadLettered("g", Offset(7), Sequence(0)))[0] == Done(changed=False)
    assert_refused(one.dead_letter(7), "NOT_FOUND")


def test_many_promised_dead_letters_are_passed_by_small_and_large_ranges_alike() -> None:
    one = Fixture()
    for offset in range(10, 60, 2):
        one.dead_letter(offset)
    assert one.ack(0, 13) == Acknowledged(Offset(10), 11)
    assert one.ack(10, 12) == Acknowledged(Offset(10), 0)
    assert one.ack(5, 100) == Acknowledged(Offset(10), 64)
    assert [offset for offset in range(100) if offset not in one.group.acked] == [*range(10, 60, 2)]


def test_a_promised_dead_letter_survives_a_move_of_the_group() -> None:
    one = Fixture()
    one.dead_letter(7)
    (moved,) = one.leader.change(Seek("g", Offset(0)))
    assert isinstance(moved, Positioned)
    one.generation = moved.generation
    one.leader.change(DeadLettered("g", Offset(7), Sequence(0)))
    assert 7 not in one.group.acked
    assert one.dead_letter(7) == DeadLettering(Sequence(1))


def test_the_member_list_has_versions_without_gap() -> None:
    one = Fixture()
    members = (Member("a", 1), Member("b", 2))
    assert one.leader.change(Members("g", 1, members))[0] == MembersSet(1)
    assert_refused(one.leader.change(Members("g", 1, ()))[0], "GROUP_FENCED")
    assert_refused(one.leader.change(Members("g", 3, ()))[0], "GROUP_FENCED")
    assert one.group.members == members


def test_settings_and_pauses_are_kept() -> None:
    one = Fixture()
    settings = GroupSettings(max_attempts=9, behind=Behind.JUMP)
    one.leader.change(Set("g", settings), Pause("g", True))
    assert one.group.settings == settings
    assert one.group.paused
    assert one.leader.change(Pause("g", True))[0] == Done(changed=False)


def test_trimming_tells_a_group_behind_but_does_not_move_it() -> None:
    one = Fixture()
    one.ack(0, 10)
    one.leader.do(Trim(start_offset=Offset(40)))
    assert one.group.floor == 10
    assert one.group.is_behind(one.leader.machine.start_offset)
    assert one.leader.machine.groups.lowest_floor() == 10


def test_limits_of_groups_are_named_and_change_nothing() -> None:
    one = Fixture(PartitionLimits(groups_max=1, containers_max=1, retries_max=1, members_max=1))
    one.leader.publish(batch(4_000))
    assert isinstance(one.ack(2, 3), Acknowledged)
    assert isinstance(one.ack(5, 6), Acknowledged), "the same container"
    for refusal, limit in (
        (one.ack(2_000, 2_001), "containers_max"),
        (one.leader.change(Open("h", GroupKind.QUEUE, Offset(0)))[0], "groups_max"),
        (one.leader.change(Members("g", 1, (Member("a"), Member("b"))))[0], "members_max"),
    ):
        assert_refused(refusal, "RESOURCE_EXHAUSTED")
        assert limit in getattr(refusal, "message", "")
    one.retry(50, 1)
    assert_refused(one.retry(51, 1), "RESOURCE_EXHAUSTED")
    assert one.retry(50, 2) == Done()
    assert one.ack(0, 2) == Acknowledged(Offset(3), 2), "what makes room is always taken"
