"""Rolling restarts and upgrades behind the contract: whether the next node may be taken now.

One may if every partition has all of its replicas in sync, nothing is on its way, the catalog has
all of its voters, and every node is there and says that it may be relied on: then any one of them
can be missing for a while. What is asked of others is asked anew with every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api.upgrades import NodeState, UpgradeInfo
from angarium.ids import CATALOG_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import NodeId
    from angarium.machine.catalog import Partition
    from angarium.service.copy_check import CopyCheck
    from angarium.service.own_node import MemberNode
    from angarium.service.partitions import Partitions

CERTIFICATE_DAYS_MIN: Final = 1.0
"""With less, a node that restarts may not be believed any more when it is back."""

CERTIFICATE_DAYS_SOON: Final = 14.0
"""With less it is remarked upon."""

DISK_FREE_BYTES_MIN: Final = 128 << 20
"""With less, a node may not have room for what it missed while it was away."""

NAMED_MAX: Final = 5
"""Partitions named in one sentence."""

ALONE_MAX: Final = 2
"""A partition with no more replicas than this cannot spare one."""


class Upgrading:
    """Implements `api.upgrades.UpgradeBroker`."""

    def __init__(self, node: MemberNode, partitions: Partitions, copies: CopyCheck) -> None:
        self._node = node
        self._partitions = partitions
        self._copies = copies

    async def describe_upgrade(self) -> UpgradeInfo:
        """Return whether a node may be taken down now, and which one."""
        catalog = self._node.catalog
        await catalog.catch_up()
        await self._node.readiness.hear()
        nodes = [self._state(one.id) for one in catalog.members()]
        partitions = list(catalog.partitions())
        in_sync = await self._partitions.in_sync(partitions)
        behind = [one for one in partitions if set(one.voters) - set(in_sync.get(one.group, ()))]
        missing = await self._copies.catalog_voters_missing()
        hindrances = [
            *self._about_nodes(nodes),
            *_about_voters(missing),
            *self._named("are on their way", [one for one in partitions if one.target]),
            *self._named("have not all of their replicas in sync", behind),
        ]
        return UpgradeInfo(
            hindrances=tuple(hindrances),
            remarks=tuple(self._remarks(nodes, partitions)),
            next_node=next_node(nodes),
            nodes=tuple(nodes),
            level=catalog.level,
            level_possible=catalog.level_possible,
        )

    def _state(self, node: NodeId) -> NodeState:
        own = self._node
        member = own.catalog.member(node)
        facts = own.readiness.facts_of(node)
        alive = node == own.id or own.peers.is_up(node)
        return NodeState(
            node=node,
            alive=alive,
            version=facts.version if alive else "",
            level_max=1 if member is None else member.level_max,
            started_at=facts.started_at,
            certificate_days=facts.certificate_days,
            disk_free_bytes=facts.disk_free_bytes,
            leads_catalog=own.leader_of(CATALOG_GROUP) == node,
        )

    def _about_nodes(self, nodes: Sequence[NodeState]) -> Iterator[str]:
        for one in nodes:
            if not one.alive:
                yield f"node {one.node} cannot be reached"
                continue
            for reason in self._node.readiness.of(one.node):
                yield f"node {one.node} is not ready: {reason}"
            days, free = one.certificate_days, one.disk_free_bytes
            if days is not None and days < CERTIFICATE_DAYS_MIN:
                yield f"a certificate of node {one.node} is good for {max(days, 0):.1f} days only"
            if free is not None and free < DISK_FREE_BYTES_MIN:
                yield f"the disk of node {one.node} has {free >> 20} MiB left"

    def _named(self, what: str, partitions: Sequence[Partition]) -> Iterator[str]:
        if partitions:
            names = ", ".join(
                self._node.catalog.name_of(one.group) for one in partitions[:NAMED_MAX]
            )
            more = len(partitions) - NAMED_MAX
            yield f"{names}{f' and {more} more' if more > 0 else ''} {what}"

    def _remarks(
        self, nodes: Sequence[NodeState], partitions: Sequence[Partition]
    ) -> Iterator[str]:
        few = [one for one in partitions if len(one.voters) <= ALONE_MAX]
        yield from self._named("cannot be served while a node that holds them is down", few)
        for one in nodes:
            days = one.certificate_days
            if days is not None and CERTIFICATE_DAYS_MIN <= days < CERTIFICATE_DAYS_SOON:
                yield f"a certificate of node {one.node} is good for {days:.0f} days"
            mode = self._node.readiness.facts_of(one.node).shared_mode
            if mode:
                yield (
                    f"other users of its machine may enter the data folder of node {one.node}"
                    f" (mode {mode:04o}): `chmod 700` it, unless they are meant to read it"
                )
        catalog = self._node.catalog
        if catalog.level_possible > catalog.level:
            yield (
                f"every node knows feature level {catalog.level_possible}, the cluster works at "
                f"{catalog.level}: when all run the new release, `angarium cluster raise-level`"
            )


def next_node(nodes: Sequence[NodeState]) -> NodeId | None:
    """Return which node comes next, whether or not one may be taken now."""
    there = [one for one in nodes if one.alive]
    if not there:
        return None
    newest = max(there, key=lambda one: one.started_at)
    # Builds between two releases have one version, and may know different levels.
    older = [
        one for one in there if one.version != newest.version or one.level_max < newest.level_max
    ]
    # Whoever leads the catalog hands it over when it stops: once is enough.
    chosen = min(older or there, key=lambda one: (one.leads_catalog, one.started_at, one.node))
    return chosen.node


def _about_voters(missing: Sequence[NodeId]) -> Iterator[str]:
    if missing:
        named = ", ".join(f"node {one}" for one in missing)
        yield f"of the voters of the catalog {named} is not in sync"
