"""A node that asks to be let in: registered in the catalog, and told who the others are.

Where clients have to log in, a node that is not a member yet needs a join token, which an
administrator makes for it. A token that is forged, used or expired is refused here already, so that
refused requests do not fill the log; whether a valid one is still unused is decided by the catalog.

With or without logins, two kinds of nodes need a token: one whose certificate has another NAME than
its number is bound to, and one whose NAME was removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.errors import InvalidArgument, JoinRefused
from angarium.ids import NodeId
from angarium.machine.catalog import Labels, NodeJoin, NodeRegister, NodeRegistered
from angarium.machine.catalog.join_tokens import UNKNOWN, used_up
from angarium.node.release import BOUND_NAMES_LEVEL, JOIN_TOKENS_LEVEL
from angarium.security.tokens import is_join_token, token_digest
from angarium.wire.operations import JoinAnswer

if TYPE_CHECKING:
    from angarium.service.copy_check import CopyCheck
    from angarium.service.own_node import MemberNode
    from angarium.wire.operations import JoinHeader

MISSING: Final = (
    "a new node comes into this cluster with a join token: `angarium cluster invite` makes one;"
    " give it to the node in a file, with --join-token-file, or as ANGARIUM_JOIN_TOKEN"
)

MADE_BY: Final = "`angarium cluster invite` makes one"

AGAIN: Final = "`angarium cluster invite` makes another one"


async def joined(
    node: MemberNode, copies: CopyCheck, header: JoinHeader, name: str = ""
) -> JoinAnswer:
    """Let a node in that has shown a certificate for `name`; raises why not."""
    if "wire" not in dict(header.addresses):
        raise InvalidArgument("a node that joins says where its wire port is")
    catalog = node.catalog
    catalog.check_formed()
    command = NodeRegister(
        node=header.node,
        incarnation=header.incarnation,
        addresses=header.addresses,
        labels=Labels(header.region, header.zone, header.host),
        level_min=header.level_min,
        level_max=header.level_max,
        name=name if catalog.level >= BOUND_NAMES_LEVEL else "",
    )
    entry = await _admitted(node, command, header.token)
    # Here and, by the catalog, at its leader: one of the two may be cut off from that node.
    await node.admission.check_not_alive(command)
    if header.node is not None:
        await copies.check_replacement(header.node, header.incarnation)
    registered = await catalog.submit(entry)
    assert isinstance(registered, NodeRegistered)
    peers = tuple(
        (NodeId(one.id), dict(one.addresses)["wire"])
        for one in catalog.members()
        if one.id != registered.node
    )
    return JoinAnswer(catalog.cluster, registered.node, peers, catalog.level)


async def _admitted(node: MemberNode, command: NodeRegister, token: str) -> NodeRegister | NodeJoin:
    """Return the entry that lets a node in; raises `JoinRefused` if nothing does."""
    catalog = node.catalog
    lacks = catalog.lacks_invitation(command)
    if lacks is None:
        if not node.config.asks_for_join_tokens or catalog.level < JOIN_TOKENS_LEVEL:
            return command
        member = catalog.known_as(command.node, command.incarnation)
        if member is not None and member.incarnation == command.incarnation:
            return command  # a member, with its data, that tells where it is now
    if not token:
        if lacks is not None:
            await node.admission.warn(command)
        raise JoinRefused(MISSING if lacks is None else f"{lacks.message}; {MADE_BY}")
    digest = token_digest(token)
    if is_join_token(token) and catalog.join_token(digest) is None:
        await catalog.catch_up()  # it may have been made a moment ago, elsewhere
    known = catalog.join_token(digest)
    if known is None or known.until <= node.now():
        raise JoinRefused(f"{UNKNOWN}; {AGAIN}")
    if known.used_by is not None:
        raise JoinRefused(f"{used_up(known.used_by)}; {AGAIN}")
    return NodeJoin(digest=digest, registration=command)
