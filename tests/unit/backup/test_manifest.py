"""The files that say what a backup is: every change of one is noticed, and it is named."""

from __future__ import annotations

from hashlib import sha256

import pytest
from msgspec.structs import replace
from tests.unit.backup.memory_store import MemoryStore

from angarium.api import TopicConfig
from angarium.api.backups import KeptAccounts, KeptUser
from angarium.backup.manifest import (
    KeptFile,
    KeptPartition,
    KeptTopic,
    Manifest,
    RecordFile,
    State,
    decoded,
    encoded,
    loaded,
    manifest_name,
)
from angarium.backup.verifying import verified
from angarium.batch import encode, stamp
from angarium.errors import CorruptData, NewerRelease, NotFound
from angarium.ids import Micros, Offset, Term, TopicId


def _batch(base: int, records: int) -> bytes:
    made = encode([b"value %d" % base] * records)
    stamp(made, base_offset=Offset(base), term=Term(1), append_time=Micros(1 + base))
    return bytes(made)


def _put(store: MemoryStore, name: str, data: bytes) -> KeptFile:
    store.write(name, data)
    return KeptFile(name=name, bytes=len(data), sha256=sha256(data).hexdigest())


def _records(store: MemoryStore, name: str, *batches: bytes, first: int, past: int) -> RecordFile:
    file = _put(store, name, b"".join(batches))
    return RecordFile(
        name=name,
        bytes=file.bytes,
        sha256=file.sha256,
        first=Offset(first),
        next=Offset(past),
        records=past - first,
    )


def _backup() -> MemoryStore:
    """A store with one backup of a topic in two files."""
    store = MemoryStore()
    state = State(accounts=KeptAccounts(users=(KeptUser(name="alice", scrypt="hash"),)))
    files = (
        _records(store, "records/a", _batch(0, 3), _batch(3, 2), first=0, past=5),
        _records(store, "records/b", _batch(7, 3), first=7, past=10),
    )
    topic = KeptTopic(
        name="orders",
        id=TopicId(1),
        created_at=Micros(1),
        config=TopicConfig(),
        partitions=(KeptPartition(number=0, start=Offset(0), end=Offset(10), files=files),),
    )
    manifest = Manifest(
        number=1,
        cluster="c",
        release="0",
        began_at=Micros(1),
        topics=(topic,),
        state=_put(store, "state/1", encoded(state)),
    )
    store.write(manifest_name(1), encoded(manifest))
    return store


def _faults(store: MemoryStore) -> list[str]:
    try:
        return verified(store, None, told=lambda *_: None)[1]
    except CorruptData as error:
        return [str(error)]


def test_what_was_written_is_found_whole() -> None:
    store = _backup()
    assert _faults(store) == []
    assert (loaded(store).records, loaded(store).number) == (8, 1)


@pytest.mark.parametrize("name", sorted(_backup().files))
def test_every_flipped_byte_is_found_and_its_file_named(name: str) -> None:
    store = _backup()
    whole = store.files[name]
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x20
        store.files[name] = bytes(damaged)
        try:
            faults = _faults(store)
        except NewerRelease as error:  # the one byte that says the version
            faults = [str(error)]
        assert faults, position
        assert name in faults[0], position


@pytest.mark.parametrize("name", sorted(_backup().files))
def test_a_file_that_is_cut_off_is_named(name: str) -> None:
    store = _backup()
    store.files[name] = store.files[name][:-1]
    assert name in _faults(store)[0]


def test_a_file_that_is_missing_is_named_and_a_backup_without_a_manifest_is_none() -> None:
    store = _backup()
    del store.files["records/b"]
    assert _faults(store) == ["records/b is missing"]
    del store.files[manifest_name(1)]
    with pytest.raises(NotFound, match="no finished backup"):
        loaded(store)


def test_files_that_are_swapped_are_both_named() -> None:
    store = _backup()
    store.files["records/a"], store.files["records/b"] = (
        store.files["records/b"],
        store.files["records/a"],
    )
    first, second = _faults(store)
    assert "records/a" in first
    assert "records/b" in second


def test_a_manifest_under_another_number_is_not_taken_for_that_backup() -> None:
    store = _backup()
    store.files[manifest_name(2)] = store.files[manifest_name(1)]
    with pytest.raises(CorruptData, match="manifest of backup 1"):
        loaded(store)


def test_a_backup_that_is_gone_from_between_others_is_named() -> None:
    store = _backup()
    manifest = loaded(store)
    later = Manifest(number=3, cluster="c", release="0", began_at=Micros(2), state=manifest.state)
    store.write(manifest_name(3), encoded(later))
    assert _faults(store) == [f"{manifest_name(2)} is missing: backup 2 is gone"]


def test_a_newer_format_is_not_guessed_at() -> None:
    data = encoded(State()).replace(b"backup 2 ", b"backup 3 ", 1)
    with pytest.raises(NewerRelease, match="version 3"):
        decoded(data, State, name="state")


def _grown(**changes: object) -> KeptTopic:
    """A topic that was given a third partition, and two more."""
    fences = [(Offset(3), Offset(9)), (Offset(0), Offset(0)), (Offset(5),), (), ()]
    topic = KeptTopic(
        name="orders",
        id=TopicId(1),
        created_at=Micros(1),
        config=TopicConfig(),
        layouts=(2, 3, 5),
        partitions=tuple(
            KeptPartition(number=number, start=Offset(0), end=Offset(9), fences=one)
            for number, one in enumerate(fences)
        ),
    )
    return replace(topic, **changes)


def _fenced(number: int, *fences: int) -> tuple[KeptPartition, ...]:
    known = _grown().partitions
    changed = replace(known[number], fences=tuple(map(Offset, fences)))
    return (*known[:number], changed, *known[number + 1 :])


def test_layouts_fit_their_partitions_and_fences_or_are_a_fault() -> None:
    assert _grown().is_laid_out()
    for wrong in (
        _grown(layouts=()),
        _grown(layouts=(2, 3)),
        _grown(layouts=(3, 2, 5)),
        _grown(partitions=_grown().partitions[:4]),
        _grown(partitions=_fenced(0, 3)),
        _grown(partitions=_fenced(0, 9, 3)),
        _grown(partitions=_fenced(0, 3, 10)),
        _grown(partitions=_fenced(4, 0)),
    ):
        assert not wrong.is_laid_out()
    store = _backup()
    manifest = replace(loaded(store), topics=(_grown(layouts=(2, 3)),))
    store.write(manifest_name(1), encoded(manifest))
    assert "layouts" in _faults(store)[0]
