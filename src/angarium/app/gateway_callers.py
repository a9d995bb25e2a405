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
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from angarium.api.access import ANONYMOUS, Action, Principal, ResourceKind
from angarium.client import Client, ClientSettings
from angarium.client.login import Login
from angarium.doors.callers import Callers
from angarium.doors.http.faces import Behind
from angarium.errors import LimitExceeded, NotFound, PermissionDenied, Unauthenticated
from angarium.security.credentials import MISSING, Password, credentials_in
from angarium.security.slowing import Slowing, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.app.gateway import CountingBroker
    from angarium.security.tls import Certificate

CLIENTS_MAX: Final = 256
"""Callers with connections of their own. At the bound the one that asked longest ago is hung up on,
with what it has open, and logged in again when it comes again."""

PROVING_MAX: Final = 32
"""Logins under way at a time: each costs a connection, and a password some work here. One more is
refused."""

PROVING_PER_SOURCE_MAX: Final = 8
"""Of those, how many may come from one source, so that it cannot take every turn."""

SETTINGS: Final = ClientSettings(waits_for_quota=False)
"""Who is over its quota is told so: it knows best what to do about it."""

PROVEN_S: Final = 30.0
"""How long a password that the cluster took is believed here. A cluster ends the connections of an
old password; one with nodes of an older release does not, and whoever still has it must not come in
by them.
"""

UNCHECKED_S_MAX: Final = 300.0
"""How much longer it is believed while the cluster checks none for that name, because of others."""


REQUIRED: Final = "required"

UNCHECKED: Final = (
    "the cluster behind this gateway checks no proofs, and without that nobody is served here"
)


@dataclass(slots=True)
class _Kept:
    principal: Principal
    client: Client
    until: float
    """On the loop's clock: when the cluster has to be asked again."""


class GatewayCallers(Callers[Behind]):
    """Makes a client of each proof that is brought."""

    def __init__(
        self,
        servers: tuple[str, ...],
        broker_on: Callable[[Client], CountingBroker],
        *,
        must_ask: bool = False,
    ) -> None:
        """`broker_on` returns the broker that a client is. `must_ask`: nobody is let through whose
        proof the cluster has not looked at, whether it wants to or not."""
        super().__init__(None, self._behind)
        self.must_ask = must_ask
        self.is_barred = False
        """Whether nobody is served because the cluster looks at nobody's proof."""
        self.is_required = must_ask
        """Whether the cluster wants to know who asks; found out by asking it without a proof."""
        # Whatever certificate the gateway shows to be let in, its callers are not that one's user.
        self.nobodys = Client(*servers, login=Login.nobody(), settings=SETTINGS)
        """The client of who brings nothing."""
        self._servers = servers
        self._broker_on = broker_on
        self._clients: dict[bytes, _Kept] = {}
        self._by_name: dict[str, Client] = {}
        self._slowing = Slowing()
        self._proving: Counter[str] = Counter()
        """Logins under way, by where they come from; nothing is in it with none."""
        """Logins under way."""
        self._numbers = count(1)
        self._key = secrets.token_bytes(32)
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def anonymous(self) -> None:
        """Nobody beforehand: whether a proof is needed is the cluster's to say."""
        return

    def known(
        self,
        header: str | None,
        certificate: Certificate | None = None,  # noqa: ARG002  (it cannot be passed on)
    ) -> Principal | None:
        """Return who brought this before, and still has a client."""
        if self.is_barred:
            return None
        if header is None:
            return None if self.is_required else ANONYMOUS
        digest = self._digest(header)
        found = self._clients.pop(digest, None)
        if found is None:
            return None
        self._clients[digest] = found  # the one used last is the last to be forgotten
        return found.principal if _now() < found.until else None

    async def principal(
        self,
        header: str | None,
        *,
        source: str,
        certificate: Certificate | None = None,  # noqa: ARG002
    ) -> Principal:
        """Have the cluster check what was brought; raises `Unauthenticated`.

        The cluster sees one address for all who come here. So guesses are slowed down here, by the
        addresses that they come from, before they reach it.
        """
        if self.is_barred:
            raise Unauthenticated(UNCHECKED)
        if header is None:
            if self.is_required:
                raise Unauthenticated(MISSING)
            return ANONYMOUS
        brought = credentials_in(header)
        digest = self._digest(header)
        if not isinstance(brought, Password):
            login = Login(token=brought.text)
            return await self._proven(digest, login, until=math.inf, source=source)
        if digest not in self._clients:
            self._slowing.draw(source, brought.name, is_costly=True)
        login = Login(user=brought.name, password=brought.password)
        try:
            found = await self._proven(digest, login, until=_now() + PROVEN_S, source=source)
        except Unauthenticated:
            self._slowing.failed(source, brought.name)
            raise
        self._slowing.succeeded(source, brought.name)
        return found

    async def _proven(self, digest: bytes, login: Login, *, until: float, source: str) -> Principal:
        """Have the cluster check a login, and believe it until then."""
        where = source_of(source)
        if self._proving.total() >= PROVING_MAX or self._proving[where] >= PROVING_PER_SOURCE_MAX:
            known = self._clients.get(digest)
            if known is not None and _now() < known.until + UNCHECKED_S_MAX:
                return known.principal
            raise LimitExceeded("logins_max", "too many logins are under way here", retry_after=1.0)
        client = Client(*self._servers, login=login, settings=SETTINGS)
        self._proving[where] += 1
        try:
            await client.connect()
            if self.must_ask and (await client.whoami()).authentication != REQUIRED:
                # Such a cluster takes any proof for a good one.
                raise Unauthenticated(UNCHECKED)
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
        finally:
            self._proving[where] -= 1
            if not self._proving[where]:
                del self._proving[where]
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

        return Behind(broker, broker, broker, client.dead_letters, measuring, access=client)

    def _digest(self, header: str) -> bytes:
        octets = header.encode(errors="surrogatepass")
        return hashlib.blake2b(octets, key=self._key, digest_size=16).digest()


def _now() -> float:
    return asyncio.get_running_loop().time()
