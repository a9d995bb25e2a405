"""Whom a gateway believes, and for how long."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from angarium.app import gateway_callers
from angarium.app.gateway_callers import (
    PROVEN_S,
    PROVING_PER_SOURCE_MAX,
    UNCHECKED_S_MAX,
    GatewayCallers,
)
from angarium.errors import LimitExceeded, Unauthenticated


class Cluster:
    """Knows one password; `dialled` are the clients that came."""

    def __init__(self) -> None:
        self.password = "old password"
        self.is_slowing = False
        self.dialled: list[Dialled] = []

    def client(self, *_: str, login: Any, **__: Any) -> Dialled:
        self.dialled.append(Dialled(self, login))
        return self.dialled[-1]


class Dialled:
    def __init__(self, cluster: Cluster, login: Any) -> None:
        self.cluster = cluster
        self.login = login
        self.is_closed = False

    async def connect(self) -> None:
        if self.cluster.is_slowing:
            raise LimitExceeded("failed_logins_max", "too many logins failed")
        if self.login._password.reveal() != self.cluster.password:
            raise Unauthenticated("the name or the password is wrong")

    async def close(self) -> None:
        self.is_closed = True


def test_a_password_is_proven_again_and_an_old_one_comes_in_by_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, clock = Cluster(), [0.0]
    monkeypatch.setattr(gateway_callers, "Client", cluster.client)
    monkeypatch.setattr(gateway_callers, "_now", lambda: clock[0])
    header = f"Basic {base64.b64encode(b'alice:old password').decode()}"

    async def scene() -> None:
        callers = GatewayCallers(("node:7400",), lambda _: None)  # type: ignore[arg-type,return-value]
        principal = await callers.principal(header, source="here")
        kept = cluster.dialled[-1]
        assert callers.known(header) == principal
        clock[0] += PROVEN_S
        assert callers.known(header) is None
        assert await callers.principal(header, source="here") == principal
        assert not kept.is_closed, "what is open stays open"
        assert cluster.dialled[-1].is_closed
        assert callers.known(header) == principal
        cluster.is_slowing = True
        clock[0] += PROVEN_S
        assert await callers.principal(header, source="here") == principal, "not locked out"
        clock[0] += UNCHECKED_S_MAX
        with pytest.raises(LimitExceeded):
            await callers.principal(header, source="here")
        cluster.is_slowing = False
        cluster.password = "new password"
        clock[0] += PROVEN_S
        assert callers.known(header) is None
        with pytest.raises(Unauthenticated):
            await callers.principal(header, source="here")
        assert callers.known(header) is None
        await callers.close()
        assert kept.is_closed

    asyncio.run(scene())


def test_guesses_are_slowed_down_by_where_they_come_from_and_nobody_else_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cluster sees the gateway's address for everybody."""
    cluster = Cluster()
    monkeypatch.setattr(gateway_callers, "Client", cluster.client)

    def basic(name: str, password: str) -> str:
        return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"

    async def scene() -> None:
        callers = GatewayCallers(("node:7400",), lambda _: None)  # type: ignore[arg-type,return-value]
        slowed = 0
        for number in range(500):
            try:
                await callers.principal(basic(f"user-{number}", "guess"), source="10.0.0.1")
            except LimitExceeded:
                slowed += 1
            except Unauthenticated:
                pass
        assert slowed > 300
        assert len(cluster.dialled) < 200, "the rest has cost the cluster nothing"
        header = basic("alice", "old password")
        found = await callers.principal(header, source="10.0.0.2")
        assert callers.known(header) == found
        await callers.close()

    asyncio.run(scene())


def test_one_source_cannot_take_every_turn_and_who_was_believed_stays_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, clock = Cluster(), [0.0]
    monkeypatch.setattr(gateway_callers, "Client", cluster.client)
    monkeypatch.setattr(gateway_callers, "_now", lambda: clock[0])
    header = f"Basic {base64.b64encode(b'alice:old password').decode()}"

    async def scene() -> None:
        callers = GatewayCallers(("node:7400",), lambda _: None)  # type: ignore[arg-type,return-value]
        believed = await callers.principal(header, source="10.0.0.1")
        waiting = asyncio.Event()

        async def hang(_: Dialled) -> None:
            await waiting.wait()
            raise Unauthenticated("no such token")

        monkeypatch.setattr(Dialled, "connect", hang)
        made_up = [
            asyncio.create_task(callers.principal(f"Bearer made-up-{n}", source="10.0.0.1"))
            for n in range(PROVING_PER_SOURCE_MAX)
        ]
        await asyncio.sleep(0)
        with pytest.raises(LimitExceeded):
            await callers.principal("Bearer one-more", source="10.0.0.1")
        clock[0] += PROVEN_S
        assert await callers.principal(header, source="10.0.0.1") == believed
        elsewhere = asyncio.create_task(callers.principal("Bearer x", source="10.0.0.2"))
        await asyncio.sleep(0)
        assert not elsewhere.done(), "it has a turn of its own"
        waiting.set()
        ended = await asyncio.gather(*made_up, elsewhere, return_exceptions=True)
        assert all(isinstance(one, Unauthenticated) for one in ended)
        await callers.close()

    asyncio.run(scene())
