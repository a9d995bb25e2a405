"""How a node comes into a cluster: it forms one, once and explicitly, or asks to be let in."""

from __future__ import annotations

import asyncio
import logging
import secrets
from itertools import cycle
from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.ids import NodeId
from angarium.log.identity import Identity, draw_incarnation
from angarium.wire import Hello, Role, Unreachable, dial
from angarium.wire.operations import JoinAnswer, JoinHeader, Operation

if TYPE_CHECKING:
    from angarium.node.config import NodeConfig

_log = logging.getLogger(__name__)

FIRST_NODE = NodeId(1)

PAUSE_S = 0.2
"""Between two requests to be let in."""


def new_cluster() -> Identity:
    """Return the identity of the first node of a cluster that nobody has heard of yet."""
    return Identity(
        cluster_id=secrets.randbits(128),
        node_id=FIRST_NODE,
        incarnation=draw_incarnation(secrets.randbits),
    )


def cluster_name(identity: Identity) -> str:
    """Return the cluster's id as it is written everywhere else."""
    return f"{identity.cluster_id:032x}"


async def ask_to_join(config: NodeConfig, addresses: dict[str, str]) -> tuple[Identity, JoinAnswer]:
    """Ask the nodes named in the configuration, one after the other, to be let in.

    They are asked again for a while: the cluster may be electing a leader, not least because this
    node, before its data were lost, was it. Asking twice does no harm, for the incarnation is the
    same. Returns who this node is from now on, and what else it was told.
    """
    incarnation = draw_incarnation(secrets.randbits)
    request = JoinHeader(
        config.node_id,
        incarnation,
        tuple(sorted(addresses.items())),
        config.region,
        config.zone,
        config.host,
        config.release.level_min,
        config.release.level_max,
    )
    refusal: AngariumError = Unreachable("nobody to ask")
    deadline = asyncio.get_running_loop().time() + config.join_patience_s
    for address in cycle(config.join):
        try:
            answer = await _ask(address, request, config)
        except AngariumError as error:
            _log.warning("%s did not let us in: %s", address, error)
            refusal = error
        else:
            identity = Identity(
                cluster_id=int(answer.cluster_id, 16), node_id=answer.node, incarnation=incarnation
            )
            return identity, answer
        if not refusal.retriable or asyncio.get_running_loop().time() >= deadline:
            break
        await asyncio.sleep(PAUSE_S)
    raise refusal


async def _ask(address: str, request: JoinHeader, config: NodeConfig) -> JoinAnswer:
    host, _, port = address.rpartition(":")
    timeout_s = config.request_timeout_s
    hello = config.release.introduced(Hello(role=Role.CLIENT))
    connection = await dial(host=host, port=int(port), hello=hello)
    try:
        answer = await connection.request(Operation.JOIN, request, timeout_s=timeout_s)
        return answer.read(JoinAnswer)
    finally:
        await connection.close()
