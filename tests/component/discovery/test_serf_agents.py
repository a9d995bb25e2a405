"""Members of a real Serf agent: which of them are nodes, where, and what is wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.on_a_loop import run
from tests.serf_agents import SerfAgents

from angarium.addresses import Address
from angarium.discovery.port import DiscoveryFailed
from angarium.discovery.serf import SerfDiscovery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEY = "a key of some length, as it should be"


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SerfAgents]:
    with SerfAgents(tmp_path_factory.mktemp("serf"), key=KEY) as running:
        running.start("a", {"wire": "7411", "region": "eu west (1)"})
        yield running


def asked(
    agents: SerfAgents, *, key: str = KEY, tags: dict[str, str] | None = None
) -> SerfDiscovery:
    return SerfDiscovery(agents.rpc["a"], port=7400, tags=tags, key=lambda: key)


def failure(discovery: SerfDiscovery) -> str:
    with pytest.raises(DiscoveryFailed) as failed:
        run(discovery.find())
    return str(failed.value)


async def until(discovery: SerfDiscovery, is_so: Callable[[list[str]], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if is_so([str(one) for one in (await discovery.find()).addresses]):
                return
            await asyncio.sleep(0.05)


def test_a_tag_says_where_a_members_node_is(agents: SerfAgents) -> None:
    async def story() -> None:
        discovery = asked(agents)
        await until(discovery, lambda found: found == ["127.0.0.1:7411"])
        for tag, place in (
            ("10.0.0.9:7500", "10.0.0.9:7500"),
            ("[fd00::1]:7500", "[fd00::1]:7500"),
            ("7411", "127.0.0.1:7411"),
        ):
            agents.retag("a", wire=tag)
            await until(discovery, lambda found, place=place: found == [place])  # type: ignore[misc]

    run(story())


def test_members_are_chosen_by_tags_letter_by_letter(agents: SerfAgents) -> None:
    assert run(asked(agents, tags={"region": "eu west (1)"}).find()).addresses
    said = failure(asked(agents, tags={"region": "eu west .1."}))
    assert said.endswith("knows no member that is alive and has the tags region=eu west .1.")


def test_a_member_that_says_nonsense_is_passed_over(agents: SerfAgents) -> None:
    async def story() -> None:
        discovery = asked(agents)
        agents.start("b", {"wire": "nonsense"})
        agents.start("c", {})
        await until(discovery, lambda found: "127.0.0.1:7400" in found)
        found = await discovery.find()
        assert {str(one) for one in found.addresses} == {"127.0.0.1:7411", "127.0.0.1:7400"}

    run(story())


def test_an_agent_that_asks_for_a_key_says_where_to_put_it(agents: SerfAgents) -> None:
    assert "asks for its key: set serf_key_file" in failure(asked(agents, key=""))
    assert "does not take the key in serf_key_file" in failure(asked(agents, key="another"))


def test_a_key_that_cannot_be_read_is_told(agents: SerfAgents, tmp_path: Path) -> None:
    def key() -> str:
        return (tmp_path / "nothing").read_text()

    said = failure(SerfDiscovery(agents.rpc["a"], port=1, key=key))
    assert "the key of the Serf agent" in said
    assert "nothing" in said


def test_an_agent_that_is_not_there_is_named() -> None:
    said = failure(SerfDiscovery(Address("127.0.0.1", 1), port=1))
    assert said == "the Serf agent at 127.0.0.1:1 cannot be reached: Connection refused"


@pytest.mark.parametrize("noise", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xc1", b"\x80\x80", b""])
def test_somebody_else_at_that_port_is_told_apart(noise: bytes) -> None:
    async def story() -> str:
        async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(noise)
            writer.close()

        server = await asyncio.start_server(shout, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(DiscoveryFailed) as failed:
                await SerfDiscovery(Address("127.0.0.1", port), port=1).find()
            return str(failed.value)

    assert run(story()).endswith("is it Serf's RPC port?")


def test_an_agent_that_is_silent_is_not_waited_for() -> None:
    async def story() -> str:
        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(DiscoveryFailed) as failed:
                await SerfDiscovery(Address("127.0.0.1", port), port=1).find()
            return str(failed.value)

    assert run(story()).endswith("does not answer within 3 s")
