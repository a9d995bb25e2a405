"""Who is where: addresses of nodes, leaders of partitions, and which connection to take.

What is known here may be old; nothing is wrong then but the way. A node that does not lead a
partition forwards or says who does, and the caller notes it here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api.homes import Homes
from angarium.api.layout import layout_of
from angarium.client.addresses import parsed_address
from angarium.errors import AngariumError
from angarium.ids import NodeId, ReplicaId, node_of
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from angarium.api import ClusterStatus, TopicInfo
    from angarium.api.layout import Layout
    from angarium.client.addresses import Address
    from angarium.client.nearby import Nearby
    from angarium.client.pool import Pool
    from angarium.wire import Connection

DISTRUST_S: Final = 5.0
"""A node that did not answer in time is asked last for so long."""

FORMER_MAX: Final = 5
"""Nodes that the newest answer does not name any more, and that are tried when nobody else is
there: who answered may have been cut off from the cluster, and have known less than we."""

NEAR_TRIED_MAX: Final = 3
"""Nodes of the own region that a reader tries before it goes to the leader."""

NAMED_ADDRESSES_MAX: Final = 5
"""Addresses that an error names when none of them answers; of more it says how many."""


class Routes:
    """The client's map of the cluster."""

    def __init__(
        self, pool: Pool, bootstrap: tuple[Address, ...], nearby: Nearby, *, topics_max: int
    ) -> None:
        self.nearby = nearby
        self.topics: dict[str, TopicInfo] = {}
        self.nodes: dict[NodeId, Address] = {}
        self.watchers: set[Callable[[], None]] = set()
        """Called when somebody has learned that a partition is led by another node than before."""
        self.doubted = asyncio.Event()
        """Set while there is a reason to ask anew where the nodes are; see `Freshness`."""
        self._pool = pool
        self._bootstrap = bootstrap
        self._topics_max = topics_max
        self._leaders: dict[tuple[str, int], NodeId] = {}
        self._distrusted: dict[Address, float] = {}
        # No longer named, the newest first.
        self._former: tuple[Address, ...] = ()
        self._homes: dict[str, Homes] = {}

    # --- what is learned ----------------------------------------------------------------------

    def learn_status(self, status: ClusterStatus) -> None:
        """Take over where the nodes are. Of an answer that names nobody nothing is learned."""
        nodes = {
            node.id: parsed_address(node.addresses["wire"])
            for node in status.nodes
            if node.addresses.get("wire")
        }
        if not nodes:
            return
        there = set(nodes.values())
        past = dict.fromkeys((*self.nodes.values(), *self._former))
        self._former = tuple(at for at in past if at not in there)[:FORMER_MAX]
        self.nodes = nodes
        self.nearby.learn(status)
        self.doubted.clear()

    def learn_topic(self, info: TopicInfo) -> None:
        """Take over who leads the partitions of a topic."""
        if info.name not in self.topics and len(self.topics) >= self._topics_max:
            self.forget_topic(next(iter(self.topics)))
        self.topics[info.name] = info
        homes = self._homes.setdefault(info.name, Homes())
        homes.learn(info, now=asyncio.get_running_loop().time())
        for partition in info.partitions:
            self.learn_leader(info.name, partition.number, partition.leader)

    def forget_topic(self, name: str) -> None:
        """Forget a topic, for instance because it is no longer there."""
        info = self.topics.pop(name, None)
        self._homes.pop(name, None)
        for partition in info.partitions if info is not None else ():
            self._leaders.pop((name, partition.number), None)

    def is_doubtful(self, topic: str) -> bool:
        """Tell whether nobody leads anything of a topic in one of its regions."""
        homes = self._homes.get(topic)
        return homes is not None and homes.are_doubtful

    def lost_regions(self, topic: str) -> frozenset[str]:
        """Return the regions that have lost their partitions of a homed topic."""
        homes = self._homes.get(topic)
        if homes is None or not homes.are_doubtful:
            return frozenset()
        return homes.lost(now=asyncio.get_running_loop().time())

    def layout(self, info: TopicInfo) -> Layout:
        """Return where this client writes to of a topic, as things are."""
        return layout_of(info, self.nearby.region.name, lost=self.lost_regions(info.name))

    def learn_leader(self, topic: str, partition: int, leader: int | None) -> None:
        """Note who leads a partition; a hint may name the node or its replica."""
        if leader is None:
            self._leaders.pop((topic, partition), None)
            return
        node = NodeId(leader) if leader < 1 << 15 else node_of(ReplicaId(leader))
        if self._leaders.get((topic, partition), node) != node:
            for watcher in list(self.watchers):
                watcher()
        self._leaders[topic, partition] = node

    def distrust(self, connection: Connection) -> None:
        """Note that the node behind `connection` did not answer in time."""
        address = self._address_of(connection)
        if address is not None:
            self._distrust(address)

    def _distrust(self, address: Address) -> None:
        self._distrusted[address] = asyncio.get_running_loop().time() + DISTRUST_S

    # --- which way to take ---------------------------------------------------------------------

    def leader_of(self, topic: str, partition: int) -> NodeId | None:
        """Return who leads the partition, as far as is known."""
        return self._leaders.get((topic, partition))

    def leader_connection(self, topic: str, partition: int) -> Connection | None:
        """Return the open connection to the partition's leader, if there is one already."""
        leader = self._leaders.get((topic, partition))
        address = self.nodes.get(leader) if leader is not None else None
        return self._pool.open_connection(address) if address is not None else None

    def reading_node(self, topic: str, partition: int) -> NodeId | None:
        """Return who should be read from; see `Nearby.reading_node`."""
        leader = self._leaders.get((topic, partition))
        if not self.nearby.region.name:
            return leader
        now = asyncio.get_running_loop().time()
        info = self.topics.get(topic)
        is_known = info is not None and partition < len(info.partitions)
        return self.nearby.reading_node(
            info.partitions[partition] if info is not None and is_known else None,
            partition,
            leader=leader,
            distrusted={
                node for node, at in self.nodes.items() if self._distrusted.get(at, 0.0) > now
            },
        )

    async def reading_connection(self, topic: str, partition: int) -> Connection:
        """Return a connection to whoever should be read from, or to one that can forward."""
        for _ in range(NEAR_TRIED_MAX):
            node = self.reading_node(topic, partition)
            address = self.nodes.get(node) if node is not None else None
            if address is None or node == self._leaders.get((topic, partition)):
                break
            try:
                return await self._pool.connection(address)
            except AngariumError:
                self._distrust(address)  # and so the next round finds another one
        return await self.connection_for(topic, partition)

    async def connection_for(self, topic: str, partition: int) -> Connection:
        """Return a connection to the partition's leader, or to a node that can forward."""
        leader = self._leaders.get((topic, partition))
        address = self.nodes.get(leader) if leader is not None else None
        if address is not None:
            try:
                return await self._pool.connection(address)
            except AngariumError:
                # It may have moved or died; the others know, or will soon.
                self._leaders.pop((topic, partition), None)
        return await self.any_connection()

    async def any_connection(self) -> Connection:
        """Return a connection to some node, a trusted and connected one first."""
        last: AngariumError | None = None
        tried = []
        for address in self._candidates():
            tried.append(str(address))
            try:
                return await self._pool.connection(address)
            except AngariumError as error:
                last = error
        if last is not None and not last.retriable:
            raise last
        raise Unreachable(f"no node can be reached at {_listed(tried)}; the last one said: {last}")

    def _candidates(self) -> Iterable[Address]:
        now = asyncio.get_running_loop().time()
        self._distrusted = {node: end for node, end in self._distrusted.items() if end > now}
        known = [
            *self._pool.open_addresses(),
            *self.nodes.values(),
            *self._bootstrap,
            *self._former,
        ]
        nodes = {at: node for node, at in self.nodes.items()}

        def rank(at: Address) -> tuple[bool, bool, float]:
            # Those that can be trusted first, and of these the ones that are near. Of those that
            # refused, the one that did so longest ago: each has its turn, however short the time
            # of a caller is, and those that let every attempt run into its time hide nobody.
            refused_at = self._pool.refused_at(at)
            is_doubtful = at in self._distrusted or (
                refused_at > 0 and refused_at > now - DISTRUST_S
            )
            return is_doubtful, self.nearby.is_far(nodes.get(at)), refused_at

        return sorted(dict.fromkeys(known), key=rank)

    def _address_of(self, connection: Connection) -> Address | None:
        for address in self._pool.open_addresses():
            if self._pool.open_connection(address) is connection:
                return address
        return None


def _listed(tried: Sequence[str]) -> str:
    named = ", ".join(tried[:NAMED_ADDRESSES_MAX])
    more = len(tried) - NAMED_ADDRESSES_MAX
    return f"{named} and {more} more" if more > 0 else named
