"""A name without an account meets one salt, on every node, before and after restarts."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.on_a_loop import eventually, on_a_loop

from angarium.addresses import Address
from angarium.app.composition import NodePart, parts
from angarium.app.settings import ListenSettings, NodeSettings, Settings
from angarium.security.scram import ClientExchange, Mechanism
from angarium.testing.reserved_port import ReservedPort

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

HOST = "127.0.0.1"


class _Signals:
    def fail(self, failure: BaseException) -> None:
        raise failure


@asynccontextmanager
async def node(data: Path, port: int, *, join: int | None = None) -> AsyncIterator[NodePart]:
    """Run a node that forms a cluster, or joins it at a port."""
    members = () if join is None else (Address(HOST, join),)
    settings = Settings(
        node=NodeSettings(data=data, form=join is None, join=members),
        listen=ListenSettings(wire_port=port, grpc_port=None, http_port=None),
    )
    signals: Any = _Signals()
    async with AsyncExitStack() as running:
        found: list[NodePart] = []
        for part in parts(settings, signals):
            running.push_async_callback(part.stop)
            await part.start()
            if isinstance(part, NodePart):
                found.append(part)
        (made,) = found
        await eventually(lambda: made.node.catalog.is_here and made.node.catalog.is_current)
        yield made


def told(part: NodePart, name: str) -> str:
    """Return the salt and iterations that a login of `name` is answered with."""
    login = part.authenticator.scram(Mechanism.SHA_256, source=HOST)
    return login.first(ClientExchange(name).first()).partition(",")[2]


@on_a_loop
async def test_a_decoys_salt_is_the_same_everywhere_and_for_ever(tmp_path: Path) -> None:
    first, second = ReservedPort(), ReservedPort()
    try:
        async with node(tmp_path / "one", first.number) as one:
            ghost = told(one, "ghost")
            assert ghost == told(one, "ghost") != told(one, "another")
        async with node(tmp_path / "one", first.number) as one:
            assert told(one, "ghost") == ghost
            async with node(tmp_path / "two", second.number, join=first.number) as two:
                await eventually(lambda: two.node.catalog.decoy_key)
                assert told(two, "ghost") == ghost
                level = one.node.catalog.level
                assert await one.service.raise_level(level) == level
                assert told(one, "ghost") == told(two, "ghost") == ghost
    finally:
        first.release()
        second.release()
