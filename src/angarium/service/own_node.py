"""The node that a service runs on, as the service sees it: these names, and nothing behind them.

`angarium.node.node.Node` has them. Each part of the service asks for as little as it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.ids import Micros, NodeId, RaftGroupId
    from angarium.log.folder_identity import FolderIdentity
    from angarium.node.admission import Admission
    from angarium.node.catalog_view import CatalogView
    from angarium.node.config import NodeConfig
    from angarium.node.driving import Driver
    from angarium.node.hearing import Hearing
    from angarium.node.levels import Levels
    from angarium.node.origins import Origins
    from angarium.node.peers import Peers
    from angarium.node.quorum import Quorum
    from angarium.node.readiness import Readiness
    from angarium.node.replicas import Replicas
    from angarium.node.spanning import Spanning
    from angarium.node.timekeeping import Timekeeping


class OwnNode(Protocol):
    """What every part of the service may ask: replicas here, the catalog, other nodes, the time."""

    @property
    def id(self) -> NodeId:
        """This node's id in the cluster."""

    @property
    def config(self) -> NodeConfig:
        """How it was set."""

    @property
    def catalog(self) -> CatalogView:
        """Topics, partitions and nodes, as far as they are known here."""

    @property
    def replicas(self) -> Replicas:
        """The partitions that have a replica here."""

    @property
    def peers(self) -> Peers:
        """The other nodes."""

    @property
    def quorum(self) -> Quorum:
        """Why partitions have no leader."""

    @property
    def levels(self) -> Levels:
        """The feature level that this node works at."""

    @property
    def origins(self) -> Origins:
        """From which regions partitions that this node leads are published to."""

    @property
    def spanning(self) -> Spanning:
        """Which transactions are under way in topics that are given partitions."""

    @property
    def driver(self) -> Driver:
        """Takes publishes to partitions that this node leads."""

    def now(self) -> Micros:
        """Return the time this node goes by: its clock's, as far as a majority believes it."""

    def leader_of(self, group: RaftGroupId) -> NodeId | None:
        """Return who leads `group`, as far as this node's own replica knows."""

    def silence_ms(self, group: RaftGroupId) -> int:
        """Return how long ago this node's replica last heard from its leader; 0 if it leads."""

    def round_trip_ms(self, node: NodeId) -> float | None:
        """Return how long the way to another node and back takes; None if that is not known."""

    def in_sync(self, group: RaftGroupId) -> tuple[NodeId, ...] | None:
        """Return who votes in `group`, can be reached and has everything but the very newest."""

    def wake(self) -> None:
        """Have everything that came in carried out, at the end of this turn of the loop."""


class MemberNode(OwnNode, Protocol):
    """What the cluster is told of the node, and lets it decide."""

    @property
    def folder_identity(self) -> FolderIdentity:
        """Who this node is; known once it has started."""

    @property
    def addresses(self) -> dict[str, str]:
        """By door, where others reach this node."""

    @property
    def admission(self) -> Admission:
        """Who is let in."""

    @property
    def readiness(self) -> Readiness:
        """Why nodes should not be relied on, if there is a reason."""

    @property
    def time(self) -> Timekeeping:
        """How far clocks are apart."""


class ServedNode(MemberNode, Protocol):
    """A node that is being given its service: where to subscribe, and what runs beside it."""

    @property
    def hearing(self) -> Hearing:
        """What happens in the node, for subscribers."""

    background: list[Callable[[], Coroutine[None, None, None]]]
