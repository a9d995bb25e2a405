"""Who is at an address, before anything is asked of it.

Anybody may be where discovery says that nodes are: a node of this cluster, of another one, one that
has no data yet, or somebody else altogether. Only greetings are exchanged here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.discovery.port import DiscoveryFailed, NothingFound
from angarium.errors import AngariumError, PreconditionFailed
from angarium.retrying import Backoff, Tries
from angarium.wire import Hello, Role, dial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.addresses import Address
    from angarium.discovery.lookout import Lookout
    from angarium.node.config import NodeConfig
    from angarium.node.joining import Asking
    from angarium.security.tls import Dialling

DIAL_S_MAX: Final = 2.0
"""How long a node may take to answer the greeting: many may be asked, of which few are there."""

GREETED_AT_ONCE_MAX: Final = 32
"""Addresses that are dialled at the same time."""

PAUSES: Final = Backoff(first_s=0.5, longest_s=5.0)
"""Between two attempts to find out where nodes are."""

_SEVERAL: Final = (
    "nodes of other clusters are found, too: say which one to join, cluster_id in [discovery]"
)


async def greetings_at(
    addresses: Sequence[Address], *, tls: Dialling | None
) -> dict[Address, Hello | AngariumError]:
    """Return how whoever is at these addresses introduces itself, or why nobody does."""
    dialled = asyncio.Semaphore(GREETED_AT_ONCE_MAX)

    async def greet(address: Address) -> Hello | AngariumError:
        try:
            async with dialled:
                connection = await dial(
                    host=address.host,
                    port=address.port,
                    hello=Hello(role=Role.CLIENT),
                    tls=tls,
                    timeout_s=DIAL_S_MAX,
                )
                await connection.close(timeout_s=DIAL_S_MAX)
        except AngariumError as error:
            return error
        return connection.peer.hello

    hellos = await asyncio.gather(*map(greet, addresses))
    return dict(zip(addresses, hellos, strict=True))


async def members_at(addresses: Sequence[Address], config: NodeConfig, asking: Asking) -> list[str]:
    """Return, of addresses that were found, those of the cluster to join; `asking` hears of others.

    If there are nodes of several clusters, nobody but the settings can say which one it is.
    """
    found: dict[str, list[str]] = {}
    for address, hello in (await greetings_at(addresses, tls=config.tls)).items():
        if not isinstance(hello, Hello):
            asking.refused(str(address), hello)
        elif not hello.node:
            asking.waits_too(str(address))
        else:
            found.setdefault(hello.cluster, []).append(str(address))
    wanted = config.cluster_id or (next(iter(found)) if len(found) == 1 else "")
    for cluster, members in found.items():
        if cluster != wanted:
            which = f"this one is to join {wanted}" if wanted else _SEVERAL
            why = DiscoveryFailed(f"it is a node of the cluster {cluster}, and {which}")
            for member in members:
                asking.refused(member, why)
    return found.get(wanted, [])


async def check_nobody_there(config: NodeConfig, lookout: Lookout) -> None:
    """Raise `PreconditionFailed` if nodes of a cluster are where this one, too, would be found.

    A node that is to form a cluster and has lost its data would form a second one beside them. As
    long as those who know where nodes are cannot be asked, this waits for them; the first node of
    all is told that there is none.
    """
    tries = Tries(PAUSES)
    while True:
        look = await lookout.look()
        if all(isinstance(one, NothingFound) for one in look.failures):
            break
        await tries.pause()
    for address, hello in (await greetings_at(look.addresses, tls=config.tls)).items():
        if isinstance(hello, Hello) and hello.node:
            raise PreconditionFailed(
                f"node {hello.node} of the cluster {hello.cluster} answers at {address}, where "
                "discovery says that nodes are: to form a cluster here would make a second one. "
                "Start this node without --form (node.form), so that it joins them; if it is one "
                "of theirs whose disk is gone, with ANGARIUM_NODE_ID as well"
            )
