"""Whom a gateway believes, and for how long."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from angarium.app import gateway_callers
from angarium.app.gateway_callers import PROVEN_S, UNCHECKED_S_MAX, GatewayCallers
from angarium.errors import LimitExceeded, Unauthenticated


class Cluster:
    """Knows one password; `dialled` are the clients that came."""

    def __init__(self) -> None:
        self.password = "old password"
        self.is_slowing = False
        self.dialled: list[Dialled] = []

    def client(self, *_: str, login: Any) -> Dialled:
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
