"""What a partition remembers of idempotency keys."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.leader import TERM, Leader, assert_refused, batch

from angarium.ids import Micros
from angarium.machine import (
    NAMED_FROM,
    Appended,
    Duplicate,
    Outcome,
    PartitionLimits,
    PartitionMachine,
)
from angarium.machine.keys import FORGOTTEN_AT_ONCE, KEYED_FROM, identity_of
from angarium.replica.acks import Dealt


def keyed(key: bytes, content: bytes = b"", records: int = 1) -> bytearray:
    producer, sequence = identity_of(key, content)
    return batch(records, producer=producer, sequence=sequence)


def test_a_key_that_comes_again_is_answered_with_its_first_offset() -> None:
    leader = Leader()
    (first,) = leader.publish(keyed(b"a", records=3))
    leader.publish(batch(2))
    (again,) = leader.publish(keyed(b"a", records=3))
    assert isinstance(first, Appended)
    assert again == Duplicate(first.base_offset, first.next_offset, first.append_time)
    assert leader.machine.next_offset == 5


def test_a_key_that_comes_twice_before_anything_is_committed_is_recognised() -> None:
    leader = Leader()
    first, again = leader.publish(keyed(b"a"), keyed(b"a"))
    assert isinstance(first, Appended)
    assert isinstance(again, Duplicate)
    assert leader.machine.next_offset == 1


def test_a_key_with_other_content_is_refused_and_the_first_one_holds() -> None:
    leader = Leader()
    leader.publish(keyed(b"a", b"this"))
    assert_refused(leader.publish(keyed(b"a", b"that"))[0], "KEY_REUSED", "take a new one")
    assert isinstance(leader.publish(keyed(b"a", b"this"))[0], Duplicate)
    assert leader.machine.next_offset == 1


def test_a_key_is_forgotten_when_its_time_is_over() -> None:
    leader = Leader(PartitionLimits(key_micros_max=1_000))
    leader.publish(keyed(b"a"))
    leader.now += 900
    assert isinstance(leader.publish(keyed(b"a"))[0], Duplicate)
    leader.now += 200
    # Being asked for does not keep a key: the time counts from when it was new.
    assert isinstance(leader.publish(keyed(b"a"))[0], Appended)
    assert isinstance(leader.publish(keyed(b"a"))[0], Duplicate)
    assert leader.machine.numbering.keys.count == 1


def test_beyond_the_limit_the_oldest_key_is_forgotten() -> None:
    leader = Leader(PartitionLimits(keys_max=3))
    for key in (b"a", b"b", b"c", b"d"):
        leader.publish(keyed(key))
    assert isinstance(leader.publish(keyed(b"b"))[0], Duplicate)
    assert isinstance(leader.publish(keyed(b"d"))[0], Duplicate)
    assert isinstance(leader.publish(keyed(b"a"))[0], Appended)
    assert leader.machine.numbering.keys.count == 3


def test_keys_that_are_too_old_go_a_few_at_a_time() -> None:
    leader = Leader(PartitionLimits(key_micros_max=1_000))
    for number in range(20):
        leader.publish(keyed(b"%d" % number))
    leader.now += 5_000
    leader.publish(keyed(b"new"))
    assert leader.machine.numbering.keys.count == 20 + 1 - FORGOTTEN_AT_ONCE


def test_a_limit_of_none_remembers_none() -> None:
    leader = Leader(PartitionLimits(keys_max=0))
    assert isinstance(leader.publish(keyed(b"a"))[0], Appended)
    assert isinstance(leader.publish(keyed(b"a"))[0], Appended)
    assert leader.machine.numbering.keys.count == 0


def test_keys_are_no_producers_and_leave_them_alone() -> None:
    leader = Leader(PartitionLimits(producers_max=1, named_producers_max=1))
    leader.publish(batch(1, producer=7), batch(1, producer=NAMED_FROM))
    for number in range(5):
        assert isinstance(leader.publish(keyed(b"%d" % number))[0], Appended)
    assert isinstance(leader.publish(batch(1, producer=7))[0], Duplicate)
    assert isinstance(leader.publish(batch(1, producer=NAMED_FROM))[0], Duplicate)


def test_a_snapshot_keeps_keys_in_the_order_of_their_age() -> None:
    limits = PartitionLimits(keys_max=3)
    leader = Leader(limits)
    for key in (b"a", b"b", b"c"):
        leader.publish(keyed(key))
    other = Leader(limits)
    other.machine.restore(leader.machine.snapshot())
    assert isinstance(other.machine, PartitionMachine)
    assert other.machine.snapshot() == leader.machine.snapshot()
    other = _led(other.machine, leader.index)
    other.publish(keyed(b"d"))
    assert isinstance(other.publish(keyed(b"a"))[0], Appended)
    assert isinstance(other.publish(keyed(b"c"))[0], Duplicate)


def _led(machine: PartitionMachine, index: int) -> Leader:
    from angarium.machine import Projection

    leader = Leader()
    leader.machine, leader.index = machine, index
    leader.projection = Projection(machine)
    leader.now = machine.clock + 1
    return leader


@given(key=st.binary(max_size=255), content=st.binary(max_size=50))
def test_an_identity_is_that_of_a_key_and_fits_a_batch(key: bytes, content: bytes) -> None:
    producer, sequence = identity_of(key, content)
    assert KEYED_FROM <= producer < 1 << 63
    assert 0 <= sequence < 1 << 62
    assert len(batch(3, producer=producer, sequence=sequence)) > 0


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(1, 400)),
        min_size=1,
        max_size=60,
    )
)
def test_a_key_is_stored_once_within_its_window(sends: list[tuple[int, int, int]]) -> None:
    """Compared with the plainest model there is: a list of what was stored, and when."""
    limits = PartitionLimits(keys_max=4, key_micros_max=1_000)
    leader = Leader(limits)
    remembered: dict[int, tuple[int, int]] = {}
    for key, content, pause in sends:
        leader.now += pause
        now = leader.now
        (outcome,) = leader.publish(keyed(b"%d" % key, b"%d" % content))
        known = remembered.get(key)
        if known is not None and now - known[1] <= limits.key_micros_max:
            expected = Duplicate if known[0] == content else None
            assert isinstance(outcome, Duplicate) if expected else not isinstance(outcome, Appended)
            continue
        assert isinstance(outcome, Appended)
        remembered.pop(key, None)
        if len(remembered) == limits.keys_max:
            del remembered[next(iter(remembered))]
        remembered[key] = (content, now)


# --- behind a fence -----------------------------------------------------------------------------


def behind_the_fence(leader: Leader, one: bytearray) -> Outcome:
    """Publish a batch that an older layout than the partition's has sent there."""
    fault = Dealt(0, born=0).fault(1)
    assert fault is not None
    prepared = leader.projection.append([one], term=TERM, now=Micros(leader.now), barred={0: fault})
    assert prepared.data is None, "nothing is stored"
    return prepared.outcomes[0]


def test_behind_a_fence_a_key_is_judged_as_before_and_never_stored() -> None:
    leader = Leader(PartitionLimits(key_micros_max=1_000))
    (first,) = leader.publish(keyed(b"a", b"this"))
    assert isinstance(first, Appended)
    again = behind_the_fence(leader, keyed(b"a", b"this"))
    assert again == Duplicate(first.base_offset, first.next_offset, first.append_time)
    assert_refused(behind_the_fence(leader, keyed(b"a", b"that")), "KEY_REUSED", "take a new one")
    assert_refused(behind_the_fence(leader, keyed(b"b")), "LAYOUT_CHANGED", "layout 0")
    leader.now += 2_000
    assert_refused(behind_the_fence(leader, keyed(b"a", b"this")), "LAYOUT_CHANGED", "layout 0")
    assert leader.machine.next_offset == 1
