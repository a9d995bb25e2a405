"""Somebody who has read a node's folder, and speaks to the others in its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.ids import CATALOG_GROUP, Index, Term, replica_id
from angarium.log import folder_identity
from angarium.log.os_disk import OsDisk
from angarium.node.joining import cluster_name
from angarium.raft.messages import Message, MessageKind
from angarium.testing.reserved_port import HOST
from angarium.wire import Hello, Role, dial
from angarium.wire.handshake import LEVEL_FEATURE
from angarium.wire.operations import JoinHeader, Operation
from angarium.wire.raft_codec import RAFT_OPERATION, packed_messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import Incarnation, NodeId, RaftGroupId, ReplicaId
    from angarium.log.folder_identity import FolderIdentity
    from angarium.security.tls import Dialling
    from angarium.testing.cluster.processes import NodeProcess
    from angarium.wire import Connection

ABSURD_TERM: Final = Term(2**63 - 1)
ABSURD_INDEX: Final = Index(10**6)
FRAME_BYTES: Final = 1 << 20

ELSEWHERE: Final = f"{HOST}:9"
"""Where an attacker would have clients go: nothing listens there."""

ANOTHER_PROCESS: Final = 1
"""What a forged greeting says of its process: no node draws it."""


def who_is(node: NodeProcess) -> FolderIdentity:
    """Return what a node's folder says of it."""
    found = folder_identity.load(OsDisk(node.data))
    assert found is not None, "it has been a member"
    return found


async def greet(there: NodeProcess, *, tls: Dialling | None = None, **said: object) -> Connection:
    """Connect to a node as a peer that says this of itself; raises how it is refused."""
    hello = Hello(role=Role.PEER, features={LEVEL_FEATURE: 99}, **said)  # type: ignore[arg-type]
    return await dial(host=HOST, port=there.port.number, hello=hello, tls=tls)


async def greet_as(there: NodeProcess, name: FolderIdentity) -> Connection:
    """Do so with everything that is in another node's folder."""
    return await greet(
        there,
        cluster=cluster_name(name),
        node=name.node_id,
        incarnation=name.incarnation,
        process=ANOTHER_PROCESS,
    )


async def join_elsewhere(
    there: NodeProcess,
    node: NodeId | None,
    incarnation: Incarnation,
    *,
    tls: Dialling | None = None,
) -> None:
    """Ask a node to register a member where only an attacker is; raises how it is refused."""
    connection = await dial(
        host=HOST, port=there.port.number, hello=Hello(role=Role.CLIENT), tls=tls
    )
    try:
        wish = JoinHeader(node, incarnation, (("wire", ELSEWHERE),), level_min=1, level_max=99)
        await connection.request(Operation.JOIN, wish, timeout_s=30.0)
    finally:
        await connection.close()


def forge(
    stranger: Connection, there: NodeProcess, name: FolderIdentity, groups: Iterable[RaftGroupId]
) -> None:
    """Say over a connection what would end terms and processes, if it were believed."""
    known = who_is(there)
    to = replica_id(known.node_id, known.incarnation)
    sender = replica_id(name.node_id, name.incarnation)
    addressed = [(group, one) for group in (CATALOG_GROUP, *groups) for one in _lies(sender, to)]
    for frame in packed_messages(addressed, frame_bytes_max=FRAME_BYTES):
        stranger.send(RAFT_OPERATION, frame.header, frame.payload)
    stranger.send(Operation.PEER, b"", [b"\x81\xa4type\xa5Chunk"])


def _lies(sender: ReplicaId, to: ReplicaId) -> list[Message]:
    heartbeat, ahead = MessageKind.HEARTBEAT, Term(10**6)
    return [
        Message(kind=heartbeat, to=to, sender=sender, term=ABSURD_TERM),
        Message(kind=heartbeat, to=to, sender=sender, term=ahead, commit=ABSURD_INDEX),
        # In the name of another node than the one it came as.
        Message(kind=MessageKind.VOTE, to=to, sender=to, term=Term(1_000)),
        Message(kind=MessageKind.PROPOSE, to=to, sender=sender),
    ]
