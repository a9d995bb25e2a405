"""Who has a full copy of what, asked of the leaders before a disk is given up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api import ClusterStatus
from angarium.errors import AngariumError, TooFewReplicas
from angarium.ids import CATALOG_GROUP
from angarium.node.losses import Copies, objection
from angarium.node.steering import catalog_voters
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from angarium.ids import Incarnation, NodeId
    from angarium.service.own_node import OwnNode
    from angarium.service.partitions import Partitions

ANSWER_S_MAX: Final = 1.0

PATIENCE_S: Final = 3.0
"""How long an operator's wish waits for a cluster that is only just settling: while members change
nobody counts as full for a moment."""

LOOK_S: Final = 0.25


class CopyCheck:
    """Lets a disk be given up, or says which partition would lose too much by it."""

    def __init__(self, node: OwnNode, partitions: Partitions) -> None:
        self._node = node
        self._partitions = partitions

    async def check_replacement(self, node: NodeId, incarnation: Incarnation) -> None:
        """Raise `TooFewReplicas` if `node` must not come back now without what it had.

        Its records are gone from this disk already. Who replaces one after the other waits for
        this one to be let in, and does not wipe the next as long as it is not.
        """
        await self._node.catalog.catch_up()
        known = self._node.catalog.member(node)
        if known is None or known.incarnation == incarnation:
            return
        reason = objection(await self._copies_on(node), without=node)
        if reason is not None:
            raise TooFewReplicas(f"node {node} came without its data, and {reason}")

    async def check_drain(self, node: NodeId) -> None:
        """Raise `TooFewReplicas` if a partition on `node` has too few full replicas to move it."""
        await self._wait_for(node, without=None)

    async def check_removal(self, node: NodeId) -> None:
        """Raise `TooFewReplicas` if the catalog, or what is left there, would lose too much."""
        await self._wait_for(node, without=node)

    async def _wait_for(self, node: NodeId, *, without: NodeId | None) -> None:
        await self._node.catalog.catch_up()
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            reason = objection(await self._copies_on(node), without=without)
            if reason is None:
                return
            if asyncio.get_running_loop().time() >= deadline:
                raise TooFewReplicas(reason)
            await asyncio.sleep(LOOK_S)

    async def _copies_on(self, node: NodeId) -> list[Copies]:
        """Return everything that `node` is to hold a replica of, and the full ones of each."""
        known = self._node.catalog
        partitions = [one for one in known.partitions() if node in one.voters]
        catalog, in_sync = await asyncio.gather(
            self._catalog_in_sync(), self._partitions.in_sync(partitions)
        )
        voters = tuple(
            one.id
            for one in catalog_voters(known.members(), voters_max=self._node.config.catalog_voters)
        )
        copies = [Copies("the catalog", voters, frozenset(catalog))] if node in voters else []
        copies += [
            Copies(
                known.name_of(one.group),
                one.replicas,
                frozenset(in_sync.get(one.group, ())),
                has_witness=bool(one.witness),
            )
            for one in partitions
        ]
        return copies

    async def catalog_voters_missing(self) -> list[NodeId]:
        """Return who should vote on the catalog and is not in sync, as its leader says."""
        known = self._node.catalog
        voters = catalog_voters(known.members(), voters_max=self._node.config.catalog_voters)
        full = await self._catalog_in_sync()
        return [one.id for one in voters if one.id not in full]

    async def _catalog_in_sync(self) -> tuple[NodeId, ...]:
        node = self._node
        leader = node.leader_of(CATALOG_GROUP)
        if leader is None:
            return ()
        if leader == node.id:
            return node.in_sync(CATALOG_GROUP) or ()
        try:
            frame = await node.peers.request(
                leader, Operation.CLUSTER_STATUS, timeout_s=ANSWER_S_MAX
            )
            return frame.read(ClusterStatus).catalog_in_sync or ()
        except AngariumError:
            return ()
