"""Everything a node can learn from its data directory, in what JSON can say.

Values are told by the names of their fields, so that a later version may add fields (`faults` lets
it) but not lose or change one. Tables are lists, so that none of their rows may be missing or new.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec
from tests.golden.batch.samples import described as described_batch
from tests.golden.data.driving import Driver

from angarium.batch import Batch
from angarium.ids import Index
from angarium.log import folder_identity
from angarium.log.segments.frames import frame_at
from angarium.replica.partition_snapshot import PartitionSnapshot
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import RaftGroupId
    from angarium.log.disk import Disk
    from angarium.log.segments import PartitionLog
    from angarium.log.wal import Wal
    from angarium.machine import PartitionMachine
    from angarium.machine.catalog import CatalogMachine
    from angarium.machine.cursors import Group
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.replica import Replica

_ALL_BYTES = 1 << 30


def described(disk: Disk) -> dict[str, Any]:
    """Open the data on `disk` as a node does and return what is in it."""
    found = folder_identity.load(disk)
    driver = Driver(disk)
    host = driver.host
    wal = host.wal
    contents = {
        "identity": plain(found),
        "damaged": {
            "unknown_groups": wal.recovered.unknown_groups,
            "logs": [group for group in wal.groups if wal.log(group).damaged is not None],
            "repairs": sorted(host.repairs),
        },
        "logs": [[group, _log(wal, group)] for group in sorted(wal.groups)],
    }
    driver.settle()  # applies what the log knows to be committed
    assert host.catalog is not None
    contents["catalog"] = {
        **_replica(host.catalog),
        "machine": _catalog(host.catalog.catalog.machine),
    }
    contents["partitions"] = [
        [group, _partition(replica)] for group, replica in sorted(host.replicas.items())
    ]
    driver.close()
    return contents


def faults(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """Yield what of `expected` is not, or not so, in `found`, which may have fields beyond it."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, value in expected.items():
            if name in found:
                yield from faults(value, found[name], f"{where}.{name}")
            else:
                yield f"{where}.{name} is missing"
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{where} has {len(found)} items instead of {len(expected)}"
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from faults(one, other, f"{where}[{number}]")
    elif expected != found:
        yield f"{where} is {found!r} instead of {expected!r}"


def plain(value: Any) -> Any:
    """Return any value of ours in dictionaries, lists, texts and numbers."""
    result: Any = value
    if isinstance(value, msgspec.Struct):
        result = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        result = {name: plain(getattr(value, name)) for name in names}
    elif isinstance(value, Enum):
        result = value.name
    elif isinstance(value, dict):
        result = [[plain(key), plain(one)] for key, one in value.items()]
    elif isinstance(value, list | tuple):
        result = [plain(one) for one in value]
    elif isinstance(value, bytes | bytearray | memoryview):
        result = bytes(value).hex()
    return result


# --- what lies in the write-ahead log ---------------------------------------------------------


def _log(wal: Wal, group: RaftGroupId) -> dict[str, Any]:
    log = wal.log(group)
    first, last = log.first_index(), log.last_index()
    entries = log.entries(first, Index(last + 1), _ALL_BYTES) if first <= last else ()
    return {
        "hard_state": plain(log.hard_state),
        "snapshot_index": first - 1,
        "snapshot_term": log.term(Index(first - 1)),
        "last_index": last,
        "entries": [plain(one) for one in entries],
    }


# --- what the machines make of it -------------------------------------------------------------


def _replica(replica: Replica) -> dict[str, Any]:
    return {
        "snapshot_index": replica.snapshot_index,
        "applied": replica.applied,
        "members": plain(replica.raft.conf_state),
        "term": replica.raft.term,
        "commit": replica.raft.commit,
    }


def _catalog(machine: CatalogMachine) -> dict[str, Any]:
    nodes, topics = machine.nodes, machine.topics
    return {
        "cluster": machine.cluster,
        "applied_index": machine.applied_index,
        "running_hash": machine.running_hash,
        "clock": machine.clock,
        "level": nodes.level,
        "next_node": nodes.next_id,
        "nodes": plain(list(nodes.by_id.values())),
        "next_topic": topics.next_topic,
        "topics": plain(list(topics.by_id.values())),
        "next_group": topics.next_group,
        "partitions": plain(list(topics.partitions.values())),
        "next_producer": machine.next_producer,
        "next_named": machine.next_named,
        "named": plain(machine.named),
    }


def _partition(replica: PartitionReplica) -> dict[str, Any]:
    saved = msgspec.msgpack.decode(do_now(replica.partition.save()), type=PartitionSnapshot)
    return {
        **_replica(replica),
        "machine": _machine(replica.partition.machine),
        "stages": [
            [slot, [described_batch(Batch.parse(part)) for part in parts]]
            for slot, parts in sorted(saved.stages.items())
        ],
        **_segments(replica.partition.log),
    }


def _machine(machine: PartitionMachine) -> dict[str, Any]:
    numbering = machine.numbering
    producers, transactions = numbering.producers, numbering.transactions
    return {
        "applied_index": machine.applied_index,
        "running_hash": machine.running_hash,
        "start_offset": machine.start_offset,
        "next_offset": machine.next_offset,
        "clock": machine.clock,
        "limits": plain(machine.limits),
        "low_water": producers.low_water,
        "named_low_water": producers.named_low_water,
        # Their order is their age, which decides who is forgotten first.
        "producers": plain(producers.rows),
        "named_producers": plain(producers.named),
        "series": plain(transactions.series),
        "next_slot": transactions.next_slot,
        "stages": plain(transactions.stages),
        "decisions": plain(numbering.decisions.records),
        "groups": [_group(group) for group in machine.groups.by_name.values()],
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "kind": group.kind.name,
        "settings": plain(group.settings),
        "floor": group.floor,
        "acknowledged": plain(list(group.acked.ranges())),
        "attempts": plain(group.attempts),
        "intents": plain(group.intents),
        "generation": group.generation,
        "opened_index": group.opened_index,
        "next_dead_letter": group.next_dead_letter,
        "members": plain(group.members),
        "members_version": group.members_version,
        "paused": group.paused,
    }


# --- what lies in segments --------------------------------------------------------------------


def _segments(log: PartitionLog) -> dict[str, Any]:
    """Return every batch and gap, and the segments as another replica would copy them."""
    frames: list[Any] = []
    offset = log.start_offset
    while offset < log.end_offset:
        for view in log.read(offset, _ALL_BYTES, gaps=True):
            frame = frame_at(view, 0)
            assert frame is not None
            gap = {"gap": [frame.base_offset, frame.next_offset]}
            frames.append(gap if frame.is_gap else described_batch(Batch.parse(view)))
            offset = frame.next_offset
    return {
        "start_offset": log.start_offset,
        "end_offset": log.end_offset,
        "damage": plain(list(log.damage)),
        "frames": frames,
        "manifest": plain(log.manifest()),
    }
