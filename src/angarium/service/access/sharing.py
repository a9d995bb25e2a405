"""How nodes share the limits of the cluster: each tells the others what was used at it.

Once a second a node measures what principals have used of their quotas here. Where anything was,
it asks the other nodes the same, and takes its share; where nothing was, it holds an equal share
ready. Nothing is asked while nobody who has a quota does anything.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api.quotas import QuotaKind
from angarium.errors import AngariumError
from angarium.security.quotas import RATES
from angarium.security.shares import Use, share_of
from angarium.service.access.tolls import key_of
from angarium.wire.operations import Operation
from angarium.wire.operations.quotas import QuotaUseAnswer, UsedHere

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.api.access import Principal
    from angarium.ids import NodeId
    from angarium.service.access.tolls import Toll, Tolls
    from angarium.service.own_node import OwnNode

LOOK_S: Final = 1.0
"""How often shares are looked at."""

ANSWER_S_MAX: Final = 1.0
"""How long another node may take to answer."""

KNOWN_S_MAX: Final = 5.0
"""How long what a node said last is believed while it does not answer."""


class Told(NamedTuple):
    """What another node said last."""

    at: float
    used: Mapping[str, UsedHere]


class Sharing:
    """Sees to it that the tolls of this node have its shares of the limits."""

    def __init__(
        self, node: OwnNode, tolls: Tolls, connections: Callable[[], Mapping[str, int]]
    ) -> None:
        """`connections` returns how many principals have open here, by `key_of`."""
        self._node = node
        self._tolls = tolls
        self._connections = connections
        self._told: dict[NodeId, Told] = {}

    def used_here(self) -> QuotaUseAnswer:
        """Return what was used at this node, for another one."""
        open_here = self._connections()
        return QuotaUseAnswer(
            tuple(
                UsedHere(
                    key,
                    {kind: use.rate for kind, use in toll.uses.items()},
                    tuple(kind for kind, use in toll.uses.items() if use.is_pressed),
                    open_here.get(key, 0),
                )
                for key, toll in self._tolls.items()
                if toll.is_used or open_here.get(key)
            )
        )

    def used_by(self, principal: Principal) -> dict[QuotaKind, float]:
        """Return what a principal uses of its quota: here, and as the other nodes told."""
        key = key_of(principal)
        toll = self._tolls.find(key)
        elsewhere = [told.used[key] for told in self._told.values() if key in told.used]
        used = {
            kind: (0.0 if toll is None else toll.uses[kind].rate)
            + sum(one.rates.get(kind, 0.0) for one in elsewhere)
            for kind in RATES
        }
        here = self._connections().get(key, 0)
        used[QuotaKind.CONNECTIONS] = here + sum(one.connections for one in elsewhere)
        return used

    async def run(self) -> None:
        """Look after the shares, for as long as the node runs."""
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            await asyncio.sleep(LOOK_S)
            now = loop.time()
            await self.look(now - looked_at)
            looked_at = now

    async def look(self, elapsed_s: float) -> None:
        """Measure, ask, and share; `elapsed_s` is how long ago that was done."""
        tolls = self._tolls.items()
        for _, toll in tolls:
            toll.measure(elapsed_s)
        others = [one for one in self._node.peers.ids if self._node.peers.is_up(one)]
        self._tolls.nodes = len(others) + 1
        is_asked = bool(others) and any(
            toll.is_used or QuotaKind.CONNECTIONS in toll.limits for _, toll in tolls
        )
        if is_asked:
            await asyncio.gather(*map(self._ask, others))
        now = asyncio.get_running_loop().time()
        self._told = {
            node: told
            for node, told in self._told.items()
            if node in others and now - told.at < KNOWN_S_MAX
        }
        for key, toll in tolls:
            self._share(key, toll, others)

    def _share(self, key: str, toll: Toll, others: list[NodeId]) -> None:
        told = [self._told[one].used.get(key) if one in self._told else None for one in others]
        toll.connections_elsewhere = sum(one.connections for one in told if one is not None)
        for kind in RATES:
            limit = toll.limits.get(kind)
            if limit is None:
                continue
            elsewhere = [_use(one, kind) for one in told]
            own = toll.uses[kind]
            if not toll.is_used:
                # Ready for whoever comes: what the others use is their share for now.
                own, elsewhere = Use(), [Use() for _ in elsewhere]
            toll.set_share(kind, share_of(limit.amount, own, elsewhere))

    async def _ask(self, node: NodeId) -> None:
        try:
            frame = await self._node.peers.request(
                node, Operation.QUOTA_USE, timeout_s=ANSWER_S_MAX
            )
            answer = frame.unpack(QuotaUseAnswer)
        except AngariumError:
            return  # it went away, is too busy, or of a release that does not know the question
        now = asyncio.get_running_loop().time()
        self._told[node] = Told(now, {one.key: one for one in answer.used})


def _use(told: UsedHere | None, kind: QuotaKind) -> Use:
    if told is None:
        return Use()
    return Use(told.rates.get(kind, 0.0), kind in told.pressed)
