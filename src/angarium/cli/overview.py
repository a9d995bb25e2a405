"""What the nodes say, put together: who is alive, who leads what, how much and how fast.

Pure: views in, rows and sentences out. Where nodes disagree, who speaks of itself is believed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api import PartitionInfo
    from angarium.cli.probe import View

Partition = tuple[str, int]


class Seen(NamedTuple):
    """One node at one moment: what is known from outside, and what it says itself."""

    address: str
    view: View | None
    node: int | None = None
    """Its id, if it has been heard before."""
    pid: int | None = None
    ending: str = ""
    """How its process ended; empty while it runs, or where that is not known."""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node, as shown."""

    node: int | None
    address: str
    state: str
    """alive, silent, or how it ended"""
    pid: int | None
    leads: int
    replicas: int
    lag: int | None
    """Records that others have committed and this node has not yet, over all its partitions."""
    memory_bytes: int | None
    unready: tuple[str, ...] = ()
    """Why it should not be relied on, in its own words; nothing if it may."""

    @property
    def is_alive(self) -> bool:
        """Tell whether the node answers."""
        return self.state == "alive"


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic, as shown."""

    name: str
    partitions: int
    leaders: tuple[int | None, ...]
    """By partition."""
    records: int
    passed: int
    """What has come through all its partitions, stored or not; it only grows while nodes run, so
    rates come from it."""
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Overview:
    """The cluster at one moment."""

    at: float
    """Seconds on a clock that only runs forward."""
    cluster_id: str = ""
    nodes: tuple[NodeRow, ...] = ()
    topics: tuple[TopicRow, ...] = ()

    @property
    def alive(self) -> int:
        """How many nodes answer."""
        return sum(node.is_alive for node in self.nodes)


@dataclass(slots=True)
class _Partition:
    infos: list[tuple[int, PartitionInfo]] = field(default_factory=list)
    """Who says what."""

    @property
    def end(self) -> int:
        return max((info.end_offset or 0 for _, info in self.infos), default=0)

    @property
    def start(self) -> int:
        return max((info.start_offset or 0 for _, info in self.infos), default=0)

    @property
    def handed_on(self) -> int:
        return sum(info.handed_on for node, info in self.infos if node in info.replicas)

    @property
    def leader(self) -> int | None:
        claims = [node for node, info in self.infos if info.leader == node]
        heard = [info.leader for _, info in self.infos if info.leader is not None]
        return (claims or heard or [None])[0]


def overview(seen: Sequence[Seen], *, at: float, before: Overview | None = None) -> Overview:
    """Return what all nodes together say."""
    partitions = _partitions(seen)
    leaders = {partition: one.leader for partition, one in partitions.items()}
    by_topic: defaultdict[str, list[tuple[int, _Partition]]] = defaultdict(list)
    for (topic, number), one in partitions.items():
        by_topic[topic].append((number, one))
    earlier = {topic.name: topic for topic in before.topics} if before else {}
    elapsed = at - before.at if before else 0.0
    rows = []
    for name in sorted(by_topic):
        ordered = [one for _, one in sorted(by_topic[name], key=lambda numbered: numbered[0])]
        ends = sum(one.end for one in ordered)
        passed = ends + sum(one.handed_on for one in ordered)
        rows.append(
            TopicRow(
                name=name,
                partitions=len(ordered),
                leaders=tuple(one.leader for one in ordered),
                records=ends - sum(one.start for one in ordered),
                passed=passed,
                rate=_rate(passed, earlier.get(name), elapsed),
            )
        )
    statuses = [one.view.status for one in seen if one.view is not None]
    return Overview(
        at=at,
        cluster_id=statuses[0].cluster_id if statuses else before.cluster_id if before else "",
        nodes=tuple(_node_row(one, partitions, leaders) for one in seen),
        # While nobody answers, what was known last is better than nothing.
        topics=tuple(rows) if statuses or before is None else before.topics,
    )


def _partitions(seen: Sequence[Seen]) -> dict[Partition, _Partition]:
    found: defaultdict[Partition, _Partition] = defaultdict(_Partition)
    for one in seen:
        if one.view is None:
            continue
        for topic in one.view.topics:
            for info in topic.partitions:
                found[topic.name, info.number].infos.append((one.view.status.node, info))
    return found


def _node_row(
    seen: Seen,
    partitions: Mapping[Partition, _Partition],
    leaders: Mapping[Partition, int | None],
) -> NodeRow:
    node = seen.node if seen.view is None else seen.view.status.node
    mine = [
        (one, info)
        for one in partitions.values()
        for speaker, info in one.infos
        if speaker == node and node in info.replicas and info.end_offset is not None
    ]
    holding = sum(
        any(node in info.replicas for _, info in one.infos) for one in partitions.values()
    )
    return NodeRow(
        node=node,
        address=seen.address,
        state="alive" if seen.view is not None else seen.ending or "silent",
        pid=seen.pid,
        leads=sum(leader == node for leader in leaders.values()) if node is not None else 0,
        replicas=holding,
        lag=None if seen.view is None else sum(o.end - (i.end_offset or 0) for o, i in mine),
        memory_bytes=seen.memory_bytes,
        unready=() if seen.view is None else _own_reasons(seen.view),
    )


def _own_reasons(view: View) -> tuple[str, ...]:
    status = view.status
    return next((one.unready for one in status.nodes if one.id == status.node), ())


def _rate(passed: int, before: TopicRow | None, elapsed: float) -> float:
    if before is None or elapsed <= 0:
        return 0.0
    now = max(0, passed - before.passed) / elapsed
    # Half old, half new: steady enough to read, quick enough to follow. A stop shows at once.
    return (before.rate + now) / 2 if now and before.rate else now


def changes(before: Overview | None, now: Overview) -> list[str]:
    """Return what a person would want to hear of, a sentence each."""
    said = []
    old_nodes = {node.address: node for node in before.nodes} if before else {}
    for node in now.nodes:
        old = old_nodes.get(node.address)
        if old is None or old.state != node.state:
            name = f"node {node.node}" if node.node is not None else "the node"
            said.append(f"{name} at {node.address}: {node.state}")
        known = () if old is None else old.unready
        said += [f"node {node.node}: {reason}" for reason in node.unready if reason not in known]
        if known and node.is_alive and not node.unready:
            said.append(f"node {node.node}: ready again")
    old_topics = {topic.name: topic for topic in before.topics} if before else {}
    for topic in now.topics:
        was = old_topics.pop(topic.name, None)
        if was is None or was.leaders != topic.leaders:
            said.append(f"topic {topic.name}: led by {leaders_text(topic)}")
    return said + [f"topic {name}: deleted" for name in old_topics]


def leaders_text(topic: TopicRow, *, partitions_max: int = 12) -> str:
    """Return who leads each partition, or with many of them how many each node leads."""
    if topic.partitions <= partitions_max:
        return " ".join("?" if leader is None else str(leader) for leader in topic.leaders)
    counts: defaultdict[str, int] = defaultdict(int)
    for leader in topic.leaders:
        counts["?" if leader is None else str(leader)] += 1
    return " ".join(f"{leader} ({count})" for leader, count in sorted(counts.items()))
