"""Makes a backup: of all topics, of where groups stand in them, and of users.

Records are copied, then positions are read, then the records that came meanwhile are copied. So a
position never lies beyond the records, the letter of every record that a group has given up is
there, and what is delivered twice after a restore is what was settled during the second copy.

Nothing counts before the manifest is written. What an interrupted backup has copied by then is
noted in `unfinished.json` now and then, and the next one goes on from there.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import angarium
from angarium.api.audit import AUDIT_TOPIC
from angarium.api.transactions import HOMES_TOPIC
from angarium.backup.copying import PartitionCopy, records_folder
from angarium.backup.layouts import laid_out
from angarium.backup.manifest import (
    RECORDS,
    STATES,
    UNFINISHED,
    KeptFile,
    KeptPartition,
    KeptTopic,
    Manifest,
    State,
    decoded,
    encoded,
    loaded,
    manifest_name,
    numbers,
)
from angarium.backup.turns import in_turns
from angarium.errors import AlreadyExists, CorruptData, NotFound, PreconditionFailed
from angarium.ids import Micros, Offset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager

    from angarium.api import TopicInfo
    from angarium.api.backups import KeptPositions
    from angarium.backup.manifest import RecordFile
    from angarium.backup.store import BackupStore
    from angarium.client import Client

LEFT_OUT: Final = frozenset({HOMES_TOPIC, AUDIT_TOPIC})
"""Topics that are never part of a backup: they speak of nodes and producers of this cluster."""

AT_ONCE: Final = 4
"""Partitions that are copied at a time; each may hold a file's worth of records in memory."""

NOTE_S: Final = 1.0
"""How often it is noted how far a backup has come. What came since is copied again after a crash.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a backup or a restore has come."""

    records: int
    bytes: int


class _Topic:
    """A topic while it is copied."""

    def __init__(self, info: TopicInfo, known: KeptTopic | None) -> None:
        self.info = info
        self.layouts: tuple[int, ...] = ()
        self.partitions = {
            one.number: KeptPartition(number=one.number, start=Offset(0), end=Offset(0))
            for one in info.partitions
        }
        # Compaction takes away what an earlier backup has: with a tombstone gone, and the value
        # before it kept, a key would come back. So these are copied as a whole every time.
        is_same = known is not None and (known.id, known.created_at) == (info.id, info.created_at)
        if known is not None and is_same and info.config.cleanup != "compact":
            self.partitions |= {one.number: one for one in known.partitions}

    def kept(self) -> KeptTopic:
        """Return it as it is now."""
        return KeptTopic(
            name=self.info.name,
            id=self.info.id,
            created_at=self.info.created_at,
            config=self.info.config,
            partitions=tuple(self.partitions[one] for one in sorted(self.partitions)),
            layouts=self.layouts,
        )


class Creation:
    """One backup while it is made."""

    def __init__(
        self,
        client: Client,
        store: BackupStore,
        *,
        with_users: bool = True,
        told: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._store = store
        self._with_users = with_users
        self._told = told
        self._topics: dict[str, _Topic] = {}
        self._records = self._bytes = 0
        self._noted_at = time.monotonic()
        self._number = 1
        # Part of the names of its files: whoever else makes this backup at the same time, or has
        # begun it before, writes others.
        self._run = secrets.token_hex(4)
        self._noting = asyncio.Lock()
        self._cluster = ""
        self._began_at = _now()
        self.hidden: int | None = None
        """Topics that are not in it because its maker may not know of them; None: nobody told."""

    async def run(self) -> Manifest:
        """Make it; raises without leaving anything that could be taken for a backup."""
        async with _in_a_thread(self._store.locked()):
            self._cluster = (await self._client.cluster_status()).cluster_id
            known = await asyncio.to_thread(self._known)
            await self._look_for_topics(known)
            await self._copy()
            state = await self._state()
            # What was settled by then may be in a topic that was made by then: a dead letter's.
            await self._look_for_topics(known)
            await self._copy()
            self.hidden = await self._hidden()
            await self._lay_out()
            return await asyncio.to_thread(self._finish, state)

    async def _look_for_topics(self, known: dict[str, KeptTopic]) -> None:
        """Take up what is not among the topics yet, partitions that were added included."""
        for info in await self._client.list_topics():
            if info.name in LEFT_OUT:
                continue
            found = _Topic(info, known.get(info.name))
            there = self._topics.get(info.name)
            if there is None or there.info.id != info.id:
                self._topics[info.name] = found
            else:
                there.info = info
                there.partitions = found.partitions | there.partitions

    async def _lay_out(self) -> None:
        """Note where layouts begin in what was copied."""
        told = {one.name: one for one in await self._client.list_topics()}
        for name, topic in list(self._topics.items()):
            try:
                topic.layouts, topic.partitions = await laid_out(
                    self._client, topic.info, topic.partitions, told=told.get(name)
                )
            except NotFound:
                del self._topics[name]  # deleted meanwhile

    async def _hidden(self) -> int | None:
        """Return how many topics are not shown to who makes the backup; None if that is not."""
        # Counted before they are listed: one that is made meanwhile is not taken for hidden.
        count = (await self._client.cluster_status()).topics
        return max(count - len(await self._client.list_topics()), 0) if count else None

    def _known(self) -> dict[str, KeptTopic]:
        """Return the topics that are in the store already, from the last backup or since it."""
        taken = numbers(self._store)
        last = loaded(self._store) if taken else None
        self._number = taken[-1] + 1 if taken else 1
        found = last
        try:
            noted = decoded(self._store.read(UNFINISHED), Manifest, name=UNFINISHED)
            if noted.number == self._number:
                found = noted
                self._bytes = noted.new_bytes
        except (NotFound, CorruptData):
            pass  # a note is no promise: without it everything since the last backup is copied
        if found is not None and found.cluster != self._cluster:
            raise PreconditionFailed(
                f"{self._store} holds backups of cluster {found.cluster}, this is cluster "
                f"{self._cluster}: name another folder"
            )
        there = set(self._store.names(RECORDS)) if found is not None else set()
        return {} if found is None else {one.name: one.held(there) for one in found.topics}

    async def _copy(self) -> None:
        """Copy what is new in every partition."""

        async def one(topic: _Topic, known: KeptPartition) -> None:
            copy = PartitionCopy(
                self._client,
                self._store,
                topic.info.name,
                known,
                folder=records_folder(self._number),
                run=self._run,
                wrote=lambda kept, file: self._wrote(topic, kept, file),
            )
            try:
                topic.partitions[known.number] = await copy.run()
            except NotFound:
                self._topics.pop(topic.info.name, None)  # deleted meanwhile

        works = [
            partial(one, topic, known)
            for topic in self._topics.values()
            for known in topic.partitions.values()
        ]
        await in_turns(works, at_once=AT_ONCE)

    async def _wrote(self, topic: _Topic, kept: KeptPartition, file: RecordFile) -> None:
        topic.partitions[kept.number] = kept
        self._records += file.records
        self._bytes += file.bytes
        async with self._noting:
            if time.monotonic() - self._noted_at >= NOTE_S:
                note = self._manifest(None)
                await asyncio.to_thread(lambda: self._store.write(UNFINISHED, encoded(note)))
                self._noted_at = time.monotonic()
        self._told(Progress(records=self._records, bytes=self._bytes))

    async def _state(self) -> State:
        """Return where groups stand, and who there is."""
        found: list[KeptPositions] = []

        async def one(topic: str, partition: int) -> None:
            try:
                kept = await self._client.read_positions(topic, partition)
            except NotFound:
                return  # deleted meanwhile
            if kept.positions:
                found.append(kept)

        works = [
            partial(one, name, number)
            for name, topic in self._topics.items()
            for number in topic.partitions
        ]
        await in_turns(works, at_once=AT_ONCE)
        accounts = await self._client.read_accounts() if self._with_users else None
        found.sort(key=lambda kept: (kept.topic, kept.partition))
        return State(positions=tuple(found), accounts=accounts)

    def _finish(self, state: State) -> Manifest:
        """Write what makes it a backup, last of all its manifest."""
        known = {name: {*topic.partitions} for name, topic in self._topics.items()}
        kept = [one for one in state.positions if one.partition in known.get(one.topic, ())]
        data = encoded(State(positions=tuple(kept), accounts=state.accounts))
        name = f"{STATES}/{self._number:06d}-{self._run}.json"
        self._store.write(name, data)
        self._bytes += len(data)
        file = KeptFile(name=name, bytes=len(data), sha256=sha256(data).hexdigest())
        manifest = self._manifest(file)
        try:
            self._store.create(manifest_name(self._number), encoded(manifest))
        except AlreadyExists:
            raise PreconditionFailed(
                f"another process has finished backup {self._number} in {self._store} meanwhile:"
                " this one counts for nothing"
            ) from None
        # Written after the last note of a run that was interrupted, and then once more.
        listed = {one.name for one in manifest.files()}
        states = [one for one in self._store.names(STATES) if self._is_of_this(one)]
        written = self._store.names(records_folder(self._number)) + states
        self._store.delete(UNFINISHED, *(one for one in written if one not in listed))
        return manifest

    def _is_of_this(self, state: str) -> bool:
        return state.startswith(f"{STATES}/{self._number:06d}-")

    def _manifest(self, state: KeptFile | None) -> Manifest:
        return Manifest(
            number=self._number,
            cluster=self._cluster,
            release=angarium.__version__,
            began_at=self._began_at,
            ended_at=Micros(0) if state is None else _now(),
            topics=tuple(self._topics[name].kept() for name in sorted(self._topics)),
            state=state,
            new_bytes=self._bytes,
        )


@asynccontextmanager
async def _in_a_thread(lock: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Have a lock that may take its time to be taken and given back."""
    await asyncio.to_thread(lock.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(lock.__exit__, None, None, None)


def _now() -> Micros:
    return Micros(time.time_ns() // 1_000)
