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
PAUSE_S_MAX = 2.0
"""Between two requests to be let in: the first pause, and what they grow to."""

REMIND_S = 30.0
"""How often the log says again that an address says the same as before."""


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

    They are asked again for as long as it takes: whoever starts all machines at once starts this
    one before the first has formed its cluster, and a cluster that lives may be electing a leader,
    not least because this node, before its data were lost, was it. Only a refusal that will not
    change ends it. Asking twice does no harm, for the incarnation is the same. Returns who this
    node is from now on, and what else it was told.
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
    if not config.join:
        raise Unreachable("nobody to ask")
    told = _Told()
    pause_s = PAUSE_S
    for turn, address in enumerate(cycle(config.join), start=1):
        try:
            answer = await _ask(address, request, config)
        except AngariumError as error:
            if not error.retriable:
                raise
            told.tell(address, error)
        else:
            identity = Identity(
                cluster_id=int(answer.cluster_id, 16), node_id=answer.node, incarnation=incarnation
            )
            return identity, answer
        if turn % len(config.join) == 0:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
    raise AssertionError("there is no end to asking")


class _Told:
    """Says why nobody lets us in: once for each reason, and again after a while."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, float]] = {}

    def tell(self, address: str, refusal: AngariumError) -> None:
        """Log a refusal, unless the log has just said the same."""
        now = asyncio.get_running_loop().time()
        reason, at = self._last.get(address, ("", 0.0))
        if reason != str(refusal) or now - at >= REMIND_S:
            self._last[address] = str(refusal), now
            _log.warning(
                "%s does not let us into its cluster yet: %s; asking again until somebody does",
                address,
                refusal,
            )


async def _ask(address: str, request: JoinHeader, config: NodeConfig) -> JoinAnswer:
    host, _, port = address.rpartition(":")
    timeout_s = config.request_timeout_s
    hello = config.release.introduced(Hello(role=Role.CLIENT))
    connection = await dial(host=host, port=int(port), hello=hello)
    try:
        frame = await connection.request(Operation.JOIN, request, timeout_s=timeout_s)
        return frame.read(JoinAnswer)
    finally:
        await connection.close()
