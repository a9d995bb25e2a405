"""A node that asks to be let in: registered in the catalog, and told who the others are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import InvalidArgument
from angarium.ids import NodeId
from angarium.machine.catalog import Labels, NodeRegister, NodeRegistered
from angarium.wire.operations import JoinAnswer

if TYPE_CHECKING:
    from angarium.service.copy_check import CopyCheck
    from angarium.service.own_node import MemberNode
    from angarium.wire.operations import JoinHeader


async def joined(node: MemberNode, copies: CopyCheck, header: JoinHeader) -> JoinAnswer:
    """Let a node in; raises why not."""
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
    )
    # Here and, by the catalog, at its leader: one of the two may be cut off from that node.
    await node.admission.check_not_alive(command)
    if header.node is not None:
        await copies.check_replacement(header.node, header.incarnation)
    registered = await catalog.submit(command)
    assert isinstance(registered, NodeRegistered)
    peers = tuple(
        (NodeId(one.id), dict(one.addresses)["wire"])
        for one in catalog.members()
        if one.id != registered.node
    )
    return JoinAnswer(catalog.cluster, registered.node, peers, catalog.level)
