"""One suite for everybody who knows where nodes are: a list, DNS, Serf, Kubernetes.

dnsmasq and Serf's agents are the real ones; of Kubernetes' API server `tests/kubernetes_api.py`
has the words.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Protocol

import pytest
from tests.dns_server import DnsServer, service
from tests.kubernetes_api import NAMESPACE, SERVICE, KubernetesApi
from tests.on_a_loop import run
from tests.serf_agents import SerfAgents

from angarium.addresses import Address
from angarium.discovery.dns import DnsDiscovery
from angarium.discovery.kubernetes import KubernetesDiscovery
from angarium.discovery.lookout import Lookout
from angarium.discovery.port import DiscoveryFailed
from angarium.discovery.serf import SerfDiscovery
from angarium.discovery.static import StaticDiscovery

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from angarium.discovery.port import Discovery

ONE, OTHER, THIRD = (Address(f"127.0.0.{number}", 7400 + number) for number in (1, 2, 3))

SOON_S = 60.0
"""Serf's agents gossip for a while, on a busy machine for a long one."""


class Source(Protocol):
    """Somebody who knows, and what a test can have it know."""

    discovery: Discovery

    async def know(self, addresses: Collection[Address]) -> None:
        """Know these addresses from now on."""

    async def end(self) -> None:
        """Answer nobody any more."""


class Dns:
    def __init__(self, folder: Path, running: AsyncExitStack) -> None:
        self._server = running.enter_context(DnsServer(folder))
        self.discovery: Discovery = DnsDiscovery(
            "_wire._tcp.nodes.test", port=1, servers=[self._server.address]
        )

    async def know(self, addresses: Collection[Address]) -> None:
        self._server.answer(*service("_wire._tcp.nodes.test", sorted(addresses)))

    async def end(self) -> None:
        self._server.stop()


class Serf:
    def __init__(self, folder: Path, running: AsyncExitStack) -> None:
        self._agents = running.enter_context(SerfAgents(folder, key="k" * 40))
        # The one that is asked is no node: it has no such tag.
        agent = self._agents.start("asked", {"role": "watcher"})
        self._known: set[Address] = set()
        self.discovery: Discovery = SerfDiscovery(
            agent, port=1, tags={"role": "node"}, key=lambda: "k" * 40
        )

    async def know(self, addresses: Collection[Address]) -> None:
        for one in self._known - set(addresses):
            self._agents.leave(str(one))
        for one in set(addresses) - self._known:
            self._agents.start(str(one), {"role": "node", "wire": str(one)})
        self._known = set(addresses)

    async def end(self) -> None:
        self._agents.kill("asked")


class Kubernetes:
    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._known: set[Address] = set()
        self.discovery: Discovery = KubernetesDiscovery(
            SERVICE, api=api.address, credentials=api.credentials, port_name="wire", port=1
        )

    async def know(self, addresses: Collection[Address]) -> None:
        for one in self._known - set(addresses):
            await self._api.delete_slice(str(one))
        for one in set(addresses) - self._known:
            await self._api.set_slice(str(one), [one])
        self._known = set(addresses)

    async def end(self) -> None:
        await self._api.__aexit__()


async def opened(name: str, folder: Path, running: AsyncExitStack) -> Source:
    if name == "dns":
        return Dns(folder, running)
    if name == "serf":
        return Serf(folder, running)
    return Kubernetes(await running.enter_async_context(KubernetesApi(folder)))


NAMES = ["dns", "serf", "kubernetes"]


async def found_by(source: Source) -> set[Address]:
    return set((await source.discovery.find()).addresses)


async def eventually_found(source: Source, wanted: set[Address]) -> None:
    async with asyncio.timeout(SOON_S):
        while True:
            try:
                if await found_by(source) == wanted:
                    return
            except DiscoveryFailed:
                assert wanted
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("name", NAMES)
def test_it_follows_where_nodes_are_and_says_when_nobody_can_be_asked(
    name: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with AsyncExitStack() as running:
            source = await opened(name, tmp_path, running)
            await source.know({ONE, OTHER})
            await eventually_found(source, {ONE, OTHER})

            seen: list[set[Address]] = []
            gone: list[Address] = []
            lookout = Lookout([source.discovery])
            lookout.on_gone = gone.extend
            async with aclosing(source.discovery.follow()) as following:
                seen.append(set((await anext(following)).addresses))
                assert seen == [{ONE, OTHER}]
            following_on = asyncio.create_task(lookout.run())
            try:
                await known_to(lookout, 2)
                await source.know({OTHER, THIRD})
                await eventually_found(source, {OTHER, THIRD})
                async with asyncio.timeout(SOON_S):
                    while gone != [ONE]:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)

                await source.end()
                with pytest.raises(DiscoveryFailed) as failed:
                    await source.discovery.find()
                assert str(source.discovery.name).split(" ")[0] in str(failed.value)
                look = await lookout.look()
                assert (look.addresses, len(look.failures)) == ((), 1)
            finally:
                following_on.cancel()
            assert gone == [ONE], "that nobody can be asked says nothing about nodes"

    run(story(), within_s=200)


async def known_to(lookout: Lookout, count: int) -> None:
    async with asyncio.timeout(SOON_S):
        while True:
            gauge = next(iter(lookout.families()))
            if gauge.samples[0].value == count:
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("name", ["dns", "kubernetes"])
def test_nodes_without_a_port_of_their_own_are_at_the_usual_one(name: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with AsyncExitStack() as running:
            if name == "dns":
                server = running.enter_context(DnsServer(tmp_path))
                server.answer(
                    "host-record=nodes.test,127.0.0.1",
                    "host-record=nodes.test,127.0.0.2",
                    "host-record=nodes.test,::1",
                )
                discovery: Discovery = DnsDiscovery(
                    "nodes.test", port=7400, servers=[server.address]
                )
                wanted = {Address("::1", 7400)}
            else:
                api = await running.enter_async_context(KubernetesApi(tmp_path))
                pods = [Address("127.0.0.1", 1), Address("127.0.0.2", 1)]
                await api.set_slice("nodes", pods, port_name="http")
                discovery = KubernetesDiscovery(
                    SERVICE,
                    api=api.address,
                    credentials=api.credentials,
                    port_name="wire",
                    port=7400,
                )
                wanted = set()
            found = await discovery.find()
            assert set(found.addresses) == wanted | {
                Address("127.0.0.1", 7400),
                Address("127.0.0.2", 7400),
            }

    run(story())


def test_a_list_is_what_it_is() -> None:
    async def story() -> None:
        listed = StaticDiscovery([OTHER, ONE, OTHER])
        assert (await listed.find()).addresses == (OTHER, ONE)
        async with aclosing(listed.follow()) as following:
            assert (await anext(following)).addresses == (OTHER, ONE)
        with pytest.raises(DiscoveryFailed, match="no address"):
            await StaticDiscovery([]).find()

    run(story())


def test_all_are_asked_and_the_settings_come_first(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            await api.set_slice("a", [ONE])
            await api.set_slice("b", [THIRD])
            pods = KubernetesDiscovery(
                SERVICE, api=api.address, credentials=api.credentials, port_name="wire", port=1
            )
            lookout = Lookout([StaticDiscovery([OTHER, THIRD]), pods])
            assert (await lookout.look()).addresses == (OTHER, THIRD, ONE)
            api.is_allowed = False
            look = await lookout.look()
            assert look.addresses == (OTHER, THIRD)
            assert NAMESPACE in str(look.failures[0])

    run(story())
