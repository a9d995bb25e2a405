"""Topics and where their partitions live. Ids of topics and groups go upward and are never reused.

A topic's name becomes part of paths, metric labels and table names, so it is plain: letters,
digits, `_` and `-`, in words joined by single dots.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import AlreadyExists, InvalidArgument, NotFound, PreconditionFailed
from angarium.ids import NodeId, RaftGroupId, TopicId
from angarium.machine.catalog.placement import Loads, chosen_replicas, host_of
from angarium.machine.catalog.values import Moving, Partition, Topic, TopicMade, TopicSettings
from angarium.machine.outcomes import Done, Refused, limited, oversized, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.machine.catalog.commands import (
        Reassign,
        Reassigned,
        TopicAlter,
        TopicCreate,
        TopicDelete,
    )
    from angarium.machine.catalog.values import Node

TOPIC_NAME_MAX: Final = 200
"""Characters of a topic's name: with an id and a suffix it still fits a file name."""

PARTITIONS_MAX: Final = 1_024
"""Partitions of one topic. More are refused."""

TOPICS_MAX: Final = 10_000
"""Topics of a cluster. At the limit no topic is made."""

REPLICATION_MAX: Final = 7
"""Replicas of one partition. More would cost latency and protect from nothing new."""

OWN_PREFIX: Final = "angarium."
"""Names of topics that the cluster makes for itself."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)


def name_fault(name: str, *, internal: bool = False) -> str | None:
    """Return what is wrong with a topic's name, if anything."""
    if not 0 < len(name) <= TOPIC_NAME_MAX:
        return f"a topic's name has 1 to {TOPIC_NAME_MAX} characters, not {len(name)}"
    if not _NAME.fullmatch(name):
        return (
            f"{name!r} cannot name a topic: a name has letters, digits, _ and -, in words joined "
            "by single dots"
        )
    if name.startswith(OWN_PREFIX) and not internal:
        return f"{name!r} cannot be made: names with {OWN_PREFIX} in front are the cluster's own"
    return None


class Topics:
    """All topics and partitions."""

    __slots__ = ("by_id", "by_name", "loads", "next_group", "next_topic", "partitions")

    def __init__(self) -> None:
        self.by_id: dict[TopicId, Topic] = {}
        self.by_name: dict[str, TopicId] = {}
        self.partitions: dict[RaftGroupId, Partition] = {}
        self.next_topic = 1
        self.next_group = 1
        self.loads = Loads()

    # --- topics ------------------------------------------------------------------------------

    def create(self, command: TopicCreate, nodes: Sequence[Node]) -> TopicMade | Refused:
        """Make a topic. Asking for the same one again gives the one that is there."""
        verdict = self._judge_new(command, nodes)
        if verdict is not None:
            return verdict
        topic_id = TopicId(self.next_topic)
        self.next_topic += 1
        groups = self._add_partitions(topic_id, command.settings, 0, command.partitions, nodes)
        self.by_id[topic_id] = Topic(topic_id, command.name, command.settings, groups, command.time)
        self.by_name[command.name] = topic_id
        return TopicMade(topic_id, groups)

    def _judge_new(self, command: TopicCreate, nodes: Sequence[Node]) -> TopicMade | Refused | None:
        settings = command.settings
        fault = name_fault(command.name, internal=command.internal) or _settings_fault(settings)
        known = self.by_name.get(command.name)
        verdict: TopicMade | Refused | None = None
        if fault is not None:
            verdict = refused(InvalidArgument, fault)
        elif not 0 < command.partitions <= PARTITIONS_MAX:
            verdict = oversized(
                "PARTITIONS_MAX",
                f"a topic has 1 to {PARTITIONS_MAX} partitions, not {command.partitions}",
            )
        elif known is not None:
            topic = self.by_id[known]
            if topic.settings == settings and len(topic.groups) == command.partitions:
                verdict = TopicMade(topic.id, topic.groups, repeated=True)
            else:
                said = f"there is a topic {command.name} already, with other settings"
                verdict = refused(AlreadyExists, said)
        elif len(self.by_id) >= TOPICS_MAX:
            verdict = limited("TOPICS_MAX", "the cluster has no room for another topic")
        elif not _are_enough(nodes, settings.replication):
            verdict = _too_few(nodes, settings.replication)
        return verdict

    def alter(self, command: TopicAlter, nodes: Sequence[Node]) -> TopicMade | Refused:
        """Change settings, add partitions. Partitions never become fewer: keys would move."""
        topic = self.by_id.get(command.topic)
        if topic is None:
            return refused(NotFound, f"there is no topic {command.topic}")
        settings = command.settings or topic.settings
        partitions = command.partitions or len(topic.groups)
        fault = _settings_fault(settings)
        if fault is not None:
            return refused(InvalidArgument, fault)
        if not len(topic.groups) <= partitions <= PARTITIONS_MAX:
            return refused(
                InvalidArgument,
                f"{topic.name} has {len(topic.groups)} partitions; they can become more, up to "
                f"{PARTITIONS_MAX}, and not {partitions}",
            )
        moved = settings.replication != topic.settings.replication
        if (moved or partitions > len(topic.groups)) and not _are_enough(
            nodes, settings.replication
        ):
            return _too_few(nodes, settings.replication)
        added = self._add_partitions(topic.id, settings, len(topic.groups), partitions, nodes)
        changed = msgspec.structs.replace(topic, settings=settings, groups=(*topic.groups, *added))
        self.by_id[topic.id] = changed
        if moved:
            for group in topic.groups:
                self._move(self.partitions[group], nodes)
        return TopicMade(topic.id, changed.groups)

    def delete(self, command: TopicDelete) -> Done | Refused:
        """Remove a topic and its partitions."""
        topic = self.by_id.pop(command.topic, None)
        if topic is None:
            return refused(NotFound, f"there is no topic {command.topic}")
        del self.by_name[topic.name]
        for group in topic.groups:
            self.loads.add(self.partitions.pop(group), -1)
        return Done()

    # --- replicas ----------------------------------------------------------------------------

    def reassign(self, command: Reassign, nodes: Sequence[Node]) -> Moving | Done | Refused:
        """Say where a partition shall live; the cluster moves it there by joint consensus."""
        partition = self.partitions.get(command.group)
        if partition is None:
            return refused(NotFound, f"there is no partition {command.group}")
        replication = self.by_id[partition.topic].settings.replication
        target: tuple[NodeId, ...] | None
        if command.replicas:
            target = command.replicas
            fault = _replicas_fault(target, nodes, replication)
            if fault is not None:
                return refused(PreconditionFailed, fault)
        else:
            nodes = [node for node in nodes if node.id not in command.leaving]
            target = self._target(partition, nodes)
        if target is None:
            return _too_few(nodes, replication)
        if target == (partition.target or partition.replicas):
            return Done(changed=False)
        self._put(partition, target)
        return Moving(partition.group, target)

    def may_move(self, partition: Partition, nodes: Sequence[Node]) -> bool:
        """Tell whether `nodes` have hosts enough for a partition, wherever it is now."""
        return _are_enough(nodes, self.by_id[partition.topic].settings.replication)

    def reassigned(self, command: Reassigned) -> Done | Refused:
        """Note that a partition lives where it should."""
        partition = self.partitions.get(command.group)
        if partition is None:
            return refused(NotFound, f"there is no partition {command.group}")
        if not partition.target:
            return Done(changed=False)
        if sorted(command.replicas) != sorted(partition.target):
            return refused(PreconditionFailed, f"{command.group} has another target by now")
        self.loads.add(partition, -1)
        arrived = msgspec.structs.replace(partition, replicas=partition.target, target=())
        self.partitions[partition.group] = arrived
        self.loads.add(arrived, 1)
        return Done()

    def _add_partitions(
        self,
        topic: TopicId,
        settings: TopicSettings,
        first: int,
        past: int,
        nodes: Sequence[Node],
    ) -> tuple[RaftGroupId, ...]:
        groups = []
        for number in range(first, past):
            group = RaftGroupId(self.next_group)
            self.next_group += 1
            replicas = chosen_replicas(
                nodes,
                settings.replication,
                group=group,
                home=_home(settings, number),
                loads=self.loads,
            )
            assert replicas is not None, "there were enough hosts"
            ids = {node.id: node.replica_in(group) for node in nodes}
            founders = tuple(sorted(ids[node] for node in replicas))
            partition = Partition(group, topic, number, replicas, founders)
            self.partitions[group] = partition
            self.loads.add(partition, 1)
            groups.append(group)
        return tuple(groups)

    def _target(self, partition: Partition, nodes: Sequence[Node]) -> tuple[NodeId, ...] | None:
        """Return the best nodes for `partition`, moving as little as possible."""
        settings = self.by_id[partition.topic].settings
        self.loads.add(partition, -1)
        target = chosen_replicas(
            nodes,
            settings.replication,
            group=partition.group,
            home=_home(settings, partition.number),
            loads=self.loads,
            keep=partition.replicas,
        )
        self.loads.add(partition, 1)
        if target is not None and sorted(target) == sorted(partition.replicas):
            return partition.replicas
        return target

    def _move(self, partition: Partition, nodes: Sequence[Node]) -> None:
        target = self._target(partition, nodes)
        assert target is not None, "there were enough hosts"
        self._put(partition, target)

    def _put(self, partition: Partition, target: tuple[NodeId, ...]) -> None:
        self.loads.add(partition, -1)
        moving = msgspec.structs.replace(
            partition, target=() if target == partition.replicas else target, founders=()
        )
        self.partitions[partition.group] = moving
        self.loads.add(moving, 1)


def _home(settings: TopicSettings, number: int) -> str:
    return settings.homes[number % len(settings.homes)] if settings.homes else ""


def _settings_fault(settings: TopicSettings) -> str | None:
    if not 0 < settings.replication <= REPLICATION_MAX:
        return f"a partition has 1 to {REPLICATION_MAX} replicas"
    positive = (settings.retention_micros, settings.retention_bytes, settings.expiry_micros)
    if any(one is not None and one <= 0 for one in positive):
        return "a limit of retention is more than nothing"
    if settings.batch_bytes_max <= 0 or settings.tombstone_micros < 0:
        return "a limit is out of range"
    if not 0 < settings.dirty_percent <= 100:
        return "a part is more than nothing and at most a hundred per cent"
    return None


def _replicas_fault(
    replicas: tuple[NodeId, ...], nodes: Sequence[Node], replication: int
) -> str | None:
    by_id = {node.id: node for node in nodes}
    if len(replicas) != replication or any(node not in by_id for node in replicas):
        return f"{replication} nodes are needed that are there and not draining"
    if len({host_of(by_id[node]) for node in replicas}) != len(replicas):
        return "two replicas would share a host"
    return None


def _are_enough(nodes: Sequence[Node], replication: int) -> bool:
    return len({host_of(node) for node in nodes}) >= replication


def _too_few(nodes: Sequence[Node], replication: int) -> Refused:
    hosts = len({host_of(node) for node in nodes})
    return refused(PreconditionFailed, f"{replication} hosts are needed, {hosts} can be used")
