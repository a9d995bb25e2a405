"""The shape of a cluster: regions, their nodes, who leads, who reads, and how far apart they are.

Pure: what nodes say goes in, one document comes out, and lines are made of that. A node says how
long the way to each other one takes, and how far its own replicas have come; so every node is
asked, and what a silent one would have said is missing.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from angarium.cli.output import table_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from angarium.api import NodeInfo, PartitionInfo, TopicInfo
    from angarium.cli.probe import View
    from angarium.ids import NodeId

NO_REGION = "(no region)"


def topology(views: Sequence[View]) -> dict[str, Any]:
    """Return the document: regions with nodes, partitions, and the ways between nodes."""
    first = views[0].status
    by_node = {view.status.node: view for view in views}
    partitions = [
        _partition(topic, one, by_node) for topic in views[0].topics for one in topic.partitions
    ]
    nodes = [_node(one, by_node, partitions) for one in first.nodes]
    regions = sorted({one["region"] for one in nodes})
    return {
        "cluster_id": first.cluster_id,
        "regions": [
            {"region": region, "nodes": [one for one in nodes if one["region"] == region]}
            for region in regions
        ],
        "partitions": partitions,
        "round_trips_ms": {
            str(view.status.node): {
                str(one.id): round(one.round_trip_ms, 3)
                for one in view.status.nodes
                if one.round_trip_ms is not None
            }
            for view in views
        },
    }


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the document as people read it."""
    shown: list[str] = []
    has_witness = any(one["witness"] for one in document["partitions"])
    for region in document["regions"]:
        shown.append(region["region"] or NO_REGION)
        rows = [
            (
                f"  {one['node']}",
                one["state"],
                one["address"],
                "/".join(filter(None, (one["zone"], one["host"]))) or None,
                one["leads"],
                one["replicas"],
                one["reads"],
                *((one["witnesses"],) if has_witness else ()),
                one["lag"],
            )
            for one in region["nodes"]
        ]
        headings = (
            *("  node", "state", "wire", "zone/host", "leads", "replicas", "reads"),
            *(("witnesses",) if has_witness else ()),
            "lag",
        )
        shown += [*table_lines(headings, rows), ""]
    between = _between(document)
    if between:
        names = sorted({name for pair in between for name in pair})
        shown.append("round trips between regions, in ms (the median of their nodes)")
        rows_of = [(f"  {one}", *(between.get((one, other)) for other in names)) for one in names]
        shown += [*table_lines(("  ", *names), rows_of), ""]
    homed = [
        one for one in document["partitions"] if one["home"] or one["readers"] or one["witness"]
    ]
    if homed:
        what = "a home, readers or a witness" if has_witness else "a home or readers"
        shown += [
            f"partitions that have {what}",
            *_partition_lines(homed, has_witness=has_witness),
            "",
        ]
    return shown[:-1] if shown and not shown[-1] else shown


def _partition_lines(partitions: Sequence[Mapping[str, Any]], *, has_witness: bool) -> list[str]:
    columns: dict[str, Callable[[Mapping[str, Any]], object]] = {
        "  partition": lambda one: f"  {one['topic']}/{one['partition']}",
        "home": lambda one: one["home"] or None,
        "leader": lambda one: one["leader"],
        "replicas": lambda one: _listed(one["replicas"]),
        "readers": lambda one: _listed(one["readers"]),
        "witness": lambda one: one["witness"],
        "lag": lambda one: max(one["lag"].values(), default=None),
    }
    if not has_witness:
        del columns["witness"]
    rows = [[shows(one) for shows in columns.values()] for one in partitions]
    return table_lines(tuple(columns), rows)


def _partition(
    topic: TopicInfo, one: PartitionInfo, by_node: Mapping[NodeId, View]
) -> dict[str, Any]:
    ends = {}
    leader = one.leader
    for node in (*one.replicas, *one.readers):
        said = _said_by(by_node.get(node), topic.name, one.number)
        if said is not None:
            leader = leader or said.leader
            if said.end_offset is not None:
                ends[node] = said.end_offset
    end = max(ends.values(), default=0)
    return {
        "topic": topic.name,
        "partition": one.number,
        "home": one.home,
        "leader": leader,
        "replicas": list(one.replicas),
        "readers": list(one.readers),
        "witness": one.witness,
        "lag": {str(node): end - at for node, at in ends.items()},
    }


def _said_by(view: View | None, topic: str, number: int) -> PartitionInfo | None:
    for known in () if view is None else view.topics:
        if known.name == topic and number < len(known.partitions):
            return known.partitions[number]
    return None


def _node(
    one: NodeInfo, by_node: Mapping[NodeId, View], partitions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    lags = [found["lag"][str(one.id)] for found in partitions if str(one.id) in found["lag"]]
    return {
        "node": int(one.id),
        "region": one.region,
        "zone": one.zone,
        "host": one.host,
        "address": one.addresses.get("wire"),
        "state": _state(one.id, by_node),
        "leads": sum(found["leader"] == one.id for found in partitions),
        "replicas": sum(one.id in found["replicas"] for found in partitions),
        "reads": sum(one.id in found["readers"] for found in partitions),
        "witnesses": sum(one.id == found["witness"] for found in partitions),
        "lag": sum(lags) if one.id in by_node else None,
    }


def _state(node: NodeId, by_node: Mapping[NodeId, View]) -> str:
    """Return whether a node answers this command, and whether any other node hears from it."""
    if node not in by_node:
        return "silent"
    others = [view.status for one, view in by_node.items() if one != node]
    heard = [known.alive for status in others for known in status.nodes if known.id == node]
    return "alive" if any(heard) or not heard else "cut off"


def _between(document: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Return the ways between regions; nothing if there is but one."""
    where = {
        str(one["node"]): region["region"]
        for region in document["regions"]
        for one in region["nodes"]
        if region["region"]
    }
    found: dict[tuple[str, str], list[float]] = {}
    for one, ways in document["round_trips_ms"].items():
        for other, ms in ways.items():
            if one in where and other in where:
                found.setdefault((where[one], where[other]), []).append(ms)
    if len(set(where.values())) < 2:
        return {}
    return {pair: round(median(some), 1) for pair, some in found.items()}


def _listed(nodes: Sequence[int]) -> str | None:
    return ",".join(map(str, nodes)) or None
