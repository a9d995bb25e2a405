"""What a backup is made of, and the file that says so.

A backup is there when its manifest is: one file, written last. It names every other file with its
length and SHA-256, those of earlier backups that it stands on included, and begins with the
SHA-256 of its own text. So every byte that is changed, missing or in the wrong file is found.
"""

from __future__ import annotations

from bisect import bisect_right
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from angarium.api import TopicConfig
from angarium.api.backups import KeptAccounts, KeptPositions
from angarium.errors import CorruptData, NewerRelease, NotFound
from angarium.ids import Micros, Offset, TopicId

if TYPE_CHECKING:
    from collections.abc import Container

    from angarium.backup.store import BackupStore

FORMAT: Final = 2
"""The version of everything here, as it is written. A newer one is not read.

1: topics had no layouts, partitions no fences.
"""

READABLE: Final = frozenset({"1", "2"})

MAGIC: Final = "angarium backup"
MANIFESTS: Final = "backups"
RECORDS: Final = "records"
STATES: Final = "state"
UNFINISHED: Final = "unfinished.json"
"""How far the backup has come that is being written, or was when it was interrupted."""

T = TypeVar("T")


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file, and what must be in it."""

    name: str
    bytes: int
    sha256: str


class RecordFile(KeptFile, frozen=True, kw_only=True):
    """Batches of one partition as they were stored, one after the other."""

    first: Offset
    """Where its first batch begins."""
    next: Offset
    """Where its last batch ends."""
    records: int


class KeptPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition up to its mark."""

    number: int
    start: Offset
    """Records below had been trimmed."""
    end: Offset
    """The mark: everything committed below it is in the files, and nothing above."""
    files: tuple[RecordFile, ...] = ()
    fences: tuple[Offset, ...] = ()
    """Where layouts that came after it begin in it, one after the other; none above the mark."""
    last: tuple[Offset, int] | None = None
    """Where the last batch begins, and its stamp's checksum: so the next backup knows that it goes
    on with the same partition."""

    @property
    def records(self) -> int:
        """How many there are."""
        return sum(one.records for one in self.files)


class KeptTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic with its settings."""

    name: str
    id: TopicId
    created_at: Micros
    config: TopicConfig
    partitions: tuple[KeptPartition, ...]
    layouts: tuple[int, ...] = ()
    """How many partitions keys were dealt to, layout by layout, if some were added."""

    def held(self, names: Container[str]) -> KeptTopic:
        """Return it without partitions of which a file is gone: they have to be copied anew."""
        return msgspec.structs.replace(
            self,
            partitions=tuple(
                one for one in self.partitions if all(file.name in names for file in one.files)
            ),
        )

    def is_laid_out(self) -> bool:
        """Tell whether layouts and fences fit each other and the partitions."""
        layouts = self.layouts or (len(self.partitions),)
        ascend = all(one < two for one, two in pairwise(layouts))
        return (
            ascend
            and layouts[-1] == len(self.partitions)
            and all(
                len(one.fences) == len(layouts) - 1 - bisect_right(layouts, one.number)
                and list(one.fences) == sorted(one.fences)
                and max(one.fences, default=0) <= one.end
                for one in self.partitions
            )
        )


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One backup."""

    number: int
    cluster: str
    release: str
    began_at: Micros
    ended_at: Micros = Micros(0)
    topics: tuple[KeptTopic, ...] = ()
    state: KeptFile | None = None
    """Positions of groups, and users; none while the backup is not finished."""
    new_bytes: int = 0
    """Of files that this backup has written itself."""

    def files(self) -> list[KeptFile]:
        """Return every file that it stands on, its manifest aside."""
        found: list[KeptFile] = [] if self.state is None else [self.state]
        for topic in self.topics:
            for partition in topic.partitions:
                found += partition.files
        return found

    @property
    def records(self) -> int:
        """How many there are."""
        return sum(one.records for topic in self.topics for one in topic.partitions)

    @property
    def bytes(self) -> int:
        """What all files hold together."""
        return sum(one.bytes for one in self.files())


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is small: written as a whole in each backup."""

    positions: tuple[KeptPositions, ...] = ()
    accounts: KeptAccounts | None = None
    """None: it was made without users."""


def encoded(content: msgspec.Struct) -> bytes:
    """Return a file that tells whether its text is as it was written."""
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    head = f"{MAGIC} {FORMAT} sha256:{sha256(text).hexdigest()}\n"
    return head.encode() + text


def decoded(data: bytes, kind: type[T], *, name: str) -> T:
    """Return what `encoded` was given; raises `CorruptData`, which names the file."""
    head, _, text = data.partition(b"\n")
    words = head.decode(errors="replace").rsplit(" ", 2)
    if len(words) != 3 or words[0] != MAGIC:
        raise CorruptData(f"{name} does not begin as a file of a backup does")
    if words[1] not in READABLE:
        if words[1].isdigit():
            raise NewerRelease(f"{name} is of version {words[1]}; this release reads {FORMAT}")
        raise CorruptData(f"{name} does not begin as a file of a backup does")
    if words[2] != f"sha256:{sha256(text).hexdigest()}":
        raise CorruptData(f"{name} is not what was written: its checksum differs")
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise CorruptData(f"{name} cannot be read: {error}") from None


def manifest_name(number: int) -> str:
    """Return the name of a backup's manifest."""
    return f"{MANIFESTS}/{number:06d}.json"


def numbers(store: BackupStore) -> list[int]:
    """Return the numbers of the backups that are there, whole or damaged, ascending."""
    stems = (one.rpartition("/")[2].removesuffix(".json") for one in store.names(MANIFESTS))
    return sorted(int(one) for one in stems if one.isdigit())


def loaded(store: BackupStore, number: int | None = None) -> Manifest:
    """Return a backup's manifest, the latest one's without a number; raises `NotFound`."""
    known = numbers(store)
    if not known:
        raise NotFound(f"there is no finished backup in {store}")
    number = known[-1] if number is None else number
    if number not in known:
        there = f"{known[0]} to {known[-1]}"
        raise NotFound(f"there is no backup {number} in {store}; there are {there}")
    name = manifest_name(number)
    manifest = decoded(store.read(name), Manifest, name=name)
    if manifest.number != number or manifest.state is None:
        raise CorruptData(f"{name} is the manifest of backup {manifest.number}")
    return manifest


def read_checked(store: BackupStore, file: KeptFile) -> bytes:
    """Return a file's bytes; raises `CorruptData` that names it if they are not those written."""
    try:
        data = store.read(file.name)
    except NotFound:
        raise CorruptData(f"{file.name} is missing") from None
    if len(data) != file.bytes:
        raise CorruptData(f"{file.name} has {len(data)} bytes; {file.bytes} were written")
    if sha256(data).hexdigest() != file.sha256:
        raise CorruptData(f"{file.name} is not what was written: its checksum differs")
    return data


def state_of(store: BackupStore, manifest: Manifest) -> State:
    """Return positions and users of a backup."""
    assert manifest.state is not None, "a manifest without it is not loaded"
    return decoded(read_checked(store, manifest.state), State, name=manifest.state.name)
