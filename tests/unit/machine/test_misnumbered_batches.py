"""A batch that a leader has numbered otherwise than a replica's records continue."""

from __future__ import annotations

import pytest

from angarium.batch import encode, stamp
from angarium.ids import Index, Micros, Offset, Term
from angarium.machine import Appended, Misnumbered, PartitionMachine, Refused, encode_append


def stamped(offset: int, time: int) -> bytes:
    batch = encode([b"a", b"b"])
    stamp(batch, base_offset=Offset(offset), term=Term(1), append_time=Micros(time))
    return encode_append([batch])


@pytest.fixture
def machine() -> PartitionMachine:
    machine = PartitionMachine()
    applied = machine.apply(Index(1), Term(1), stamped(0, 10))
    assert isinstance(applied.outcomes[0], Appended)
    assert applied.misnumbered is None
    return machine


@pytest.mark.parametrize(
    ("offset", "time", "expected"),
    [
        (3, 11, Misnumbered.ABOVE),
        (1, 11, Misnumbered.NOT_ABOVE),
        (0, 11, Misnumbered.NOT_ABOVE),
        (2, 10, Misnumbered.NOT_ABOVE),
    ],
)
def test_it_is_refused_with_one_code_and_reported(
    machine: PartitionMachine, offset: int, time: int, expected: Misnumbered
) -> None:
    applied = machine.apply(Index(2), Term(1), stamped(offset, time))
    (outcome,) = applied.outcomes
    # The answer is part of the state, so it is the same on every replica that refuses.
    assert isinstance(outcome, Refused)
    assert outcome.code == "INVALID_COMMAND"
    assert applied.misnumbered is expected
    assert not applied.visible
    assert machine.next_offset == 2


def test_a_batch_that_continues_the_records_is_not_misnumbered(machine: PartitionMachine) -> None:
    applied = machine.apply(Index(2), Term(1), stamped(2, 11))
    assert applied.misnumbered is None
    assert machine.next_offset == 4
