"""Regions of real processes: bytes between two of them take their time, and are counted.

Nodes are reached through gates, as with `network`. A gate knows in which region it stands, and in
which one whoever dials is: a node by its greeting, a client by the loopback address that it dials
from (`RegionLoop`, `calling_from`), for a machine has as many of those as it likes. What crosses
arrives after the one-way delay, in order, and is counted by the pair of regions. No privileges are
needed, no kernel module, and no namespace; a connection is made without delay.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import uvloop

from angarium.testing.cluster.network import Gate, Network, caller_of, first_frame
from angarium.testing.reserved_port import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import NodeId

ONE_WAY_S: Final = 0.080
"""How long bytes take from one region to another, unless somebody says otherwise."""

PIECE_BYTES: Final = 256 * 1024

UNDER_WAY_BYTES_MAX: Final = 64 << 20
"""Bytes of one connection and direction that are on their way. At the limit nothing more is read,
as with a full window of TCP."""

_FROM: ContextVar[str] = ContextVar("from", default="")


class RegionLoop(uvloop.Loop):
    """An event loop whose connections leave from the address of the caller's region."""

    async def create_connection(self, *arguments: Any, **named: Any) -> Any:
        """Dial, from the address that `calling_from` has chosen."""
        if _FROM.get() and named.get("sock") is None:
            named.setdefault("local_addr", (_FROM.get(), 0))
        return await super().create_connection(*arguments, **named)


@contextmanager
def calling_from(network: WanNetwork, region: str) -> Iterator[None]:
    """Have whatever is begun inside, and the tasks that it begins, dial from a region."""
    token = _FROM.set(network.address_of(region))
    try:
        yield
    finally:
        _FROM.reset(token)


class WanNetwork(Network):
    """Which region everybody is in, how far they are apart, and what has crossed."""

    def __init__(self, regions: Sequence[str], *, one_way_s: float = ONE_WAY_S) -> None:
        super().__init__()
        self.regions = tuple(regions)
        self.one_way_s = one_way_s
        self.crossed: Counter[tuple[str, str]] = Counter()
        """Bytes from one region to another, by both names."""
        self._of_node: dict[int, str] = {}

    async def open_gate(self) -> Gate:
        """Return a new way to a node."""
        return await self._opened(_WanGate(self))

    def locate(self, node: NodeId, region: str) -> None:
        """Say in which region a node is."""
        self._of_node[node] = region

    def region_of(self, node: int) -> str:
        """Return the region of a node; empty if it is not known, and not far away then."""
        return self._of_node.get(node, "")

    def address_of(self, region: str) -> str:
        """Return the loopback address from which the clients of a region dial."""
        return f"127.0.1.{self.regions.index(region) + 1}"

    def region_at(self, address: str) -> str:
        """Return the region of whoever dials from a loopback address; empty if it has none."""
        by_address = {self.address_of(one): one for one in self.regions}
        return by_address.get(address, "")

    def crossed_bytes(self, region: str) -> int:
        """Return how many bytes have gone into a region or out of it."""
        return sum(size for pair, size in self.crossed.items() if region in pair)


class _WanGate(Gate):
    """The way to one node, from wherever."""

    def __init__(self, network: WanNetwork) -> None:
        super().__init__(network)
        self._wan = network

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await first_frame(reader)
        caller = caller_of(first)
        peer: str = writer.get_extra_info("peername")[0]
        where = self._wan.region_at(peer) or self._wan.region_of(caller)
        onward_reader, onward = await asyncio.open_connection(HOST, self._target)
        pumps = [
            asyncio.create_task(self._carry(reader, onward, caller, where, inward=True)),
            asyncio.create_task(self._carry(onward_reader, writer, caller, where, inward=False)),
        ]
        try:
            await self._passable(caller, inward=True)
            onward.write(first)
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            await self._passable(caller, inward=True)
            await self._passable(caller, inward=False)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            onward.transport.abort()

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        caller: int,
        where: str,
        *,
        inward: bool,
    ) -> None:
        """Carry bytes one way, each as late as the two regions are apart."""
        loop, wan = asyncio.get_running_loop(), self._wan
        under_way: deque[tuple[float, bytes]] = deque()
        size, more, arrived = 0, asyncio.Event(), asyncio.Event()

        async def arrive() -> None:
            nonlocal size
            while True:
                while not under_way:
                    more.clear()
                    await more.wait()
                due, data = under_way.popleft()
                if (late := due - loop.time()) > 0:
                    await asyncio.sleep(late)
                await self._passable(caller, inward=inward)
                writer.write(data)
                await writer.drain()
                size -= len(data)
                arrived.set()

        async def until_under(limit: int) -> None:
            while size > limit and not arriving.done():
                arrived.clear()
                await arrived.wait()

        arriving = asyncio.create_task(arrive())
        arriving.add_done_callback(lambda _: arrived.set())
        try:
            with suppress(OSError):
                while data := await reader.read(PIECE_BYTES):
                    here = wan.region_of(self.node)
                    is_far = bool(where and here and where != here)
                    if is_far:
                        wan.crossed[(where, here) if inward else (here, where)] += len(data)
                    under_way.append((loop.time() + (wan.one_way_s if is_far else 0.0), data))
                    size += len(data)
                    more.set()
                    await until_under(UNDER_WAY_BYTES_MAX)
                await until_under(0)
        finally:
            arriving.cancel()
            await asyncio.gather(arriving, return_exceptions=True)
