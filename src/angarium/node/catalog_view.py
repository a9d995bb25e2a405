"""The catalog, for those outside the node: every question, and how to have it changed.

Rooms above the node ask here by name and never hold the machine itself, so how the catalog keeps
what it knows can change without them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.errors import NotFound, NotLeader, no_partition
from angarium.machine.catalog.placement import hosts_by_region
from angarium.node.balance import located

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Iterable, Mapping

    from angarium.ids import Epoch, Incarnation, Index, NodeId, ProducerId, RaftGroupId
    from angarium.machine.catalog import (
        Balance,
        CatalogCommand,
        CatalogMachine,
        CatalogOutcome,
        JoinTokenRow,
        Made,
        Maker,
        NodeRegister,
    )
    from angarium.machine.catalog.access_values import (
        GrantRow,
        QuotaRow,
        RoleRow,
        TokenRow,
        UserRow,
    )
    from angarium.machine.catalog.creations import MakerLimits
    from angarium.machine.catalog.values import Node as Member
    from angarium.machine.catalog.values import Partition, Topic
    from angarium.machine.outcomes import Refused
    from angarium.node.balance import LocatedPartition


class CatalogView(ABC):
    """The catalog as of the last entry applied here; raises `NotLeader` without one."""

    @property
    @abstractmethod
    def _known(self) -> CatalogMachine:
        """The catalog itself."""

    @property
    @abstractmethod
    def is_here(self) -> bool:
        """Whether this node has a copy of it at the moment; damage may have taken it."""

    @property
    @abstractmethod
    def applied(self) -> Index:
        """How far this node's catalog is."""

    @abstractmethod
    def name_of(self, group: RaftGroupId) -> str:
        """Return what people call a group of Raft."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Wait until this node's catalog knows everything that was decided before this call."""

    @abstractmethod
    async def submit(self, command: CatalogCommand) -> CatalogOutcome:
        """Carry out a command, wherever the leader is, and wait until it shows here too.

        Raises the refusal, or `NotLeader` while there is nobody to ask.
        """

    @abstractmethod
    def watch_policy(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called whenever users, roles, grants or tokens have changed here.

        Nothing may be asked from there: the node is in the middle of something.
        """

    # --- topics -----------------------------------------------------------------------------

    def find(self, name: str) -> Topic | None:
        """Return a topic by name, if there is one."""
        topics = self._known.topics
        known = topics.by_name.get(name)
        return None if known is None else topics.by_id[known]

    def topic(self, name: str) -> Topic:
        """Return a topic by name; raises `NotFound`."""
        topic = self.find(name)
        if topic is None:
            raise NotFound(f"there is no topic {name!r}")
        return topic

    def topics(self) -> Collection[Topic]:
        """Return every topic."""
        return self._known.topics.by_id.values()

    def topic_of(self, partition: Partition) -> Topic:
        """Return the topic that a partition belongs to."""
        return self._known.topics.by_id[partition.topic]

    def partition(self, name: str, number: int) -> Partition:
        """Return a partition; raises `NotFound`, and `InvalidArgument` for one below 0."""
        topic = self.topic(name)
        if not 0 <= number < len(topic.groups):
            raise no_partition(name, len(topic.groups), number)
        return self._known.topics.partitions[topic.groups[number]]

    def partitions_of(self, topic: Topic) -> list[Partition]:
        """Return all partitions of a topic, by number."""
        known = self._known.topics.partitions
        return [known[group] for group in topic.groups]

    def partition_in(self, group: RaftGroupId) -> Partition | None:
        """Return the partition that a Raft group is; None if it is one no longer."""
        return self._known.topics.partitions.get(group)

    def times_recovered(self, group: RaftGroupId) -> int:
        """Return how often a partition went on with one replica."""
        recovery = self._known.recoveries.by_group.get(group)
        return 0 if recovery is None else recovery.times

    def partitions(self) -> Collection[Partition]:
        """Return every partition of the cluster."""
        return self._known.topics.partitions.values()

    def producer_name(self, producer: ProducerId) -> str | None:
        """Return the name of a producer that has one."""
        return self._known.names_of_producers.get(producer)

    def epoch_of(self, name: str) -> Epoch | None:
        """Return the newest epoch of a named producer, or of a series of transactions."""
        named = self._known.named.get(name)
        return None if named is None else named.epoch

    # --- who may do what --------------------------------------------------------------------

    @property
    def access_version(self) -> Index:
        """Goes up with every change of users, roles, grants, tokens or quotas."""
        return self._known.access.version

    def user(self, name: str) -> UserRow | None:
        """Return a user by name."""
        return self._known.access.users.get(name)

    def users(self) -> Collection[UserRow]:
        """Return every user."""
        return self._known.access.users.values()

    def roles(self) -> Collection[RoleRow]:
        """Return every role but the built-in ones."""
        return self._known.access.roles.values()

    def grants(self) -> Collection[GrantRow]:
        """Return every grant but those of built-in roles."""
        return self._known.access.grants.values()

    def tokens(self) -> Collection[TokenRow]:
        """Return every token."""
        return self._known.access.tokens.values()

    def quotas(self) -> Collection[QuotaRow]:
        """Return every quota."""
        return self._known.access.quotas.rows.values()

    def limits_of(self, maker: Maker) -> MakerLimits:
        """Return how much a principal may create."""
        access = self._known.access
        return access.quotas.limits_of(maker, access.users)

    def created_by(self, maker: Maker) -> Made:
        """Return what a principal has created that still exists."""
        return self._known.topics.creations.of(maker.creator)

    def token(self, digest: bytes) -> TokenRow | None:
        """Return the token that has this digest."""
        access = self._known.access
        key = access.tokens_by_digest.get(digest)
        return None if key is None else access.tokens[key]

    def join_tokens(self) -> Collection[JoinTokenRow]:
        """Return every join token whose time was not up when the last one was made."""
        return self._known.join_tokens.by_digest.values()

    def join_token(self, digest: bytes) -> JoinTokenRow | None:
        """Return the join token that has this digest."""
        return self._known.join_tokens.by_digest.get(digest)

    # --- nodes ------------------------------------------------------------------------------

    @property
    def decoy_key(self) -> bytes:
        """Return the cluster's key for salts of names without an account; empty if it has none."""
        return self._known.decoy_key

    @property
    def cluster(self) -> str:
        """The cluster's name."""
        return self._known.cluster

    @property
    def level(self) -> int:
        """The feature level that the cluster works at."""
        return self._known.nodes.level

    @property
    def level_possible(self) -> int:
        """The highest one that every node knows."""
        return self._known.nodes.level_possible

    def known_as(self, node: NodeId | None, incarnation: Incarnation) -> Member | None:
        """Return the member under a number, or, where none is given, with these data."""
        return self._known.nodes.known_as(node, incarnation)

    def lacks_invitation(self, command: NodeRegister) -> Refused | None:
        """Return why a registration needs a join token, wherever tokens are asked for or not."""
        return self._known.nodes.lacks_invitation(command)

    def member(self, node: NodeId) -> Member | None:
        """Return a node of the cluster."""
        return self._known.nodes.by_id.get(node)

    def members(self) -> list[Member]:
        """Return the nodes of the cluster, by id."""
        return sorted(self._known.nodes.by_id.values(), key=lambda one: one.id)

    def has_been(self, node: NodeId) -> bool:
        """Tell whether there is a node of that id, or ever was."""
        return node < self._known.nodes.next_id

    def hosts_by_region(self) -> Counter[str]:
        """Return how many machines of each region may be given replicas."""
        return hosts_by_region(self._known.nodes.placeable())

    def regions_of(self, nodes: Iterable[NodeId]) -> list[str]:
        """Return where nodes are; empty for those that do not say."""
        known = self._known.nodes.by_id
        return [known[one].labels.region for one in nodes if one in known]

    def replicas_on(self, node: NodeId) -> int:
        """Return how many replicas a node is to hold."""
        return self._known.topics.loads.replicas.get(node, 0)

    # --- evenness ---------------------------------------------------------------------------

    @property
    def balance(self) -> Balance:
        """Whether what nodes hold is being evened out, and how fast."""
        return self._known.balance

    def placeable(self) -> list[Member]:
        """Return the nodes that may be given replicas, by id."""
        return self._known.nodes.placeable()

    def located(self, sizes: Mapping[RaftGroupId, int]) -> list[LocatedPartition]:
        """Return where every partition is, or is on its way to, for who plans moves."""
        return located(self._known, sizes)

    def check_formed(self) -> None:
        """Raise `NotLeader` as long as this catalog knows of no member.

        The first id is that of the node that forms the cluster. Until the catalog has said so, a
        newcomer would be given the same one.
        """
        if not self._known.cluster or not self._known.nodes.by_id:
            raise NotLeader("the cluster is being formed")
