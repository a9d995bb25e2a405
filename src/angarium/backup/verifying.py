"""Looks at every byte of a backup, and names each file that is not what was written."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from angarium.backup.manifest import (
    loaded,
    manifest_name,
    numbers,
    read_checked,
    state_of,
)
from angarium.batch import Batch, split
from angarium.errors import CorruptData, InvalidBatch, NewerRelease

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.backup.manifest import KeptPartition, Manifest, RecordFile
    from angarium.backup.store import BackupStore
    from angarium.ids import Buffer


def verified(
    store: BackupStore, number: int | None, *, told: Callable[[int, int], None]
) -> tuple[Manifest, list[str]]:
    """Return a backup, and a sentence about each fault; no fault: it can be restored.

    `told` hears of the records and bytes of each file. Raises if there is no such backup, if its
    manifest is damaged, or if the store fails.
    """
    manifest = loaded(store, number)
    known = numbers(store)
    faults = [
        f"{manifest_name(one)} is missing: backup {one} is gone"
        for one in range(known[0], known[-1])
        if one not in known
    ]
    # Faults are of the backup; a store that cannot be read at all says nothing about it.
    try:
        state_of(store, manifest)
    except (CorruptData, NewerRelease) as error:
        faults.append(str(error))
    for topic in manifest.topics:
        if not topic.is_laid_out():
            faults.append(f"the manifest says layouts of {topic.name} that do not fit it")
        for partition in topic.partitions:
            at = 0
            for file in partition.files:
                try:
                    batches = batches_of(store, file)
                    if file.first < at:
                        raise CorruptData(f"{file.name} overlaps the file before it")
                    at = file.next
                    told(sum(len(Batch.trusted(one)) for one in batches), file.bytes)
                except CorruptData as error:
                    faults.append(str(error))
            if not _is_plausible(partition, at):
                where = f"{topic.name} {partition.number}"
                faults.append(f"the manifest says of {where} what its files do not hold")
    return manifest, faults


def batches_of(store: BackupStore, file: RecordFile) -> list[Buffer]:
    """Return the batches of a file, each of which is where it should be; raises `CorruptData`."""
    data = read_checked(store, file)
    try:
        batches: list[Buffer] = list(split(data))
        parsed = [Batch.parse(one, compacted=True, contents=False) for one in batches]
    except InvalidBatch as error:
        raise CorruptData(f"{file.name}: {error}") from None
    ends = [(one.base_offset, one.next_offset) for one in parsed]
    ascend = all(one[1] <= two[0] for one, two in pairwise(ends))
    if not ends or (ends[0][0], ends[-1][1]) != (file.first, file.next) or not ascend:
        raise CorruptData(f"{file.name} holds other records than the manifest says")
    return batches


def _is_plausible(partition: KeptPartition, at: int) -> bool:
    return 0 <= partition.start <= partition.end and at <= partition.end
