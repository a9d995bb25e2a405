"""Backups of real nodes: made under load, brought back elsewhere, whatever interrupts either."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.on_a_loop import eventually

from angarium import Client, GroupConfig, TopicConfig
from angarium.api.backups import RestoreRequest
from angarium.backup import copying, creating, restoring
from angarium.backup.creating import Creation, Progress
from angarium.backup.folder import FolderStore
from angarium.backup.manifest import UNFINISHED, Manifest, decoded, loaded, numbers
from angarium.backup.restoring import Restoration
from angarium.backup.verifying import verified
from angarium.errors import AlreadyExists, PreconditionFailed
from angarium.ids import Offset
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cluster.running import Run

    from angarium import Record

PARTITIONS = 2
BEGINS_AT = 5_000
CONFIG = GroupConfig(max_attempts=7)


class Killed(Exception):
    """Stands for the end of the process that makes or restores a backup."""


def _killed_after(files: int) -> Callable[[Progress], None]:
    heard = 0

    def told(_: Progress) -> None:
        nonlocal heard
        heard += 1
        if heard == files:
            raise Killed

    return told


async def _publish(client: Client, stop: asyncio.Event, acked: dict[int, list[bytes]]) -> None:
    """Publish until told to stop, noting what was acknowledged, by partition and in order."""
    count = 0
    while not stop.is_set():
        for partition in range(PARTITIONS):
            value = b"%d" % count
            receipt = await client.publish(
                "orders", value, key=b"k", headers={"n": value}, partition=partition
            )
            assert receipt.offset == len(acked[partition])
            acked[partition].append(value)
            count += 1


async def _records(client: Client, topic: str) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    async for one in client.read(topic):
        found.setdefault(one.partition, []).append(one)
    return found


def _facts(record: Record) -> tuple[object, ...]:
    return record.offset, record.value, record.key, record.headers, record.append_time


async def _settle(client: Client, count: int) -> set[tuple[int, int]]:
    """Have the group settle some records; return which."""
    settled: set[tuple[int, int]] = set()
    async with client.group("billing", config=CONFIG).consume("orders") as records:
        async for record in records:
            settled.add((record.partition, record.offset or 0))
            await record.ack()
            if len(settled) == count:
                break
    return settled


def test_what_was_acknowledged_comes_back_once_at_its_offset_and_a_group_goes_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "FILE_BYTES", 2_000)
    monkeypatch.setattr(creating, "NOTE_S", 0.0)
    monkeypatch.setattr(restoring, "REQUEST_BYTES", 1_000)
    store = FolderStore(tmp_path / "backups")
    acked: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    before: dict[int, list[Record]] = {}
    settled: set[tuple[int, int]] = set()

    async def old_cluster() -> None:
        async with (
            in_process_broker(tmp_path / "old", nodes=3, tick_ms=20) as broker,
            Client(*broker.addresses) as client,
        ):
            config = TopicConfig(retention_ms=86_400_000)
            await client.create_topic("orders", partitions=PARTITIONS, config=config)
            await client.restore_topic("late", partitions=1, config=TopicConfig())
            await client.restore_records(
                RestoreRequest(
                    topic="late",
                    partition=0,
                    next_offset=Offset(BEGINS_AT),
                    start_offset=Offset(BEGINS_AT),
                )
            )
            assert (await client.publish("late", b"first")).offset == BEGINS_AT
            stop = asyncio.Event()
            load = asyncio.create_task(_publish(client, stop, acked))
            await eventually(lambda: len(acked[1]) > 50)
            settled.update(await _settle(client, 20))
            with pytest.raises(Killed):
                await Creation(client, store, told=_killed_after(2)).run()
            assert numbers(store) == []
            copied = decoded(store.read(UNFINISHED), Manifest, name=UNFINISHED).files()
            sofar = {number: len(values) for number, values in acked.items()}
            first = await Creation(client, store).run()
            assert copied, "something was noted before the kill"
            assert all(one in first.files() for one in copied), "and was not copied again"
            for partition in first.topics[1].partitions:
                assert partition.end >= sofar[partition.number]
            await eventually(lambda: len(acked[1]) > sofar[1] + 50)
            second = await Creation(client, store).run()
            assert 0 < second.new_bytes < second.bytes
            assert second.topics[1].partitions[0].files[0] == first.topics[1].partitions[0].files[0]
            stop.set()
            await load
            before.update(await _records(client, "orders"))

    async def new_cluster() -> None:
        async with (
            in_process_broker(tmp_path / "new", nodes=3, tick_ms=20) as broker,
            Client(*broker.addresses) as client,
        ):
            with pytest.raises(Killed):
                await Restoration(client, store, told=_killed_after(3)).run()
            with pytest.raises(AlreadyExists, match="--resume"):
                await Restoration(client, store).run()
            manifest = await Restoration(client, store, resume=True).run()
            await Restoration(client, store, resume=True).run()
            for at in range(3):  # the entries of the restore are applied anew from the log
                await broker.stop_node(at)
            await asyncio.gather(*map(broker.start_node, range(3)))
            after = await _records(client, "orders")
            for partition in manifest.topics[1].partitions:
                kept = [
                    one for one in before[partition.number] if (one.offset or 0) < partition.end
                ]
                assert [_facts(one) for one in after[partition.number]] == [
                    _facts(one) for one in kept
                ]
                assert len(kept) == partition.end
            assert (await client.describe_topic("orders")).config.retention_ms == 86_400_000
            described = await client.describe_group("billing")
            assert described.config == CONFIG
            left = sum(map(len, after.values())) - len(settled)
            assert described.lag == left
            again = await _settle(client, left)
            assert not again & settled
            ends = {one.number: one.end for one in manifest.topics[1].partitions}
            receipt = await client.publish("orders", b"new", partition=1)
            assert receipt.offset == ends[1]
            assert (await client.fetch_one("late", 0, BEGINS_AT)).value == b"first"
            assert (await client.publish("late", b"second")).offset == BEGINS_AT + 1
            with pytest.raises(PreconditionFailed, match="another folder"):
                await Creation(client, store).run()

    run(old_cluster())
    _, faults = verified(store, None, told=lambda *_: None)
    assert faults == []
    assert loaded(store).number == 2
    run(new_cluster())
