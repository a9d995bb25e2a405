"""State and log of a newer release are told from damaged ones: nobody is to throw them away."""

from __future__ import annotations

import random

import pytest

from angarium.batch.checksum import crc32c_of_bytes
from angarium.errors import CorruptData, NewerRelease
from angarium.ids import CATALOG_GROUP, Incarnation, NodeId
from angarium.log.snapshots import SnapshotStore
from angarium.log.wal.format import (
    FILE_HEADER_BYTES,
    VERSION,
    FileHeader,
    file_header,
    parse_file_header,
)
from angarium.machine import PartitionMachine
from angarium.machine.catalog import CatalogMachine
from angarium.machine.snapshots import FORMAT
from angarium.raft.messages import Snapshot
from angarium.replica.config import HostConfig
from angarium.replica.host import Host
from angarium.testing.disk import SimulatedDisk

FORMAT_PLACE = 6
"""Behind a frame's kind and length, and the beginning of an array."""


def of_format(state: bytes, number: int) -> bytes:
    assert state[FORMAT_PLACE] == FORMAT
    changed = bytearray(state)
    changed[FORMAT_PLACE] = number
    return bytes(changed)


@pytest.mark.parametrize("machine", [PartitionMachine(), CatalogMachine()])
def test_a_state_in_a_newer_form_is_not_damaged(machine: PartitionMachine | CatalogMachine) -> None:
    state = machine.snapshot()
    with pytest.raises(NewerRelease, match="version 2, written by a newer release"):
        machine.restore(of_format(state, FORMAT + 1))
    with pytest.raises(CorruptData):
        machine.restore(of_format(state, 0))
    assert machine.snapshot() == state


def test_a_replica_does_not_lose_its_identity_over_a_newer_state() -> None:
    disk = SimulatedDisk(random.Random(1))
    host = opened(disk)
    host.form_group(CATALOG_GROUP, [host.id])
    host.close()
    store = SnapshotStore(disk)
    origin = store.load(CATALOG_GROUP)
    assert origin is not None
    newer = of_format(bytes(origin.data), FORMAT + 1)
    store.save(CATALOG_GROUP, Snapshot(origin.index, origin.term, origin.conf_state, newer))
    with pytest.raises(NewerRelease):
        opened(disk)


def opened(disk: SimulatedDisk) -> Host:
    return Host(
        disk,
        node=NodeId(1),
        incarnation=Incarnation(7),
        config=HostConfig(),
        jitter=lambda _: 0,
    )


def test_a_log_in_a_newer_form_is_not_damaged() -> None:
    header = file_header(FileHeader(sequence=1, incarnation=7, length=4096, previous_end=0))
    assert parse_file_header(header) is not None
    newer = bytearray(header)
    newer[8] = VERSION + 1
    body = bytes(newer[: FILE_HEADER_BYTES - 4])
    with pytest.raises(NewerRelease, match="log of version 2"):
        parse_file_header(body + crc32c_of_bytes(body).to_bytes(4, "little"))
