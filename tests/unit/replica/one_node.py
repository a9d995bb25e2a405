"""A host that is the only voter of a group, driven by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import Incarnation, NodeId, RaftGroupId
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.replica.host import Host

if TYPE_CHECKING:
    from angarium.testing.disk import SimulatedDisk

GROUP = RaftGroupId(1)


def a_leader(disk: SimulatedDisk) -> Host:
    """Return a host whose replica of `GROUP` leads, and wants a snapshot after every entry."""
    host = Host(
        disk,
        node=NodeId(1),
        incarnation=Incarnation(7),
        config=HostConfig(replica=ReplicaConfig(snapshot_entries=1, snapshot_keep_entries=0)),
        jitter=lambda _: 0,
    )
    host.form_group(GROUP, [host.id])
    while not host.replicas[GROUP].may_serve:
        host.tick()
        drive(host)
    return host


def drive(host: Host) -> None:
    """Let everything happen that can without another node."""
    for replica in host.replicas.values():
        replica.process()
    while (sync := host.begin_sync()) is not None:
        sync.write()
        host.finish_sync(sync)
