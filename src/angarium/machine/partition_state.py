"""A partition's state as frames, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from angarium.errors import CorruptData
from angarium.ids import Index
from angarium.machine.decisions import Decision
from angarium.machine.group_frames import continue_group, group_frames, restore_groups
from angarium.machine.keys import Key
from angarium.machine.partition_limits import PartitionLimits
from angarium.machine.producers import Producer
from angarium.machine.series import OpenStage, Series, StageKey
from angarium.machine.snapshots import (
    FORMAT,
    Part,
    check_format,
    decoded,
    frame,
    frames,
    table_frames,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Buffer
    from angarium.machine.cursors import Group
    from angarium.machine.partition import PartitionMachine


class _Header(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a partition's machine."""

    format: int
    applied_index: int
    running_hash: int
    limits: PartitionLimits
    start_offset: int
    next_offset: int
    clock: int
    low_water: int
    named_low_water: int
    next_slot: int
    compact_until: int = 0
    tombstones_before: int = 0
    fences: tuple[tuple[int, int], ...] = ()


_header = msgspec.msgpack.Decoder(_Header)
_DECODERS: Final = {
    Part.PRODUCERS: msgspec.msgpack.Decoder(list[tuple[int, Producer]]),
    Part.NAMED_PRODUCERS: msgspec.msgpack.Decoder(list[tuple[int, Producer]]),
    Part.KEYS: msgspec.msgpack.Decoder(list[tuple[int, Key]]),
    Part.SERIES: msgspec.msgpack.Decoder(list[tuple[str, Series]]),
    Part.STAGES: msgspec.msgpack.Decoder(list[tuple[StageKey, OpenStage]]),
    Part.DECISIONS: msgspec.msgpack.Decoder(list[tuple[str, Decision]]),
}
_GROUP_PARTS: Final = (Part.GROUP_BITMAPS, Part.GROUP_ATTEMPTS, Part.GROUP_INTENTS)


def state_frames(machine: PartitionMachine) -> Iterator[bytes]:
    """Return the frames of `machine` as it is now, while it may move on."""
    numbering = machine.numbering
    producers, transactions = numbering.producers, numbering.transactions
    header = _Header(
        format=FORMAT,
        applied_index=machine.applied_index,
        running_hash=machine.running_hash,
        limits=numbering.limits,
        start_offset=numbering.start_offset,
        next_offset=numbering.next_offset,
        clock=numbering.clock,
        low_water=producers.low_water,
        named_low_water=producers.named_low_water,
        next_slot=transactions.next_slot,
        compact_until=numbering.compact_until,
        tombstones_before=numbering.tombstones_before,
        fences=numbering.fences,
    )
    # Flat copies of tables of immutable rows. The order of producers and keys is their age.
    # Everything that decides what a later entry does has to be here: producers (planted as
    # dedup-lost-at-snapshot), the numbers of the header (stale-offsets-in-snapshot,
    # start-forgotten-at-snapshot), what commits were of.
    tables = {part: list(table.items()) for part, table in _tables(machine).items()}
    groups = machine.groups
    # Groups may be large and change while the snapshot is written. They are copied one by one, and
    # only if they change.
    frozen = groups.freeze()

    def written() -> Iterator[bytes]:
        try:
            yield frame(Part.HEADER, header)
            for part, rows in tables.items():
                yield from table_frames(part, rows)
            yield from group_frames(groups, frozen)
            yield frame(Part.END, None)
        finally:
            groups.thaw(frozen)

    return written()


def read_state(machine: PartitionMachine, data: Buffer) -> Iterator[None]:
    """Fill the new `machine` from a snapshot, pausing after each frame."""
    tables = _tables(machine)
    group: Group | None = None
    seen_header = False
    for part, payload in frames(data):
        if part is Part.HEADER:
            _read_header(machine, decoded(_header, payload))
            seen_header = True
        # The header has the format's version. Without it nothing that follows may be interpreted.
        elif not seen_header:
            raise CorruptData("a snapshot does not begin with its header")
        elif part is Part.GROUPS:
            group = restore_groups(machine.groups, payload)
        elif part in _GROUP_PARTS:
            continue_group(group, part, payload)
        elif part in tables:
            rows = decoded(cast("msgspec.msgpack.Decoder[Any]", _DECODERS[part]), payload)
            tables[part].update(rows)
        elif part is not Part.END:
            raise CorruptData(f"{part.name} is no part of a partition")
        yield
    numbering = machine.numbering
    numbering.producers.count = len(tables[Part.PRODUCERS])
    numbering.producers.named_count = len(tables[Part.NAMED_PRODUCERS])
    numbering.keys.count = len(tables[Part.KEYS])
    numbering.transactions.series_count = len(tables[Part.SERIES])
    numbering.transactions.staged_bytes = sum(one.size for one in tables[Part.STAGES].values())
    numbering.decisions.count = len(tables[Part.DECISIONS])


def _read_header(machine: PartitionMachine, header: _Header) -> None:
    check_format(header.format)
    numbering = machine.numbering
    machine.applied_index = Index(header.applied_index)
    machine.running_hash = header.running_hash
    numbering.limits = header.limits
    numbering.start_offset, numbering.next_offset = header.start_offset, header.next_offset
    numbering.clock = header.clock
    numbering.compact_until = header.compact_until
    numbering.tombstones_before = header.tombstones_before
    # Planted as fence-lost-at-snapshot.
    numbering.fences = header.fences
    numbering.producers.low_water = header.low_water
    numbering.producers.named_low_water = header.named_low_water
    numbering.transactions.next_slot = header.next_slot


def _tables(machine: PartitionMachine) -> dict[Part, dict[Any, Any]]:
    """Return the real tables; only a machine has those, a projection has overlays."""
    numbering = machine.numbering
    return {
        Part.PRODUCERS: cast("dict[Any, Any]", numbering.producers.rows),
        Part.NAMED_PRODUCERS: cast("dict[Any, Any]", numbering.producers.named),
        Part.KEYS: cast("dict[Any, Any]", numbering.keys.rows),
        Part.SERIES: cast("dict[Any, Any]", numbering.transactions.series),
        Part.STAGES: cast("dict[Any, Any]", numbering.transactions.stages),
        Part.DECISIONS: cast("dict[Any, Any]", numbering.decisions.records),
    }
