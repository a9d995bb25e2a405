"""The log with its unwritten end, and the storage beneath it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.raft.cluster import a_replica

from angarium.errors import InvalidArgument
from angarium.ids import Index, ReplicaId, Term
from angarium.raft import (
    ENTRY_OVERHEAD_BYTES,
    NO_LIMIT,
    Compacted,
    Config,
    ConfState,
    Entry,
    HardState,
    LogContradiction,
    MemoryStorage,
    RaftNode,
    Snapshot,
    Unavailable,
    within_bytes,
)
from angarium.raft.log import RaftLog


def _entries(first: int, *terms: int, data: bytes = b"") -> list[Entry]:
    return [Entry(Term(t), Index(i), data) for i, t in enumerate(terms, start=first)]


def _log(*terms: int) -> tuple[RaftLog, MemoryStorage]:
    storage = MemoryStorage()
    storage.append(_entries(1, *terms))
    return RaftLog(storage, applying_bytes_max=NO_LIMIT), storage


def _terms(log: RaftLog) -> list[int]:
    last = Index(log.last_index + 1)
    return [e.term for e in log.entries(log.first_index(), last, NO_LIMIT)]


# --- the storage ---------------------------------------------------------------------------------


def test_a_storage_answers_for_what_it_has_and_says_what_it_has_not() -> None:
    storage = MemoryStorage(Snapshot(Index(3), Term(2)))
    storage.append(_entries(4, 2, 3, 3))
    assert (storage.first_index(), storage.last_index()) == (4, 6)
    assert [storage.term(Index(i)) for i in (3, 4, 5)] == [2, 2, 3]
    with pytest.raises(Compacted):
        storage.term(Index(2))
    with pytest.raises(Unavailable):
        storage.term(Index(7))
    with pytest.raises(Compacted):
        storage.entries(Index(3), Index(5), NO_LIMIT)
    with pytest.raises(Unavailable):
        storage.entries(Index(4), Index(8), NO_LIMIT)


def test_a_storage_replaces_and_compacts() -> None:
    storage = MemoryStorage()
    storage.append(_entries(1, 1, 1, 1))
    storage.append(_entries(2, 2))
    assert [e.term for e in storage.entries(Index(1), Index(3), NO_LIMIT)] == [1, 2]
    snapshot = storage.create_snapshot(Index(2), conf_state=ConfState(), data=b"s")
    assert (snapshot.index, snapshot.term) == (2, 2)
    storage.compact(Index(2))
    assert (storage.first_index(), storage.last_index()) == (3, 2)
    with pytest.raises(Compacted):
        storage.compact(Index(1))
    storage.append(_entries(1, 1, 2, 3))  # the compacted part of it is no news
    assert [e.index for e in storage.entries(Index(3), Index(4), NO_LIMIT)] == [3]
    storage.apply_snapshot(Snapshot(Index(2), Term(2), data=b"old"))
    assert storage.snapshot().data == b"s"
    storage.apply_snapshot(Snapshot(Index(9), Term(4), data=b"new"))
    assert (storage.first_index(), storage.snapshot().data) == (10, b"new")


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(0, 200))
def test_entries_are_cut_at_the_bound_but_never_to_nothing(
    datas: list[bytes], bytes_max: int
) -> None:
    entries = [Entry(Term(1), Index(i), data) for i, data in enumerate(datas, start=1)]
    kept = within_bytes(entries, bytes_max)
    assert list(kept) == entries[: len(kept)]
    sizes = [len(e.data) + ENTRY_OVERHEAD_BYTES for e in entries]
    if entries:
        assert kept
        assert len(kept) == 1 or sum(sizes[: len(kept)]) <= bytes_max
        if len(kept) < len(entries):
            assert sum(sizes[: len(kept) + 1]) > bytes_max


# --- the log -------------------------------------------------------------------------------------


def test_a_log_reads_as_one_while_its_end_is_being_written() -> None:
    log, storage = _log(1, 1)
    log.append(_entries(3, 2, 2))
    assert _terms(log) == [1, 1, 2, 2]
    assert [e.index for e in log.next_unstable()] == [3, 4]
    log.start_writing()
    assert log.next_unstable() == ()
    assert log.has_unwritten
    log.append(_entries(5, 2))
    assert [e.index for e in log.next_unstable()] == [5]
    storage.append(_entries(3, 2, 2))
    log.written_to(Index(4), Term(2))
    assert _terms(log) == [1, 1, 2, 2, 2]
    assert [e.index for e in log.next_unstable()] == [5]


def test_what_replaces_entries_in_progress_is_written_again() -> None:
    log, _ = _log(1, 1)
    log.append(_entries(3, 2, 2, 2))
    log.start_writing()
    log.append(_entries(4, 3))
    assert _terms(log) == [1, 1, 2, 3]
    assert [(e.index, e.term) for e in log.next_unstable()] == [(4, 3)]
    log.append(_entries(2, 4))
    assert _terms(log) == [1, 4]
    assert [(e.index, e.term) for e in log.next_unstable()] == [(2, 4)]


def test_a_report_about_replaced_entries_is_not_believed() -> None:
    log, _ = _log(1)
    log.append(_entries(2, 1, 1))
    log.start_writing()
    log.append(_entries(2, 2, 2))
    log.written_to(Index(3), Term(1))
    assert log.has_unwritten
    assert _terms(log) == [1, 2, 2]


def test_a_log_tells_terms_wherever_they_are() -> None:
    log, storage = _log(1, 2, 2)
    storage.compact(Index(1))
    log.append(_entries(4, 3))
    assert [log.term_at(Index(i)) for i in range(6)] == [None, 1, 2, 2, 3, None]
    log.append(_entries(3, 4))  # reaches back into what is written
    assert [log.term_at(Index(i)) for i in range(1, 5)] == [1, 2, 4, None]


def _guess_step_by_step(log: RaftLog, index: int, term: int) -> tuple[int, int]:
    while index > 0:
        own = log.term_at(Index(index))
        if own is None or own <= term:
            return index, own or 0
        index -= 1
    return 0, 0


@settings(max_examples=300)
@given(
    terms=st.lists(st.integers(1, 6), max_size=9).map(sorted),
    unwritten=st.integers(0, 9),
    compacted=st.integers(0, 9),
    index=st.integers(0, 12),
    term=st.integers(0, 7),
)
def test_a_guess_is_the_highest_position_that_may_match(
    terms: list[int], unwritten: int, compacted: int, index: int, term: int
) -> None:
    written = max(len(terms) - unwritten, 0)
    log, storage = _log(*terms[:written])
    if terms[written:]:
        log.append(_entries(written + 1, *terms[written:]))
    if 0 < compacted <= written:
        storage.compact(Index(compacted))
    guess = log.guess_match(Index(index), Term(term))
    assert guess == _guess_step_by_step(log, index, term)


@settings(max_examples=200)
@given(
    datas=st.lists(st.binary(max_size=20), min_size=1, max_size=9),
    written=st.integers(0, 9),
    bytes_max=st.integers(0, 250),
)
def test_a_log_is_cut_at_the_bound_wherever_its_entries_are(
    datas: list[bytes], written: int, bytes_max: int
) -> None:
    entries = [Entry(Term(1), Index(i), data) for i, data in enumerate(datas, start=1)]
    storage = MemoryStorage()
    storage.append(entries[:written])
    log = RaftLog(storage, applying_bytes_max=NO_LIMIT)
    if entries[written:]:
        log.append(entries[written:])
    for start in range(1, len(entries) + 1):
        expected = within_bytes(entries, bytes_max, start=start - 1)
        assert log.entries(Index(start), Index(len(entries) + 1), bytes_max) == tuple(expected)


def test_nothing_committed_is_replaced_or_missing() -> None:
    log, _ = _log(1, 1, 1)
    log.commit_to(Index(2))
    log.commit_to(Index(1))
    assert log.committed == 2
    with pytest.raises(LogContradiction):
        log.append(_entries(2, 2))
    with pytest.raises(LogContradiction):
        log.commit_to(Index(4))


def test_a_restored_log_begins_after_the_snapshot() -> None:
    log, _ = _log(1, 1, 1)
    snapshot = Snapshot(Index(7), Term(3))
    log.restore(snapshot)
    assert (log.first_index(), log.last_index, log.last_term, log.committed) == (8, 7, 3, 7)
    assert log.term_at(Index(7)) == 3
    assert log.term_at(Index(3)) is None
    assert log.next_snapshot() == snapshot
    log.start_writing()
    assert log.next_snapshot() is None
    assert not log.has_next_committed
    log.snapshot_installed(Index(7))
    assert log.pending_snapshot is None


# --- starting ------------------------------------------------------------------------------------


def test_a_replica_goes_on_where_the_machine_stopped() -> None:
    member = a_replica(voters=[1], log=[1, 1, 1, 1], commit=4, applied=Index(2))
    assert [e.index for e in member.node.ready().committed] == [3, 4]


@pytest.mark.parametrize(
    "hard_state",
    [
        HardState(Term(1), ReplicaId(0), Index(9)),
        HardState(Term(1), ReplicaId(0), Index(1)),
        HardState(Term(0), ReplicaId(1), Index(3)),
    ],
)
def test_a_disk_that_contradicts_itself_is_not_started_from(hard_state: HardState) -> None:
    storage = MemoryStorage(Snapshot(Index(3), Term(1), ConfState(voters=(ReplicaId(1),))))
    storage.set_hard_state(hard_state)
    with pytest.raises(InvalidArgument):
        RaftNode(Config(id=ReplicaId(1)), storage, jitter=lambda _: 0)
