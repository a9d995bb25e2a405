"""Random requests over small alphabets, so that they meet each other in every way."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import strategies as st
from tests.unit.machine.leader import batch

from angarium.ids import Epoch, Index, Micros, Offset, ProducerId, RaftGroupId, Sequence
from angarium.kinds import GroupKind
from angarium.machine import (
    NAMED_FROM,
    Abort,
    Begin,
    Clock,
    Command,
    Commit,
    Compact,
    Configure,
    Cursors,
    Decide,
    Finish,
    PartitionLimits,
    ProducerDelete,
    Reserve,
    Restore,
    SeriesDelete,
    Stage,
    Trim,
)
from angarium.machine.changes import (
    Ack,
    Change,
    DeadLetter,
    DeadLettered,
    Delete,
    Member,
    Members,
    Open,
    Pause,
    Retry,
    Seek,
)
from angarium.machine.keys import KEYED_FROM

Batches: TypeAlias = list[tuple[int, int, int, int]]
"""Records, producer, epoch, sequence of each batch of an append."""

Request: TypeAlias = Batches | Command

LIMITS = PartitionLimits(
    producers_max=3,
    named_producers_max=2,
    series_max=1,
    series_micros_min=40,
    decisions_micros_min=40,
    attempts_max=2,
    stages_max=2,
    staged_bytes_max=1_000,
    transaction_micros_max=60,
    groups_max=2,
    containers_max=2,
    retries_max=2,
    keys_max=2,
    key_micros_max=60,
)

_name = st.sampled_from(["t", "u"])
_small = st.integers(0, 3)
_stage = st.sampled_from(["a", "b"])
_offset = st.one_of(st.integers(0, 12), st.sampled_from([1_023, 1_024, 2_047, 3_000])).map(Offset)
_generation = st.integers(1, 40).map(Index)
_producer = st.one_of(
    st.integers(0, 6),
    st.sampled_from([NAMED_FROM, NAMED_FROM + 1]),
    st.integers(KEYED_FROM, KEYED_FROM + 3),
)

_sequence = st.one_of(st.just(0), st.integers(0, 5))

batches: st.SearchStrategy[Batches] = st.lists(
    st.tuples(st.integers(1, 2), _producer, st.sampled_from([0, 0, 0, 1, 2]), _sequence),
    min_size=1,
    max_size=3,
)


def build(sends: Batches) -> list[bytearray]:
    """Return the unstamped batches of an append."""
    return [
        batch(records, producer=producer, epoch=epoch, sequence=sequence)
        for records, producer, epoch, sequence in sends
    ]


@st.composite
def _transaction(draw: st.DrawFn) -> Command:
    name, epoch, sequence = draw(_name), Epoch(draw(_small)), Sequence(draw(_small))
    stages = tuple(draw(st.lists(_stage, max_size=2)))
    acks = draw(
        st.lists(st.tuples(_name, st.integers(1, 40), st.just(0), st.integers(1, 5)), max_size=1)
    )
    home = draw(st.sampled_from([None, RaftGroupId(5)]))
    groups = tuple(draw(st.lists(st.integers(1, 3).map(RaftGroupId), max_size=2, unique=True)))
    choices: list[Command] = [
        Stage(
            name=name,
            epoch=epoch,
            sequence=sequence,
            stage=draw(_stage),
            part=draw(st.integers(0, 1)),
            home=home,
            batches=bytes(batch(draw(st.integers(1, 2)))),
            acks=tuple(acks),
        ),
        Commit(name=name, epoch=epoch, sequence=sequence, stages=stages),
        Abort(name=name, epoch=epoch, sequence=sequence),
        Begin(name=name, epoch=epoch, sequence=sequence, participants=groups),
        Decide(
            name=name,
            epoch=epoch,
            sequence=sequence,
            commit=draw(st.booleans()),
            stages=tuple((group, stages) for group in groups),
        ),
        Finish(name=name, epoch=epoch, sequence=sequence),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def _change(draw: st.DrawFn) -> Change:
    group, generation, offset = draw(_name), draw(_generation), draw(_offset)
    ends = sorted(draw(st.lists(st.integers(0, 30), min_size=2, max_size=4)))
    choices: list[Change] = [
        Open(group, draw(st.sampled_from(GroupKind)), offset),
        Ack(group, generation, tuple(ends)),
        Ack(group, generation, (offset, offset + 1)),
        Retry(group, generation, offset, draw(_small), Micros(4), "reason"),
        DeadLetter(group, generation, offset),
        DeadLettered(group, offset, Sequence(draw(_small))),
        Seek(group, offset),
        Pause(group, draw(st.booleans())),
        Members(group, draw(_small), (Member("m"),)),
        Delete(group),
    ]
    return draw(st.sampled_from(choices))


commands: st.SearchStrategy[Command] = st.one_of(
    _transaction(),
    _transaction(),
    st.lists(_change(), max_size=6).map(lambda changes: Cursors(changes=tuple(changes))),
    st.builds(Trim, start_offset=_offset),
    st.builds(Reserve, count=st.integers(0, 1_500)),
    st.builds(Restore, next_offset=_offset, start_offset=_offset),
    st.builds(ProducerDelete, producer=_producer.map(ProducerId)),
    st.builds(SeriesDelete, name=_name),
    st.just(Clock()),
    st.builds(Compact, until=_offset, tombstones_before=st.integers(0, 3).map(Micros)),
    st.just(Configure(limits=PartitionLimits(producers_max=1, staged_bytes_max=400))),
    st.just(Configure(limits=LIMITS)),
)

requests: st.SearchStrategy[Request] = st.one_of(batches, commands)
