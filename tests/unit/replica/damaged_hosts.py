"""Hosts whose logs are read from their files, and damaged there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.unit.replica.hosts import CONFIG, Hosts

from angarium.batch import encode
from angarium.ids import Micros, NodeId
from angarium.log.wal import WalConfig
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing

if TYPE_CHECKING:
    from angarium.replica.config import HostConfig

CONFIG_OF_FILES: HostConfig = replace(
    CONFIG,
    # Nothing is read from memory, and no snapshot stands for what is damaged.
    wal=WalConfig(file_bytes=64 * 1024, reserve_bytes=8 * 1024, cache_bytes=0),
    replica=replace(CONFIG.replica, snapshot_entries=10_000),
)
LAST = b"the last one"
VALUES = [b"value %03d" % number for number in range(40)]


def written(count: int = 3) -> Hosts:
    """Return hosts whose group has stored some values, many of them in one sync round."""
    hosts = Hosts(count, CONFIG_OF_FILES)
    hosts.form()
    leader = hosts.leader()
    hosts.publish(*VALUES[:1])
    for value in VALUES[1:]:
        # Without a sync in between, so that entries are neighbours on disk.
        leader.publish(
            [Publishing([encode([value])], DeliveryMode.CONSISTENT, lambda _: None)],
            now=Micros(2),
        )
    leader.process()
    hosts.settle()
    # Its hard state says on every disk that what came before is committed.
    hosts.publish(LAST)
    hosts.tick(10)
    return hosts


def stop(hosts: Hosts, *nodes: int, clean: bool) -> None:
    for node in map(NodeId, nodes):
        host = hosts.hosts.pop(node)
        if clean:
            host.close()


def flip(hosts: Hosts, node: int, value: bytes) -> None:
    """Damage the log of a node where a value lies."""
    disk = hosts.disks[NodeId(node)]
    for name in disk.list("wal"):
        if name.endswith(".log"):
            file = disk.open(f"wal/{name}")
            content = file.pread(file.size(), 0)
            if value in content:
                file.pwrite([b"X"], content.index(value))
                return
    raise AssertionError("it is not in the log")
