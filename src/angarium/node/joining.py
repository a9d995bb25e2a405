"""How a node comes into a cluster: it forms one, once and explicitly, or asks to be let in."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING

from angarium.addresses import Address
from angarium.errors import AngariumError, InvalidArgument
from angarium.ids import NodeId
from angarium.log.folder_identity import FolderIdentity, draw_incarnation
from angarium.node.greetings import DIAL_S_MAX, members_at
from angarium.retrying import Backoff, Tries
from angarium.wire import Hello, Role, Unreachable, dial
from angarium.wire.operations import JoinAnswer, JoinHeader, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.discovery.lookout import Look, Lookout
    from angarium.node.config import NodeConfig

_log = logging.getLogger(__name__)

FIRST_NODE = NodeId(1)

PAUSES = Backoff(first_s=0.2, longest_s=2.0)
"""Between two requests to be let in."""

NOBODY_S = 10.0
"""How long every node that is asked may be without data itself before that is called what it is:
the node that forms the cluster may only just be starting."""

REMIND_S = 30.0
"""How often the log says again that an address says the same as before."""


def new_cluster() -> FolderIdentity:
    """Return the identity of the first node of a cluster that nobody has heard of yet."""
    return FolderIdentity(
        cluster_id=secrets.randbits(128),
        node_id=FIRST_NODE,
        incarnation=draw_incarnation(secrets.randbits),
    )


def cluster_name(identity: FolderIdentity) -> str:
    """Return the cluster's id as it is written everywhere else."""
    return f"{identity.cluster_id:032x}"


def join_token_now(config: NodeConfig) -> str:
    """Return the join token that this node was given; empty if there is none, or none any more."""
    try:
        return config.join_token()
    except InvalidArgument:
        return ""  # the file may be deleted once the node is in


class Asking:
    """What a node without data has been told by those it asks to let it in.

    The log has each reason once, and again after a while; `sentence` is for callers of this node.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[str, float]] = {}
        """What each address last said, and when the log last had it."""
        self._waiting: set[str] = set()
        """Addresses where a node answers that has no data either."""
        self._since: float | None = None
        """Since when every address is one of them."""
        self._nobody_at: float | None = None
        self._blind: tuple[str, ...] = ()
        """Why it is not known where to look, in part or at all."""

    @property
    def sentence(self) -> str:
        """Why this node serves nobody, and what to do where somebody has to do something."""
        if not self._told and not self._blind:
            return "the node is starting and serves nobody yet"
        if self._is_nobody:
            return (
                "this node's data folder is empty, and so are those of all nodes it was told to "
                f"join ({', '.join(sorted(self._told))}): nobody there holds the catalog, each "
                "waits to be let in. To have what the cluster had, put a data folder back from a "
                "backup on a majority of its nodes; to begin anew, start one node with --form"
            )
        said = [f"{address}: {reason}" for address, (reason, _) in self._told.items()]
        return f"the node waits to be let into its cluster ({'; '.join((*self._blind, *said))})"

    @property
    def _is_nobody(self) -> bool:
        """Whether it is certain that nobody who was asked will ever let anybody in."""
        return self._since is not None and _now() - self._since >= NOBODY_S

    def looked(self, look: Look) -> None:
        """Hear where somebody may be asked now; what others said is old."""
        self._blind = tuple(map(str, look.failures))
        asked = set(map(str, look.addresses))
        self._told = {address: told for address, told in self._told.items() if address in asked}
        self._waiting &= asked

    def refused(self, address: str, refusal: AngariumError) -> None:
        """Hear why an address does not let us in, or does not answer."""
        self._waiting.discard(address)
        self._hear(address, str(refusal))

    def waits_too(self, address: str) -> None:
        """Hear that the node there has no data either, and waits itself."""
        self._waiting.add(address)
        self._hear(address, "that node has no data either, and waits itself to be let in")

    def _hear(self, address: str, reason: str) -> None:
        now = _now()
        before, at = self._told.get(address, ("", 0.0))
        is_news = before != reason or now - at >= REMIND_S
        self._told[address] = reason, now if is_news else at
        if is_news:
            _log.warning(
                "%s does not let us into its cluster yet: %s; asking again until somebody does",
                address,
                reason,
            )

    def look(self, addresses: Sequence[str]) -> None:
        """Look, after a round, whether anybody can let anybody in."""
        now = _now()
        if not addresses or not self._waiting.issuperset(addresses):
            self._since = None
        elif self._since is None:
            self._since = now
        if self._is_nobody and (self._nobody_at is None or now - self._nobody_at >= REMIND_S):
            self._nobody_at = now
            _log.error("%s", self.sentence)


async def ask_to_join(
    config: NodeConfig, addresses: dict[str, str], asking: Asking, lookout: Lookout
) -> tuple[FolderIdentity, JoinAnswer]:
    """Ask the nodes that `lookout` finds, one after the other, to be let in.

    They are asked again for as long as it takes: who starts all machines at once starts this
    one before the first has formed its cluster, and a cluster that lives may be electing a leader,
    not least because this node, before its data were lost, was it. Only a refusal that will not
    change ends it. Asking twice does no harm, for the incarnation is the same. Returns who this
    node is from now on, and what else it was told; `asking` hears why that takes so long.
    """
    incarnation = draw_incarnation(secrets.randbits)
    if not lookout.sources:
        raise Unreachable("nobody to ask")
    tries = Tries(PAUSES)
    while True:
        # Looked for anew in each round: who was not found may be elsewhere by now.
        look = await lookout.look()
        asking.looked(look)
        others = [one for one in look.addresses if str(one) != addresses.get("wire")]
        asked = list(map(str, others))
        # Anybody may be at an address that was only found; those in the settings were meant.
        members = asked if config.discovery is None else await members_at(others, config, asking)
        request = JoinHeader(
            config.node_id,
            incarnation,
            tuple(sorted(addresses.items())),
            config.region,
            config.zone,
            config.host,
            config.release.level_min,
            config.release.level_max,
            config.join_token(),
        )
        for address in members:
            try:
                answer = await _ask(address, request, config)
            except AngariumError as error:
                if not error.retriable:
                    raise
                asking.refused(address, error)
                continue
            if answer is None:
                asking.waits_too(address)
                continue
            identity = FolderIdentity(
                cluster_id=int(answer.cluster_id, 16), node_id=answer.node, incarnation=incarnation
            )
            return identity, answer
        asking.look(asked)
        await tries.pause()


async def _ask(address: str, request: JoinHeader, config: NodeConfig) -> JoinAnswer | None:
    """Ask one node; None if it has no data either, and so is no member of anything."""
    host, port = Address.parse(address)
    timeout_s = config.request_timeout_s
    hello = config.release.introduced(Hello(role=Role.CLIENT))
    connection = await dial(host=host, port=port, hello=hello, tls=config.tls, timeout_s=DIAL_S_MAX)
    try:
        if not connection.peer.hello.node:
            return None
        frame = await connection.request(Operation.JOIN, request, timeout_s=timeout_s)
        return frame.read(JoinAnswer)
    finally:
        await connection.close()


def _now() -> float:
    return asyncio.get_running_loop().time()
