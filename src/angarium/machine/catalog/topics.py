"""Topics and where their partitions live. Ids of topics and groups go upward and are never reused.

A topic's name becomes part of paths, metric labels and table names, so it is plain: letters,
digits, `_` and `-`, in words joined by single dots.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import (
    AlreadyExists,
    InvalidArgument,
    LayoutChanged,
    NotFound,
    PreconditionFailed,
)
from angarium.ids import Micros, NodeId, RaftGroupId, TopicId
from angarium.machine.catalog.creations import Creations, created_by
from angarium.machine.catalog.placement import (
    Loads,
    chosen_readers,
    chosen_replicas,
    chosen_witness,
    host_of,
    hosts_by_region,
)
from angarium.machine.catalog.regions import (
    HOMED,
    has_moved,
    home_of,
    hosts_for_records,
    may_hold,
    reading_regions,
    regions_fault,
    shortage,
    wish_for,
    wish_of,
)
from angarium.machine.catalog.values import (
    Moving,
    Partition,
    Topic,
    TopicMade,
    TopicSettings,
)
from angarium.machine.outcomes import Done, Refused, limited, oversized, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.machine.catalog.commands import (
        Fenced,
        Reassign,
        Reassigned,
        TopicAlter,
        TopicCreate,
        TopicDelete,
    )
    from angarium.machine.catalog.creations import MakerLimits
    from angarium.machine.catalog.nodes import Nodes
    from angarium.machine.catalog.regions import Wish
    from angarium.machine.catalog.values import Node

TOPIC_NAME_MAX: Final = 200
"""Characters of a topic's name: with an id and a suffix it still fits a file name."""

PARTITIONS_MAX: Final = 1_024
"""Partitions of one topic. More are refused."""

TOPICS_MAX: Final = 10_000
"""Topics of a cluster. At the limit no topic is made."""

REPLICATION_MAX: Final = 7
"""Replicas of one partition. More would cost latency and protect from nothing new."""

LAYOUTS_MAX: Final = 64
"""Layouts that a topic may have: so often partitions can be added to it, less one. Readers from its
beginning pass one fence after the other."""

KEYED_ORDER_LEVEL: Final = 6
"""From this feature level on partitions that are added begin with a layout of their own."""

EARLIER_LAYOUTS_LEVEL: Final = 8
"""From this feature level on the catalog records when a layout came into force, and numbered
publishes are looked up in the partitions to which earlier layouts have sent them."""

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

    __slots__ = (
        "by_id",
        "by_name",
        "creations",
        "loads",
        "next_group",
        "next_topic",
        "partitions",
    )

    def __init__(self) -> None:
        self.by_id: dict[TopicId, Topic] = {}
        self.by_name: dict[str, TopicId] = {}
        self.partitions: dict[RaftGroupId, Partition] = {}
        self.next_topic = 1
        self.next_group = 1
        self.loads = Loads()
        self.creations = Creations()

    # --- topics ------------------------------------------------------------------------------

    def create(
        self, command: TopicCreate, nodes: Sequence[Node], limits: MakerLimits | None = None
    ) -> TopicMade | Refused:
        """Make a topic. Asking for the same one again gives the one that is there.

        `limits` are those of the principal that it counts for.
        """
        verdict = self._judge_new(command, nodes, limits)
        if verdict is not None:
            return verdict
        topic_id = TopicId(self.next_topic)
        self.next_topic += 1
        groups = self._add_partitions(topic_id, command.settings, 0, command.partitions, nodes)
        maker = command.maker
        topic = Topic(
            topic_id,
            command.name,
            command.settings,
            groups,
            command.time,
            creator="" if maker is None else maker.creator,
            partitions_by=created_by((), maker, len(groups)),
        )
        self.by_id[topic_id] = topic
        self.by_name[command.name] = topic_id
        self.creations.add(topic)
        return TopicMade(topic_id, groups)

    def _judge_new(
        self, command: TopicCreate, nodes: Sequence[Node], limits: MakerLimits | None
    ) -> TopicMade | Refused | None:
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
        else:
            excess = self.creations.fault(limits, topics=1, partitions=command.partitions)
            verdict = excess or _unplaceable(settings, command.partitions, nodes)
        return verdict

    def alter(
        self,
        command: TopicAlter,
        nodes: Sequence[Node],
        limits: MakerLimits | None = None,
        *,
        is_fenced: bool,
    ) -> TopicMade | Refused:
        """Change settings, add partitions. Partitions never become fewer: keys would move.

        With `is_fenced` those that are added begin with a layout of their own, which is in force
        once every older partition has its fence. They count for the principal that adds them,
        not for the topic's creator; `limits` are its.
        """
        topic = self.by_id.get(command.topic)
        if topic is None:
            return refused(NotFound, f"there is no topic {command.topic}")
        settings = command.settings or topic.settings
        partitions = command.partitions or len(topic.groups)
        moved = has_moved(topic.settings, settings)
        verdict = _alteration_fault(topic, settings, partitions)
        if verdict is None and partitions > len(topic.groups):
            verdict = self.creations.fault(limits, partitions=partitions - len(topic.groups))
        if verdict is None and (moved or partitions > len(topic.groups)):
            verdict = _unplaceable(settings, partitions, nodes)
        if verdict is None and is_fenced and partitions > len(topic.groups):
            verdict = _layout_fault(topic)
        if verdict is not None:
            return verdict
        changed = msgspec.structs.replace(topic, settings=settings)
        if partitions > len(topic.groups):
            if is_fenced:
                changed = laid_out_anew(changed, partitions)
            added = self._add_partitions(topic.id, settings, len(topic.groups), partitions, nodes)
            changed = msgspec.structs.replace(
                changed,
                groups=(*topic.groups, *added),
                partitions_by=created_by(topic.partitions_by, command.maker, len(added)),
            )
            self.creations.add(topic, -1)
            self.creations.add(changed)
        self.by_id[topic.id] = changed
        self._forget_followed(changed)
        if moved:
            # Fewer or more replicas of the same kind: what is there stays. Else all is chosen anew.
            anew = settings.homes != topic.settings.homes or (
                settings.placement != topic.settings.placement
            )
            for group in topic.groups:
                target = self._target(self.partitions[group], nodes, anew=anew)
                assert target is not None, "there were enough hosts"
                self._put(self.partitions[group], target, nodes)
        elif topic.settings.leaders_follow and not settings.leaders_follow:
            self._lead_as_wished(changed, nodes)
        return TopicMade(topic.id, changed.groups)

    def _forget_followed(self, topic: Topic) -> None:
        """Forget where leaders went that do not follow: later their publishers may be elsewhere."""
        for group in () if topic.settings.leaders_follow else topic.groups:
            self.partitions[group] = msgspec.structs.replace(
                self.partitions[group], led_in="", led_since=Micros(0)
            )

    def _lead_as_wished(self, topic: Topic, nodes: Sequence[Node]) -> None:
        """Let partitions whose leaders do not follow any more be led where `homes` says."""
        ranks = {region: rank for rank, region in enumerate(topic.settings.homes)}
        regions = {node.id: node.labels.region for node in nodes}
        for group in topic.groups:
            partition = self.partitions[group]
            if not ranks or partition.target:
                continue  # anywhere is right; and a move goes where it should by itself

            def rank(node: NodeId) -> int:
                return ranks.get(regions.get(node, ""), len(ranks))

            leader = min(partition.replicas, key=rank)
            if rank(leader) < rank(partition.replicas[0]):
                others = (one for one in partition.replicas if one != leader)
                self._put(partition, (leader, *others), nodes)

    def fenced(self, command: Fenced, *, is_timed: bool = True) -> Done | Refused:
        """Note that a partition has its fence; with the last of them the layout is in force.

        Since when, is noted if it `is_timed`.
        """
        partition = self.partitions.get(command.group)
        if partition is None:
            return refused(NotFound, f"there is no partition {command.group}")
        topic = self.by_id[partition.topic]
        # Of an older layout it says nothing about this one.
        if command.layout != len(topic.layouts) - 1 or partition.number not in topic.unfenced:
            return Done(changed=False)
        left = tuple(one for one in topic.unfenced if one != partition.number)
        begun = topic.begun
        if is_timed and not left:
            begun = (*begun, *[Micros(0)] * (command.layout - len(begun)), command.time)
        self.by_id[topic.id] = msgspec.structs.replace(topic, unfenced=left, begun=begun)
        return Done()

    def delete(self, command: TopicDelete) -> Done | Refused:
        """Remove a topic and its partitions."""
        topic = self.by_id.pop(command.topic, None)
        if topic is None:
            return refused(NotFound, f"there is no topic {command.topic}")
        del self.by_name[topic.name]
        self.creations.add(topic, -1)
        for group in topic.groups:
            self.loads.add(self.partitions.pop(group), -1)
        return Done()

    # --- replicas ----------------------------------------------------------------------------

    def reassign(self, command: Reassign, nodes: Sequence[Node]) -> Moving | Done | Refused:
        """Say where a partition shall live; the cluster moves it there by joint consensus."""
        partition = self.partitions.get(command.group)
        if partition is None:
            return refused(NotFound, f"there is no partition {command.group}")
        if command.replaces and (partition.target or partition.replicas != command.replaces):
            return refused(PreconditionFailed, f"{command.group} has moved meanwhile")
        settings = self.by_id[partition.topic].settings
        target: tuple[NodeId, ...] | None
        if command.replicas:
            target = command.replicas
            fault = _replicas_fault(target, nodes, wish_of(settings, partition.number))
            if fault is not None:
                return refused(PreconditionFailed, fault)
        else:
            nodes = [node for node in nodes if node.id not in command.leaving]
            target = self._target(partition, nodes)
        wanted = partition.target or partition.replicas
        # Where those who vote cannot go anywhere else, those who only listen may, or the witness.
        beside = self._beside(partition, target or wanted, nodes)
        if target is None and beside == (partition.readers, partition.witness):
            return _too_few(nodes, wish_of(settings, partition.number))
        target = target or wanted
        is_chosen = settings.leaders_follow and bool(command.replicas)
        is_as_it_is = target == wanted and beside == (partition.readers, partition.witness)
        if is_as_it_is and not is_chosen:
            return Done(changed=False)
        if is_chosen:
            # Also where nothing changes: who says so wants it to stay. The clock of the catalog's
            # next leader may be behind that of the last.
            led_in = next(node.labels.region for node in nodes if node.id == target[0])
            partition = msgspec.structs.replace(
                partition, led_in=led_in, led_since=max(partition.led_since, command.time)
            )
        self._put(partition, target, nodes)
        return Moving(partition.group, target)

    def may_move(self, partition: Partition, nodes: Sequence[Node]) -> bool:
        """Tell whether `nodes` have hosts enough for a partition, wherever it is now."""
        wish = wish_of(self.by_id[partition.topic].settings, partition.number)
        return may_hold(wish, hosts_by_region(nodes))

    def is_astray(self, partition: Partition, nodes: Sequence[Node]) -> bool:
        """Tell whether a homed partition could be more at home, or readers should be others.

        Nodes come and go, and with them regions, homes and what they can take. How well replicas
        are spread is for who evens things out (`node.balance`).
        """
        settings = self.by_id[partition.topic].settings
        voters = partition.target or partition.replicas
        home = home_of(settings, partition.number)
        has_others = settings.readers or partition.readers or settings.witness or partition.witness
        if not home and not has_others:
            return False
        if self._beside(partition, voters, nodes) != (partition.readers, partition.witness):
            return True
        if not home or not self.may_move(partition, nodes):
            return False
        target = self._target(partition, nodes)
        at_home = {node.id for node in nodes if node.labels.region == home}
        return target is not None and len(at_home & set(target)) > len(at_home & set(voters))

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

    def go_on_with(
        self, group: RaftGroupId, source: NodeId, gone: Sequence[NodeId], nodes: Nodes
    ) -> None:
        """Let a partition live on one node alone, and be on its way to as many as it should have.

        Where the others are too few for that without the lost ones, it waits for these.
        """
        partition = self.partitions[group]
        settings = self.by_id[partition.topic].settings
        former = [one for one in partition.target or partition.replicas if one in nodes.by_id]
        self.loads.add(partition, -1)
        alone = msgspec.structs.replace(partition, replicas=(source,), target=(), founders=())
        usable = [one for one in nodes.placeable() if one.id not in gone or one.id == source]
        target = chosen_replicas(
            usable,
            wish_for(settings, partition),
            group=group,
            loads=self.loads,
            keep=(source,),
        )
        if target is None:
            target = tuple(dict.fromkeys((source, *former)))[: settings.replication]
        self.loads.add(alone, 1)
        self._put(alone, target, usable)

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
            wish = wish_of(settings, number)
            replicas = chosen_replicas(nodes, wish, group=group, loads=self.loads)
            assert replicas is not None, "there were enough hosts"
            partition = Partition(group, topic, number, replicas, ())
            readers, witness = self._chosen_beside(partition, settings, replicas, nodes)
            by_id = {node.id: node for node in nodes}
            founders = [by_id[node].replica_in(group) for node in replicas]
            if witness:
                founders.append(by_id[witness].witness_in(group))
            partition = msgspec.structs.replace(
                partition, founders=tuple(sorted(founders)), readers=readers, witness=witness
            )
            self.partitions[group] = partition
            self.loads.add(partition, 1)
            groups.append(group)
        return tuple(groups)

    def _target(
        self, partition: Partition, nodes: Sequence[Node], *, anew: bool = False
    ) -> tuple[NodeId, ...] | None:
        """Return the best nodes for `partition`, moving as little as possible."""
        settings = self.by_id[partition.topic].settings
        self.loads.add(partition, -1)
        target = chosen_replicas(
            nodes,
            wish_for(settings, partition),
            group=partition.group,
            loads=self.loads,
            keep=partition.replicas,
            anew=anew,
        )
        self.loads.add(partition, 1)
        if target is not None and not anew and sorted(target) == sorted(partition.replicas):
            return partition.replicas
        return target

    def _beside(
        self, partition: Partition, voters: tuple[NodeId, ...], nodes: Sequence[Node]
    ) -> tuple[tuple[NodeId, ...], NodeId]:
        """Return who is to listen in `partition`, and who is to break ties, beside `voters`."""
        settings = self.by_id[partition.topic].settings
        self.loads.add(partition, -1)
        beside = self._chosen_beside(partition, settings, voters, nodes)
        self.loads.add(partition, 1)
        return beside

    def _chosen_beside(
        self,
        partition: Partition,
        settings: TopicSettings,
        voters: tuple[NodeId, ...],
        nodes: Sequence[Node],
    ) -> tuple[tuple[NodeId, ...], NodeId]:
        witness = chosen_witness(
            nodes,
            settings.witness,
            voters,
            group=partition.group,
            loads=self.loads,
            keep=partition.witness,
        )
        readers = chosen_readers(
            [node for node in nodes if node.id != witness],
            reading_regions(settings, nodes),
            voters,
            group=partition.group,
            loads=self.loads,
            keep=partition.readers,
            filled=partition.replicas,
        )
        return readers, witness

    def stay(self, partition: Partition, nodes: Sequence[Node]) -> None:
        """Call a move off: the partition goes back to where it is still said to live."""
        self._put(partition, partition.replicas, nodes)

    def _put(self, partition: Partition, target: tuple[NodeId, ...], nodes: Sequence[Node]) -> None:
        readers, witness = self._beside(partition, target, nodes)
        self.loads.add(partition, -1)
        stays = target == partition.replicas and witness == partition.witness
        moving = msgspec.structs.replace(
            partition,
            target=() if target == partition.replicas else target,
            # With other readers alone nothing moves, and whoever is to form it still may.
            founders=partition.founders if stays and not partition.target else (),
            readers=readers,
            witness=witness,
        )
        self.partitions[partition.group] = moving
        self.loads.add(moving, 1)


def _alteration_fault(topic: Topic, settings: TopicSettings, partitions: int) -> Refused | None:
    """Return what is wrong with other settings or a number of partitions, if anything."""
    fault = _settings_fault(settings)
    if fault is None and not len(topic.groups) <= partitions <= PARTITIONS_MAX:
        fault = (
            f"{topic.name} has {len(topic.groups)} partitions; they can become more, up to "
            f"{PARTITIONS_MAX}, and not {partitions}"
        )
    return None if fault is None else refused(InvalidArgument, fault)


def _layout_fault(topic: Topic) -> Refused | None:
    if topic.unfenced:
        return refused(
            LayoutChanged,
            f"{topic.name} is being given partitions; those of its older ones are not ready yet: "
            f"{', '.join(map(str, topic.unfenced))}",
        )
    if len(topic.layouts) >= LAYOUTS_MAX:
        said = f"{topic.name} was given partitions {LAYOUTS_MAX - 1} times"
        return oversized("LAYOUTS_MAX", said)
    return None


def laid_out_anew(topic: Topic, partitions: int) -> Topic:
    """Return a topic with one more layout, of so many partitions, which no fence stands for yet."""
    known = len(topic.groups)
    return msgspec.structs.replace(
        topic,
        layouts=(*(topic.layouts or (known,)), partitions),
        unfenced=tuple(range(known)),
    )


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
    if settings.leaders_follow and settings.placement == HOMED:
        return "leaders of a homed topic stay at home: `leaders_follow` is for one that is spread"
    return None


def _replicas_fault(replicas: tuple[NodeId, ...], nodes: Sequence[Node], wish: Wish) -> str | None:
    by_id = {node.id: node for node in nodes}
    if len(replicas) != wish.replication or any(node not in by_id for node in replicas):
        return f"{wish.replication} nodes are needed that are there and not draining"
    if len({host_of(by_id[node]) for node in replicas}) != len(replicas):
        return "two replicas would share a host"
    if not all(wish.may_be_in(by_id[node].labels.region) for node in replicas):
        return f"only the witness may be in {', '.join(wish.witness)}"
    at_home = sum(by_id[node].labels.region in wish.regions for node in replicas)
    if at_home < wish.at_home_min:
        return f"{wish.at_home_min} replicas have to be in {wish.regions[0]!r}, their home"
    if wish.is_homed and by_id[replicas[0]].labels.region != wish.regions[0]:
        return f"the first of the replicas, which is to lead, has to be in {wish.regions[0]!r}"
    return None


def _unplaceable(settings: TopicSettings, partitions: int, nodes: Sequence[Node]) -> Refused | None:
    """Return why the cluster cannot hold such a topic, if it cannot."""
    fault = regions_fault(settings, partitions)
    if fault is not None:
        return refused(InvalidArgument, fault)
    hosts = hosts_by_region(nodes)
    wish = wish_of(settings, 0)
    if hosts_for_records(wish, hosts) < settings.replication:
        return _too_few(nodes, wish)
    lacking = shortage(settings, nodes, hosts)
    return None if lacking is None else refused(PreconditionFailed, lacking)


def _too_few(nodes: Sequence[Node], wish: Wish) -> Refused:
    hosts = hosts_by_region(nodes)
    usable = hosts_for_records(wish, hosts)
    if wish.is_homed and usable >= wish.replication:
        home = wish.regions[0]
        said = f"{wish.at_home_min} hosts of {home!r} are needed, {hosts[home]} can be used"
    else:
        where = f" outside of {', '.join(wish.witness)}" if wish.witness else ""
        said = f"{wish.replication} hosts{where} are needed, {usable} can be used"
    return refused(PreconditionFailed, said)
