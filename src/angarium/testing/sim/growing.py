"""A simulated topic that is given partitions, and what must hold of its keys all the while.

All Raft groups are there from the beginning; the topic takes them on by and by. The catalog cannot
fail here, but nodes hear of it late, each at its own time, and set fences as `node.fencing` does,
by the same steps. What publishers were told, what groups are lent and what readers see is checked:
of no key does anybody get a record before an earlier one.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.api import PartitionInfo, TopicConfig, TopicInfo
from angarium.ids import Micros, NodeId, Offset, TopicId
from angarium.machine.catalog import Fenced, Topic, TopicSettings
from angarium.machine.catalog.layouts import next_step
from angarium.machine.catalog.topics import Topics, laid_out_anew
from angarium.machine.catalog.values import Partition
from angarium.node.spanning import older
from angarium.replica.acks import Dealt
from angarium.testing.sim.clock import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import RaftGroupId
    from angarium.machine import PartitionMachine
    from angarium.testing.history import Publish
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

TOPIC_ID: Final = TopicId(1)
FIRST: Final = 2
"""Partitions that the topic has at first."""

HEARD_WITHIN: Final = 400 * MILLISECOND
ROUND: Final = 60 * MILLISECOND
ADDED_EVERY: Final = 3 * SECOND


class Keyed(NamedTuple):
    """A record with a key, as its publisher knows it."""

    key: bytes
    publish: Publish
    order: int
    """How many its publisher has published before."""

    def is_before(self, other: Keyed) -> bool:
        """Tell whether everybody must get it before the other one."""
        if self.publish.producer == other.publish.producer:
            return self.order < other.order
        completed = self.publish.completed
        return completed is not None and completed < other.publish.invoked


class Growing:
    """The topic, who has heard what of it, and every record that was published by key."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(seed)
        self.topics = Topics()
        first = tuple(world.groups[:FIRST])
        self.topics.by_id[TOPIC_ID] = Topic(
            TOPIC_ID, "simulated", TopicSettings(), first, Micros(0)
        )
        for number, group in enumerate(world.groups):
            self.topics.partitions[group] = Partition(group, TOPIC_ID, number, (), ())
        self.views: dict[NodeId, Topic] = dict.fromkeys(world.node_ids, self.topic)
        self.records: dict[bytes, Keyed] = {}
        self.by_key: dict[bytes, list[Keyed]] = {}
        self._floors: dict[tuple[RaftGroupId, str], int] = {}
        """The highest floor that any replica had applied."""

    @property
    def topic(self) -> Topic:
        """The topic as the catalog has it."""
        return self.topics.by_id[TOPIC_ID]

    @property
    def is_done(self) -> bool:
        """Whether all partitions are there, with all fences."""
        return len(self.topic.groups) == len(self._world.groups) and not self.topic.unfenced

    def start(self) -> None:
        """Begin to add partitions, and to set fences."""
        self._world.scheduler.after(self._rng.randrange(1, ADDED_EVERY), self._add)
        for node in self._world.nodes.values():
            self._world.scheduler.after(self._rng.randrange(1, ROUND), self._fence, node)

    # --- the catalog ----------------------------------------------------------------------------

    def _add(self) -> None:
        known = len(self.topic.groups)
        if known == len(self._world.groups):
            return
        if not self.topic.unfenced:
            past = self._rng.randrange(known + 1, len(self._world.groups) + 1)
            grown = laid_out_anew(self.topic, past)
            self._set(msgspec.structs.replace(grown, groups=tuple(self._world.groups[:past])))
            self._world.note("catalog", "gives the topic partitions:", past)
        self._world.scheduler.after(self._rng.randrange(1, ADDED_EVERY), self._add)

    def _set(self, topic: Topic) -> None:
        self.topics.by_id[TOPIC_ID] = topic
        for node in self._world.node_ids:
            self._world.scheduler.after(self._rng.randrange(HEARD_WITHIN), self._hear, node, topic)

    def _hear(self, node: NodeId, topic: Topic) -> None:
        # What one node hears comes in order: it is a log.
        before = self.views[node]
        is_newer = (len(topic.layouts), -len(topic.unfenced)) > (
            len(before.layouts),
            -len(before.unfenced),
        )
        if is_newer:
            self.views[node] = topic

    def _told(self, command: Fenced) -> None:
        before = self.topic
        self.topics.fenced(command)
        if self.topic is not before:
            self._world.note("catalog", "hears of a fence:", command.group, command.layout)
            self._set(self.topic)

    # --- nodes ----------------------------------------------------------------------------------

    def _fence(self, node: SimNode) -> None:
        self._world.scheduler.after(self._rng.randrange(1, 2 * ROUND), self._fence, node)
        if node.host is not None and not node.is_paused:
            node.do(self._steps, node)

    def _steps(self, node: SimNode) -> None:
        assert node.host is not None
        view = self.views[node.id]
        for group, replica in node.host.replicas.items():
            self.note_floors(group, replica.partition.machine)
            if not replica.may_serve:
                continue
            fenced = replica.partition.machine.layout
            step = next_step(view, self.topics.partitions[group], fenced=fenced)
            if isinstance(step, Fenced):
                delay = self._rng.randrange(HEARD_WITHIN)
                self._world.scheduler.after(delay, self._told, step)
            elif step is not None and not self._is_anything_staged(view):
                now = self._world.clock_of(node)
                replica.partition.submit(step, now=now, reply=lambda _: None)
                replica.poke()

    def _is_anything_staged(self, view: Topic) -> bool:
        """Tell what the leaders of older partitions say when asked, as by `node.spanning`."""
        seen = (
            self._world.replica_at(node, group)
            for group in older(view)
            for node in self._world.node_ids
        )
        return any(
            one.partition.machine.numbering.transactions.staged_bytes
            for one in seen
            if one is not None and one.may_serve
        )

    def dealt(self, node: NodeId, group: RaftGroupId, layout: int | None) -> Dealt | None:
        """Return what a leader knows of the layout that a publish names."""
        if layout is None:
            return None
        view = self.views[node]
        return Dealt(layout, view.born(self.topics.partitions[group].number))

    def info(self, node: SimNode) -> TopicInfo:
        """Return how a node describes the topic."""
        view = self.views[node.id]
        return TopicInfo(
            id=TOPIC_ID,
            name=view.name,
            config=TopicConfig(),
            partitions=tuple(
                PartitionInfo(
                    number=number,
                    replicas=(),
                    fences=self._fences(group),
                )
                for number, group in enumerate(view.groups)
            ),
            created_at=Micros(0),
            layouts=view.layouts,
            layout=view.layout,
        )

    def _fences(self, group: RaftGroupId) -> tuple[Offset, ...]:
        """Return what the node hears of a partition's fences, of its own replica or of another."""
        found: list[tuple[Offset, ...]] = [()]
        for node in self._world.node_ids:
            replica = self._world.replica_at(node, group)
            if replica is not None:
                found.append(replica.partition.machine.fence_offsets)
        return self._rng.choice(found)

    # --- checking -------------------------------------------------------------------------------

    def note(self, key: bytes, publish: Publish, order: int) -> None:
        """Write a record down that is published by key."""
        keyed = Keyed(key, publish, order)
        self.records[publish.values[0]] = keyed
        self.by_key.setdefault(key, []).append(keyed)

    def before(self, value: bytes) -> Iterator[Keyed]:
        """Yield the records that come before one, of those that are known to be stored."""
        keyed = self.records.get(value)
        for one in () if keyed is None else self.by_key[keyed.key]:
            if one.publish.base_offset >= 0 and one.is_before(keyed):  # type: ignore[arg-type]
                yield one

    def is_at_home(self, raft_group: RaftGroupId, value: bytes) -> bool:
        """Tell whether a record is where it was published: dead letters lie elsewhere."""
        keyed = self.records.get(value)
        return keyed is not None and keyed.publish.group == raft_group

    def note_floors(self, raft_group: RaftGroupId, machine: PartitionMachine) -> None:
        """Remember how far groups are, which is committed once a replica has applied it."""
        for name, group in machine.groups.by_name.items():
            known = self._floors.get((raft_group, name), 0)
            self._floors[raft_group, name] = max(known, group.floor)

    def lent(self, raft_group: RaftGroupId, name: str, value: bytes) -> None:
        """Check that what comes before a record in other partitions is settled."""
        if not self.is_at_home(raft_group, value):
            return
        for one in self.before(value):
            where, offset = one.publish.group, one.publish.base_offset
            if where == raft_group or self._is_settled(where, name, offset):
                continue
            self._world.history.incidents.append(
                f"K1: {name} is lent {value!r} of {one.key!r} in partition {raft_group}, and "
                f"{one.publish.values[0]!r} at {offset} of {where} is not settled"
            )

    def _is_settled(self, raft_group: RaftGroupId, name: str, offset: int) -> bool:
        for node in self._world.node_ids:
            replica = self._world.replica_at(node, raft_group)
            if replica is not None:
                machine = replica.partition.machine
                self.note_floors(raft_group, machine)
                group = machine.groups.by_name.get(name)
                if group is not None and offset in group.acked:
                    return True
        return offset < self._floors.get((raft_group, name), 0)

    def read(self, reader: str, rows: dict[tuple[RaftGroupId, bytes], int]) -> None:
        """Check what a reader has seen, by partition and value, each with its row."""
        seen = {value: row for (group, value), row in rows.items() if self.is_at_home(group, value)}
        for value, row in seen.items():
            for one in self.before(value):
                earlier = one.publish.values[0]
                if seen.get(earlier, row + 1) > row:
                    self._world.history.incidents.append(
                        f"K2: {reader} reads {value!r} of {one.key!r} before {earlier!r}"
                    )
                    return
