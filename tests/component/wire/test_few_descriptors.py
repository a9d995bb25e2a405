"""Where few descriptors are left, new clients are refused with the reason and nodes are not."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from tests.component.wire.running import CLIENT, LOCALHOST, NODE, listening
from tests.on_a_loop import eventually

from angarium.errors import LimitExceeded
from angarium.wire import descriptors, dial
from angarium.wire.descriptors import Descriptors

if TYPE_CHECKING:
    from tests.component.wire.running import Runner


class Next:
    """The number of the next descriptor."""

    number = 0

    def __call__(self) -> int:
        return self.number


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Next:
    """Return what decides how many descriptors are taken, of 100."""
    probe = Next()
    own = Descriptors(100, probe)
    for module in ("listening", "server"):
        monkeypatch.setattr(f"angarium.wire.{module}.own_descriptors", lambda: own)
    assert descriptors.RESERVE_SHARE == 4
    return probe


def test_a_client_is_refused_and_another_node_is_not(run: Runner, taken: Next) -> None:
    async def main() -> None:
        async with listening() as server:
            there = await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            taken.number = 80
            with pytest.raises(LimitExceeded, match="descriptors"):
                await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            node = await dial(host=LOCALHOST, port=server.port, hello=NODE)
            assert there.is_open
            assert node.is_open
            taken.number = 10
            again = await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            assert server.refused == 1
            for one in (there, node, again):
                one.abort()

    run(main())


def test_one_that_has_not_greeted_makes_room(run: Runner, taken: Next) -> None:
    async def main() -> None:
        async with listening() as server:
            reader, writer = await asyncio.open_connection(LOCALHOST, server.port)
            await eventually(lambda: len(server.connections) == 1)
            taken.number = 80
            client = await dial(host=LOCALHOST, port=server.port, hello=CLIENT)
            await reader.read()
            assert client.is_open
            writer.close()
            client.abort()

    run(main())


def test_in_the_second_half_of_the_reserve_every_connection_is_cut(
    run: Runner, taken: Next
) -> None:
    async def main() -> None:
        async with listening() as server:
            taken.number = 90
            reader, writer = await asyncio.open_connection(LOCALHOST, server.port)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            assert not server.connections
            writer.close()

    run(main())
