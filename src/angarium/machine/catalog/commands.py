"""What the bytes of an entry of group 0 say. The form is that of all other commands."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from angarium.ids import (
    Epoch,
    Incarnation,
    Index,
    Micros,
    NodeId,
    RaftGroupId,
    ReplicaId,
    Term,
    TopicId,
)
from angarium.machine.catalog.access_commands import (
    AccessCommand,
    GrantDelete,
    GrantPut,
    QuotaDelete,
    QuotaPut,
    RoleDelete,
    RolePut,
    TokenDelete,
    TokenPut,
    UserDelete,
    UserPut,
)
from angarium.machine.catalog.creations import Maker
from angarium.machine.catalog.values import Labels, TopicSettings
from angarium.machine.forms import Forms


class CatalogKind(IntEnum):
    """The first byte of an entry. Numbers are for ever."""

    FORM = 64
    NODE_REGISTER = 65
    NODE_DRAIN = 66
    NODE_REMOVE = 67
    TOPIC_CREATE = 68
    TOPIC_ALTER = 69
    TOPIC_DELETE = 70
    REASSIGN = 71
    REASSIGNED = 72
    PRODUCER_BLOCK = 73
    PRODUCER_OPEN = 74
    PRODUCER_CLOSE = 75
    LEVEL_RAISE = 76
    PRODUCER_SHARE = 77
    USER_PUT = 80
    USER_DELETE = 81
    ROLE_PUT = 82
    ROLE_DELETE = 83
    GRANT_PUT = 84
    GRANT_DELETE = 85
    TOKEN_PUT = 86
    TOKEN_DELETE = 87
    QUOTA_PUT = 96
    QUOTA_DELETE = 97
    JOIN_TOKEN_PUT = 100
    JOIN_TOKEN_DELETE = 101
    NODE_JOIN = 102
    BALANCE_BEGIN = 110
    BALANCE_END = 111
    BALANCE_CHOOSE = 112
    FENCED = 125
    PARTITION_RECOVER = 130
    CLUSTER_RECOVER = 131


DecoyKey: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=64)]


class _Command(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    time: Micros = Micros(0)
    """The leader's clock in µs."""


class Form(_Command, frozen=True, kw_only=True, array_like=True):
    """Make the cluster. Once, explicitly, by an operator."""

    cluster: str
    level: int = 1
    """The feature level it begins with: the highest that its first node knows."""
    is_automatic: bool = False
    """Whether what nodes hold is evened out by itself, until somebody chooses otherwise."""
    decoy_key: DecoyKey = b""
    """Drawn by the node that forms the cluster, for `CatalogMachine.decoy_key`. Used from
    `DECOY_KEY_LEVEL` on."""

    def __repr__(self) -> str:
        return f"Form({self.cluster!r}, level={self.level}, is_automatic={self.is_automatic}, …)"


class NodeRegister(_Command, frozen=True, kw_only=True, array_like=True):
    """Join, or come back: with another address, or with a new data directory."""

    node: NodeId | None = None
    """The id it was given before; nothing for a newcomer."""
    incarnation: Incarnation
    addresses: tuple[tuple[str, str], ...]
    labels: Labels = Labels()
    level_min: int = 1
    level_max: int = 1
    renewed: tuple[tuple[RaftGroupId, Incarnation], ...] | None = None
    """As in `Node`. Nothing is said about it by who only tells where it is."""
    name: str = ""
    """The NAME in the certificate that the node has shown; empty without TLS."""


class NodeDrain(_Command, frozen=True, kw_only=True, array_like=True):
    """Give the node no new replicas, or again some."""

    node: NodeId
    draining: bool = True


class NodeRemove(_Command, frozen=True, kw_only=True, array_like=True):
    """Forget a node that holds nothing."""

    node: NodeId


class TopicCreate(_Command, frozen=True, kw_only=True, array_like=True):
    """Make a topic and place its partitions."""

    name: str
    partitions: int = 1
    settings: TopicSettings = TopicSettings()
    internal: bool = False
    """The cluster's own, under a name that users cannot take."""
    maker: Maker | None = None
    """The principal it counts for; None: it counts for no quota. Since feature level 8."""


class TopicAlter(_Command, frozen=True, kw_only=True, array_like=True):
    """Give a topic other settings, or more partitions."""

    topic: TopicId
    partitions: int | None = None
    settings: TopicSettings | None = None
    maker: Maker | None = None
    """The principal that added partitions count for, as in `TopicCreate`."""


class TopicDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Remove a topic with everything in it."""

    topic: TopicId


class Reassign(_Command, frozen=True, kw_only=True, array_like=True):
    """Move a partition: to `replicas`, or to wherever is best without `leaving`."""

    group: RaftGroupId
    replicas: tuple[NodeId, ...] = ()
    leaving: tuple[NodeId, ...] = ()
    replaces: tuple[NodeId, ...] = ()
    """Only if the partition lives on just these, and is not on its way: plans grow old."""


class Reassigned(_Command, frozen=True, kw_only=True, array_like=True):
    """The partition has arrived: its Raft group has exactly these voters."""

    group: RaftGroupId
    replicas: tuple[NodeId, ...]


class ProducerBlock(_Command, frozen=True, kw_only=True, array_like=True):
    """Issue producer ids, never seen before, to hand out one by one."""

    count: int


class ProducerOpen(_Command, frozen=True, kw_only=True, array_like=True):
    """Take over a named producer: a new epoch, which fences the former owner."""

    name: str


class ProducerShare(_Command, frozen=True, kw_only=True, array_like=True):
    """Open a named producer without a new epoch: one after the other may go on where it stands.

    For whoever repeats exactly what its predecessor may have sent, as the leaders of a partition
    do with a group's dead letters: with a new epoch the partition could not tell the repetition.
    """

    name: str
    base: int = 0
    """What the user counts from if the producer is new: this becomes sequence 0."""
    replaces: Epoch | None = None
    """If this is its epoch, begin a new one, which counts from `base`; else leave it as it is. Two
    that find the same epoch unfit get the same new one."""


class ProducerClose(_Command, frozen=True, kw_only=True, array_like=True):
    """Forget a named producer. Its id is not issued again."""

    name: str


class LevelRaise(_Command, frozen=True, kw_only=True, array_like=True):
    """Let leaders write what this feature level allows; every node must understand it."""

    level: int
    decoy_key: DecoyKey = b""
    """As in `Form`, for a cluster that has none."""

    def __repr__(self) -> str:
        return f"LevelRaise({self.level}, …)"


class JoinTokenPut(_Command, frozen=True, kw_only=True, array_like=True):
    """Issue a token that lets one node in."""

    digest: bytes
    until: Micros
    issuer: str = ""
    """The user whose deletion withdraws it; empty: it stays until it expires. Since level 8."""

    def __repr__(self) -> str:
        return f"JoinTokenPut(until={self.until}, …)"


class JoinTokenDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Withdraw one."""

    token: int


class NodeJoin(_Command, frozen=True, kw_only=True, array_like=True):
    """Register a node that brings such a token, and use the token up."""

    digest: bytes
    registration: NodeRegister

    def __repr__(self) -> str:
        return f"NodeJoin({self.registration!r}, …)"


class BalanceBegin(_Command, frozen=True, kw_only=True, array_like=True):
    """Even out what nodes hold, until that is done; while it is being done: at another pace."""

    bytes_per_s: int = 0
    """What all copies together may take; 0: as fast as replicas copy otherwise."""
    changed_at: Micros = Micros(0)
    """By itself, because nodes changed then, and only if that is still so; 0: somebody said so."""


class BalanceEnd(_Command, frozen=True, kw_only=True, array_like=True):
    """Stop that: nothing is left to move, or somebody called it off."""

    begun_at: Micros = Micros(0)
    """Which run ends; 0: whichever there is."""
    is_called_off: bool = False
    """Whether what is on its way goes back."""


class BalanceChoose(_Command, frozen=True, kw_only=True, array_like=True):
    """Say whether it begins by itself when nodes come, come back from a drain or are drained."""

    is_automatic: bool


class PartitionRecover(_Command, frozen=True, kw_only=True, array_like=True):
    """Let a partition go on with one replica: a majority of the others is lost for good."""

    group: RaftGroupId
    source: NodeId
    """Whose replica it goes on with."""
    void: tuple[ReplicaId, ...]
    """Everybody who voted or listened so far, the surviving replica as what it was among them."""
    fresh: tuple[tuple[NodeId, Incarnation], ...]
    """As whom their nodes go on, drawn for this: no entry may throw dice."""
    gone: tuple[NodeId, ...] = ()
    """Nodes that cannot be reached: no replica goes there, as long as there are others."""
    times: int = 0
    """How often it was recovered before, as far as is known: only the first of two does it."""


class ClusterRecover(_Command, frozen=True, kw_only=True, array_like=True):
    """Let what is left of a cluster go on under another id: the catalog's majority is lost."""

    cluster: str
    """Its id from now on."""
    previous: str
    """The id that whoever comes back of the lost ones still has."""
    node: NodeId
    """Whose catalog it goes on with."""
    last_term: Term
    last_index: Index
    """Where that ended."""
    by: str = ""
    """Who confirmed it there, as the operating system calls them."""


class Fenced(_Command, frozen=True, kw_only=True, array_like=True):
    """A partition has the fence of its topic's last layout: no older one is heeded there."""

    group: RaftGroupId
    layout: int


PlainCommand: TypeAlias = (
    Form
    | NodeRegister
    | NodeDrain
    | NodeRemove
    | TopicCreate
    | TopicAlter
    | TopicDelete
    | Reassign
    | Reassigned
    | ProducerBlock
    | ProducerOpen
    | ProducerShare
    | ProducerClose
    | LevelRaise
    | JoinTokenPut
    | JoinTokenDelete
    | NodeJoin
    | BalanceBegin
    | BalanceEnd
    | BalanceChoose
    | PartitionRecover
    | ClusterRecover
    | Fenced
)
"""All but those about users, roles, grants, tokens and quotas, which have tables of their own."""

CatalogCommand: TypeAlias = PlainCommand | AccessCommand

_KINDS: Final[dict[type[Any], CatalogKind]] = {
    Form: CatalogKind.FORM,
    NodeRegister: CatalogKind.NODE_REGISTER,
    NodeDrain: CatalogKind.NODE_DRAIN,
    NodeRemove: CatalogKind.NODE_REMOVE,
    TopicCreate: CatalogKind.TOPIC_CREATE,
    TopicAlter: CatalogKind.TOPIC_ALTER,
    TopicDelete: CatalogKind.TOPIC_DELETE,
    Reassign: CatalogKind.REASSIGN,
    Reassigned: CatalogKind.REASSIGNED,
    ProducerBlock: CatalogKind.PRODUCER_BLOCK,
    ProducerOpen: CatalogKind.PRODUCER_OPEN,
    ProducerShare: CatalogKind.PRODUCER_SHARE,
    ProducerClose: CatalogKind.PRODUCER_CLOSE,
    LevelRaise: CatalogKind.LEVEL_RAISE,
    UserPut: CatalogKind.USER_PUT,
    UserDelete: CatalogKind.USER_DELETE,
    RolePut: CatalogKind.ROLE_PUT,
    RoleDelete: CatalogKind.ROLE_DELETE,
    GrantPut: CatalogKind.GRANT_PUT,
    GrantDelete: CatalogKind.GRANT_DELETE,
    TokenPut: CatalogKind.TOKEN_PUT,
    TokenDelete: CatalogKind.TOKEN_DELETE,
    QuotaPut: CatalogKind.QUOTA_PUT,
    QuotaDelete: CatalogKind.QUOTA_DELETE,
    JoinTokenPut: CatalogKind.JOIN_TOKEN_PUT,
    JoinTokenDelete: CatalogKind.JOIN_TOKEN_DELETE,
    NodeJoin: CatalogKind.NODE_JOIN,
    BalanceBegin: CatalogKind.BALANCE_BEGIN,
    BalanceEnd: CatalogKind.BALANCE_END,
    BalanceChoose: CatalogKind.BALANCE_CHOOSE,
    PartitionRecover: CatalogKind.PARTITION_RECOVER,
    ClusterRecover: CatalogKind.CLUSTER_RECOVER,
    Fenced: CatalogKind.FENCED,
}
_FORMS: Final[Forms[CatalogCommand]] = Forms(_KINDS)

encode = _FORMS.encode
"""Return the entry's data for a command."""

decode = _FORMS.decode
"""Return the command in an entry's data; raises `InvalidCommand`."""

knows = _FORMS.knows
"""Tell whether an entry's data is of a kind and version that this release has a meaning for."""
