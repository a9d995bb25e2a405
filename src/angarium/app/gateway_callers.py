"""Those who come to a gateway: each is passed on with the proof that it brought, and no other.

A gateway has no account and no secret of its own. For each `Authorization` that it is shown it has
a client that proves the same to the cluster, and the cluster decides. Who brings nothing gets a
client without any proof, which is everybody while authentication is off, and nobody otherwise.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from angarium.api.access import ANONYMOUS, Action, Principal, ResourceKind
from angarium.client import Client
from angarium.client.login import Login
from angarium.doors.callers import Callers
from angarium.doors.http.faces import Behind
from angarium.errors import LimitExceeded, NotFound, PermissionDenied, Unauthenticated
from angarium.security.credentials import MISSING, Password, credentials_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.app.gateway import CountingBroker

CLIENTS_MAX: Final = 256
"""Callers with connections of their own. At the bound the one that asked longest ago is hung up on,
with what it has open, and logged in again when it comes again."""

PROVEN_S: Final = 30.0
"""How long a password that the cluster took is believed here. Its connections outlive it when it is
changed, and whoever still has the old one must not come in by them; a token's end with the token.
"""

UNCHECKED_S_MAX: Final = 300.0
"""How much longer it is believed while the cluster checks none for that name, because of others."""


@dataclass(slots=True)
class _Kept:
    principal: Principal
    client: Client
    until: float
    """On the loop's clock: when the cluster has to be asked again."""


class GatewayCallers(Callers[Behind]):
    """Makes a client of each proof that is brought."""

    def __init__(
        self, servers: tuple[str, ...], broker_on: Callable[[Client], CountingBroker]
    ) -> None:
        """`broker_on` returns the broker that a client is."""
        super().__init__(None, self._behind)
        self.is_required = False
        """Whether the cluster wants to know who asks; found out by asking it without a proof."""
        self.nobodys = Client(*servers, login=Login())
        """The client of who brings nothing."""
        self._servers = servers
        self._broker_on = broker_on
        self._clients: dict[bytes, _Kept] = {}
        self._by_name: dict[str, Client] = {}
        self._numbers = count(1)
        self._key = secrets.token_bytes(32)
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def anonymous(self) -> None:
        """Nobody beforehand: whether a proof is needed is the cluster's to say."""
        return

    def known(self, header: str | None) -> Principal | None:
        """Return who brought this before, and still has a client."""
        if header is None:
            return None if self.is_required else ANONYMOUS
        digest = self._digest(header)
        found = self._clients.pop(digest, None)
        if found is None:
            return None
        self._clients[digest] = found  # the one used last is the last to be forgotten
        return found.principal if _now() < found.until else None

    async def principal(self, header: str | None, *, source: str) -> Principal:  # noqa: ARG002
        """Have the cluster check what was brought; raises `Unauthenticated`."""
        if header is None:
            if self.is_required:
                raise Unauthenticated(MISSING)
            return ANONYMOUS
        brought = credentials_in(header)
        if isinstance(brought, Password):
            login = Login(user=brought.name, password=brought.password)
        else:
            login = Login(token=brought.text)
        client, digest = Client(*self._servers, login=login), self._digest(header)
        until = _now() + PROVEN_S if isinstance(brought, Password) else math.inf
        try:
            await client.connect()
        except BaseException as error:
            await client.close()
            known = self._clients.get(digest)
            if known is not None and isinstance(error, Unauthenticated):
                self._let_go(digest)
            # Else somebody may guess passwords for this name, from here like everybody.
            is_early = known is not None and _now() < known.until + UNCHECKED_S_MAX
            if known is not None and is_early and isinstance(error, LimitExceeded):
                return known.principal
            raise
        known = self._clients.get(digest)
        if known is not None:
            # It was proven again, or somebody else brought the same meanwhile.
            known.until = until
            await client.close()
            return known.principal
        return self._keep(digest, client, until)

    async def close(self) -> None:
        """Hang up."""
        clients, self._clients = list(self._clients.values()), {}
        for one in clients:
            await one.client.close()
        await self.nobodys.close()
        if self._closing:
            await asyncio.wait(self._closing)

    def _keep(self, digest: bytes, client: Client, until: float) -> Principal:
        if len(self._clients) >= CLIENTS_MAX:
            self._let_go(next(iter(self._clients)))
        # A number, and no name: who it is the cluster knows. A new one each time, for what was made
        # for an earlier client of the same caller is gone with that.
        principal = Principal(name=f"caller {next(self._numbers)}")
        self._clients[digest] = _Kept(principal, client, until)
        self._by_name[principal.name] = client
        return principal

    def _let_go(self, digest: bytes) -> None:
        gone = self._clients.pop(digest)
        del self._by_name[gone.principal.name]
        task = asyncio.get_running_loop().create_task(gone.client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _behind(self, principal: Principal) -> Behind:
        client = self.nobodys if principal is ANONYMOUS else self._by_name[principal.name]
        broker = self._broker_on(client)

        async def measuring() -> None:
            if not self.is_required:
                return
            name = (await client.whoami()).principal.name
            try:
                may = await client.can(name, Action.METRICS_READ, kind=ResourceKind.CLUSTER)
            except NotFound:
                pass  # with a token one may not even ask about oneself
            else:
                if may.is_allowed:
                    return
            raise PermissionDenied(f"{name!r} may not read metrics")

        return Behind(broker, broker, broker, client.dead_letters, measuring)

    def _digest(self, header: str) -> bytes:
        octets = header.encode(errors="surrogatepass")
        return hashlib.blake2b(octets, key=self._key, digest_size=16).digest()


def _now() -> float:
    return asyncio.get_running_loop().time()
