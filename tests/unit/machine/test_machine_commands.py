"""Commands as bytes: every one comes back, and hostile bytes are refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.leader import batch

from angarium.errors import InvalidCommand
from angarium.ids import Epoch, Index, Micros, Offset, ProducerId, RaftGroupId, Sequence, Term
from angarium.kinds import GroupKind
from angarium.machine import (
    Abort,
    Begin,
    Clock,
    Command,
    Commit,
    Compact,
    Configure,
    Cursors,
    Decide,
    Fence,
    Finish,
    Kind,
    PartitionLimits,
    PartitionMachine,
    ProducerDelete,
    Refused,
    Reserve,
    Restore,
    SeriesDelete,
    Stage,
    Trim,
    batches_of,
    decode,
    encode,
    encode_append,
    knows,
)
from angarium.machine.changes import (
    Ack,
    DeadLetter,
    DeadLettered,
    Delete,
    Member,
    Members,
    Open,
    Pause,
    Retry,
    Seek,
    Set,
)
from angarium.machine.changes import GroupSettings as Settings
from angarium.machine.forms import VERSION

E, S = Epoch(2), Sequence(7)
EXAMPLES: list[Command] = [
    Stage(time=Micros(5), name="t", epoch=E, sequence=S, stage="s", part=1, batches=b"bytes"),
    Stage(
        name="t",
        epoch=E,
        sequence=S,
        stage="s",
        part=0,
        acks=(("g", 3, 1, 2),),
        home=RaftGroupId(4),
    ),
    Commit(time=Micros(6), name="t", epoch=E, sequence=S, stages=("a", "b")),
    Abort(time=Micros(6), name="t", epoch=E, sequence=S),
    Begin(
        time=Micros(6), name="t", epoch=E, sequence=S, participants=(RaftGroupId(1), RaftGroupId(2))
    ),
    Decide(name="t", epoch=E, sequence=S, commit=True, stages=((RaftGroupId(1), ("a",)),)),
    Finish(time=Micros(6), name="t", epoch=E, sequence=S),
    Cursors(
        time=Micros(9),
        changes=(
            Open("g", GroupKind.KEY, Offset(4)),
            Ack("g", Index(3), (1, 2, 5, 9)),
            Retry("g", Index(3), Offset(4), 2, Micros(8), "why"),
            DeadLetter("g", Index(3), Offset(4), "why"),
            DeadLettered("g", Offset(4), Sequence(0)),
            Seek("g", Offset(0)),
            Set("g", Settings(max_attempts=2)),
            Pause("g", True),
            Members("g", 1, (Member("m", 3),)),
            Delete("g"),
        ),
    ),
    Trim(time=Micros(1), start_offset=Offset(9)),
    Compact(time=Micros(9), until=Offset(4), tombstones_before=Micros(3)),
    Configure(limits=PartitionLimits(groups_max=3)),
    Reserve(time=Micros(1), count=4),
    Fence(time=Micros(2), layout=3),
    Restore(time=Micros(2), batches=b"b", next_offset=Offset(9), start_offset=Offset(3)),
    ProducerDelete(producer=ProducerId(5)),
    SeriesDelete(name="t"),
    Clock(time=Micros(77)),
]


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda one: type(one).__name__)
def test_a_command_comes_back_as_it_was(command: Command) -> None:
    assert decode(encode(command)) == command
    assert decode(memoryview(encode(command))) == command


def test_every_kind_has_an_example() -> None:
    assert {encode(one)[0] for one in EXAMPLES} == set(Kind) - {Kind.APPEND}


def test_batches_in_an_append_stay_aligned_and_apart() -> None:
    data = encode_append([batch(3), batch(1), batch(2)])
    views = batches_of(data)
    assert [len(one) % 8 for one in views] == [0, 0, 0]
    assert b"".join(views) == data[8:]


def test_kinds_and_versions_of_a_newer_release_are_not_known_and_change_nothing() -> None:
    later = VERSION + 1
    unknown = [
        bytes((63, VERSION)),
        bytes((Kind.APPEND, later)) + encode_append([batch(2)])[2:],
        *(bytes((one[0], later)) + one[2:] for one in map(encode, EXAMPLES)),
    ]
    machine = PartitionMachine()
    for index, data in enumerate(unknown, 1):
        assert not knows(data)
        before = machine.numbering
        (outcome,) = machine.apply(Index(index), Term(1), data).outcomes
        assert isinstance(outcome, Refused)
        assert outcome.code == InvalidCommand.code
        assert (machine.next_offset, machine.clock, machine.numbering) == (0, 0, before)


def test_what_this_release_writes_is_known_and_so_is_what_is_malformed_anyway() -> None:
    written = [*map(encode, EXAMPLES), encode_append([batch(2)])]
    malformed = [b"", b"\x01", bytes((Kind.TRIM, VERSION)), bytes((Kind.APPEND, VERSION))]
    assert all(map(knows, [*written, *malformed]))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_commands_are_decoded_or_refused_and_never_crash_a_machine(
    data: st.DataObject,
) -> None:
    source = data.draw(
        st.sampled_from([*map(encode, EXAMPLES), encode_append([batch(2), batch(1)])])
    )
    mutated = bytearray(source)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    machine = PartitionMachine()
    machine.apply(Index(1), Term(1), bytes(mutated))
    restored = PartitionMachine()
    restored.restore(machine.snapshot())
    assert restored.snapshot() == machine.snapshot()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64))
def test_random_bytes_are_decoded_or_refused(data: bytes) -> None:
    with contextlib.suppress(InvalidCommand):
        decode(data)
