"""One node's own settings. What must agree everywhere is in the catalog instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angarium.node.release import Release
from angarium.replica.config import HostConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from angarium.discovery.port import Discovery
    from angarium.ids import NodeId
    from angarium.security.tls import NodeTls


def _no_token() -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """How one node runs."""

    data_directory: Path
    """Where everything it keeps lies. Made if it is not there."""

    wire_host: str = "127.0.0.1"
    wire_port: int = 7400
    """Where other nodes and our Python client connect. Port 0 takes a free one."""

    advertised: dict[str, str] = field(default_factory=dict)
    """By door, the address others should use; the wire's is host and port above if not given."""

    form: bool = False
    """Form a new cluster if the data directory is empty. Explicit, because it is done once."""

    join: tuple[str, ...] = ()
    """Wire addresses of nodes to ask for membership if the data directory is empty, again and
    again until one of them says yes."""

    discovery: Discovery | None = None
    """Who else knows where members are: asked besides `join`, whenever it is."""

    cluster_id: str = ""
    """Of those that `discovery` finds, the cluster to join; empty: the only one there is."""

    probe_gone: bool = True
    """Ask a node at once whether it is there when `discovery` says that it is gone, and let what it
    leads elect others if it does not answer."""

    node_id: NodeId | None = None
    """With `join`: come back as this node, whose data are gone."""

    join_token: Callable[[], str] = _no_token
    """With `join`: returns the join token to bring, read anew for each request."""

    tls: NodeTls | None = None
    """What the wire port shows and the links to other nodes believe; None: no TLS. With it nobody
    is taken for a node who has not shown a node certificate of this cluster."""

    are_peers_trusted: bool = True
    """Without TLS: whoever greets as a node, or asks to join, may be one. Where clients have to
    prove who they are this has to be switched on: it would be the way around that."""

    asks_for_join_tokens: bool = False
    """Whether a node that wants to come in needs a join token: where clients have to prove who they
    are, a new node is let in by somebody who may, once, and not by whoever can reach this port."""

    region: str = ""
    zone: str = ""
    host: str = ""
    """Failure domains. Nodes that share a host never hold two replicas of a partition."""

    tick_ms: int = 50
    """The length of a Raft tick. An election starts after 10 to 20 ticks without a leader."""

    auto_create_topics: bool = True
    """Make a topic with one partition when somebody publishes to a name that is not there."""

    catalog_voters: int = 3
    """How many nodes vote on the catalog; the others listen. Odd."""

    staged_bytes_max: int = 16 << 30
    """Bytes that may be staged and undecided in a partition that this node leads. At the limit a
    transaction is refused more."""

    clock_skew_max_ms: int = 2_000
    """How far apart clocks may be that agree. A node whose clock is further from those of a
    majority goes by their time, gives leadership away and trims nothing by age."""

    recover_after_s: float = 60.0
    """How long nodes have to be silent before a partition may be recovered without them."""

    rebalance_after_s: float = 60.0
    """How long every node has to be there, and the same, before evening out begins by itself."""

    rebalance_bytes_per_s: int = 16 << 20
    """What all its copies together may take, if it began by itself; 0: no bound."""

    copy_bytes_per_s_min: int = 8 << 20
    copy_bytes_per_s_max: int = 0
    """Between which bounds this node chooses what copies of segments, from and to it together, may
    take in a second; 0: no upper bound. The lower one grows while a copy is outrun."""

    follow_window_s: float = 60.0
    """Over how long most publishes have to come from another region before a leader follows."""

    follow_pause_s: float = 300.0
    """How long a leader that was chosen stays, wherever publishes come from then."""

    request_timeout_s: float = 10.0
    """How long one node waits for another to answer a forwarded request."""

    gather_bytes_max: int = 64 << 20
    """Bytes of publishes accepted and not yet proposed. At the limit more are refused."""

    scrub_bytes_per_s: int = 4 << 20
    """How fast segments that nobody reads are verified; 0 for not at all."""

    host_config: HostConfig = field(default_factory=HostConfig)

    release: Release = field(default_factory=Release)
    """What this software understands. Only tests set it, to stand in for a neighbouring release."""

    def __post_init__(self) -> None:
        if self.form and self.join:
            raise ValueError("a node forms a new cluster or joins one, not both")
        if self.tick_ms < 1:
            raise ValueError("a tick takes at least a millisecond")
        if self.clock_skew_max_ms < 1:
            raise ValueError("clock_skew_max_ms is at least 1")
        if self.staged_bytes_max < 1:
            raise ValueError("staged_bytes_max is at least 1")
        if self.recover_after_s < 0:
            raise ValueError("recover_after_s is not negative")
        if self.rebalance_after_s < 0 or self.rebalance_bytes_per_s < 0:
            raise ValueError("rebalance_after_s and rebalance_bytes_per_s are not negative")
        if self.copy_bytes_per_s_min < 1 or self.copy_bytes_per_s_max < 0:
            raise ValueError("copy_bytes_per_s_min is above 0, copy_bytes_per_s_max not negative")
        if self.follow_window_s <= 0 or self.follow_pause_s < 0:
            raise ValueError("follow_window_s is above 0, follow_pause_s not negative")
        if self.scrub_bytes_per_s < 0:
            raise ValueError("scrub_bytes_per_s is not negative")
        if self.catalog_voters < 1 or self.catalog_voters % 2 == 0:
            raise ValueError("the number of catalog voters is odd")
