"""Why a node that is being drained keeps what it has. Pure: what a cluster says goes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from angarium.api import NodeInfo, PartitionInfo, TopicInfo
    from angarium.ids import NodeId


def stuck(node: NodeId, nodes: Sequence[NodeInfo], topics: Iterable[TopicInfo]) -> str:
    """Return why some of its replicas have nowhere to go, of one topic; empty if all have."""
    hosts = {_host(one): one.region for one in nodes if not one.draining}
    on = {one.id: _host(one) for one in nodes}
    for topic in topics:
        for one in topic.partitions:
            said = ""
            if node == one.witness:
                taken = {on[it] for it in one.replicas if it in on}
                said = _stuck_witness(topic, one, [hosts[it] for it in hosts if it not in taken])
            elif node in one.replicas:
                said = _stuck_replica(topic, one, hosts)
            if said:
                return said
    return ""


def _stuck_witness(topic: TopicInfo, one: PartitionInfo, free: Sequence[str]) -> str:
    if any(region in topic.config.witness for region in free):
        return ""
    return (
        f"{topic.name}/{one.number} has its witness there, and no other host in "
        f"{' or '.join(topic.config.witness)} is free: add one, or alter the topic"
    )


def _stuck_replica(topic: TopicInfo, one: PartitionInfo, hosts: Mapping[str, str]) -> str:
    # Where the witness may be, nothing else is.
    usable = [region for region in hosts.values() if region not in topic.config.witness]
    needed, there = len(one.replicas), usable.count(one.home)
    if needed > len(usable):
        where = f" outside of {', '.join(topic.config.witness)}" if topic.config.witness else ""
        return f"{topic.name} needs {needed} hosts{where} and {len(usable)} are left"
    if one.home and needed // 2 + 1 > there:
        return (
            f"{topic.name}/{one.number} is homed in {one.home}: it needs"
            f" {needed // 2 + 1} hosts there and {there} are left"
        )
    return ""


def _host(node: NodeInfo) -> str:
    return node.host or f"node {node.id}"
