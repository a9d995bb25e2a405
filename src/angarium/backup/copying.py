"""Copies one partition up to a mark: batches as they are stored, into files of a bounded size.

The mark is the partition's end as its leader, sure that it leads, said it when the copy began: all
that was acknowledged by then is below it. What earlier backups have is not read again.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from angarium.backup.manifest import RECORDS, KeptPartition, RecordFile
from angarium.batch import Batch
from angarium.errors import CorruptData, InvalidBatch, OffsetOutOfRange, PreconditionFailed
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.api import FetchResult
    from angarium.backup.store import BackupStore
    from angarium.client import Client
    from angarium.ids import Buffer

FILE_BYTES: Final = 32 << 20
"""A file of records is ended when it is larger. It is made in memory, and so is what checks it."""

TRIMS_MAX: Final = 10
"""How often the log may be trimmed under the copy before it is given up."""


class PartitionCopy:
    """The copy of one partition that goes on from what is known of it."""

    def __init__(
        self,
        client: Client,
        store: BackupStore,
        topic: str,
        known: KeptPartition,
        *,
        folder: str,
        run: str,
        wrote: Callable[[KeptPartition, RecordFile], Awaitable[None]],
    ) -> None:
        """Prepare; files go to `folder`, and `wrote` hears of each with how the partition stands.

        `run` is part of their names: no two runs write the same one.
        `known` without a mark and files is a partition that no backup has.
        """
        self._client = client
        self._store = store
        self._topic = topic
        self._known = known
        self._folder = folder
        self._run_name = run
        self._wrote = wrote
        self._gathered: list[Buffer] = []

    async def run(self) -> KeptPartition:
        """Copy, and return the partition as of the mark."""
        for _ in range(TRIMS_MAX):
            try:
                return await self._run()
            except OffsetOutOfRange:
                self._gathered.clear()  # retention was faster: begin where the log begins now
        raise PreconditionFailed(
            f"{self._topic} {self._known.number} is trimmed faster than it can be copied"
        )

    async def _run(self) -> KeptPartition:
        number = self._known.number
        begun = await self._begun()
        mark, start, at = begun.end_offset, begun.start_offset, self._known.end
        kept = [one for one in self._known.files if one.next > start]
        self._known = replace(self._known, start=start, files=tuple(kept))
        at = max(at, start)
        while at < mark:
            found = await self._client.fetch_stored(self._topic, number, Offset(at))
            if not found.batches:
                break  # only a gap is left
            for buffer in found.batches:
                batch = self._checked(buffer)
                if batch.base_offset >= mark:
                    at = mark
                    break
                at = batch.next_offset
                self._gathered.append(bytes(buffer))
            if sum(map(len, self._gathered)) >= FILE_BYTES:
                await self._write()
        await self._write()
        return replace(self._known, end=mark)

    async def _begun(self) -> FetchResult:
        """Return how the partition stands; if it is not the one that is known, forget that."""
        known, client, topic = self._known, self._client, self._topic
        base = Offset(0) if known.last is None else known.last[0]
        try:
            found = await client.fetch_stored(topic, known.number, base, bytes_max=1)
        except OffsetOutOfRange:
            # Trimmed beyond it, or gone back behind it: the start is always there to be asked for.
            found = await client.fetch_stored(topic, known.number, await self._start(), bytes_max=1)
        is_same = known.end <= found.end_offset
        if is_same and known.last is not None and base >= found.start_offset and found.batches:
            batch = self._checked(found.batches[0])
            is_same = (batch.base_offset, batch.header.stamp_crc) == known.last
        if not is_same:
            self._known = KeptPartition(number=known.number, start=Offset(0), end=Offset(0))
        return found

    async def _start(self) -> Offset:
        info = await self._client.describe_topic(self._topic)
        return info.partitions[self._known.number].start_offset or Offset(0)

    def _checked(self, buffer: Buffer) -> Batch:
        """Return a batch after looking at all of its bytes: a backup of damage is none."""
        try:
            return Batch.parse(buffer, compacted=True, contents=False)
        except InvalidBatch as error:
            where = f"{self._topic} {self._known.number}"
            raise CorruptData(f"a stored batch of {where} cannot be read: {error}") from error

    async def _write(self) -> None:
        if not self._gathered:
            return
        data = b"".join(self._gathered)
        batches = [Batch.trusted(one) for one in self._gathered]
        self._gathered = []
        first, last = batches[0], batches[-1]
        name = (
            f"{self._folder}/{self._topic}-{self._known.number}-{first.base_offset:020d}"
            f"-{self._run_name}.batches"
        )
        file = RecordFile(
            name=name,
            bytes=len(data),
            sha256=await asyncio.to_thread(lambda: sha256(data).hexdigest()),
            first=first.base_offset,
            next=last.next_offset,
            records=sum(len(one) for one in batches),
        )
        await asyncio.to_thread(self._store.write, name, data)
        self._known = replace(
            self._known,
            end=last.next_offset,
            files=(*self._known.files, file),
            last=(last.base_offset, last.header.stamp_crc),
        )
        await self._wrote(self._known, file)


def records_folder(number: int) -> str:
    """Return where the backup with this number writes records."""
    return f"{RECORDS}/{number:06d}"
