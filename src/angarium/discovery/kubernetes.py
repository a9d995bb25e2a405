"""`kubernetes`: the endpoints of a service, listed and then watched at the API server.

It needs a service account that may get, list and watch endpointslices in its namespace, and
nothing else. The token's file is read for every request: Kubernetes replaces it every hour or so.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from angarium.discovery.endpoint_slices import (
    EndpointSlice,
    EndpointSliceList,
    Status,
    WatchEvent,
)
from angarium.discovery.https import BadAnswer, get
from angarium.discovery.port import DiscoveryFailed, Found, NothingFound, found

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from angarium.addresses import Address
    from angarium.discovery.https import Answer

SLICES_MAX: Final = 500
"""Slices of one service; each has up to 100 endpoints. With more discovery fails, and says so."""

LIST_BYTES_MAX: Final = 16 << 20
LINE_BYTES_MAX: Final = 1 << 20
"""The longest list, and the longest event of a watch, that is taken."""

FILE_BYTES_MAX: Final = 64 << 10
"""A token or namespace that is longer is refused."""

WATCH_S: Final = 60
"""How long one watch is asked for. A connection that died in silence is noticed after it; the next
watch goes on where the last one ended."""

WATCH_S_MIN: Final = 1.0
"""The next watch, or list, is asked for so long after the last one began, at the earliest: a server
that ends watches at once, or calls what it has just listed outdated, is not asked in a loop."""

SILENCE_S_MAX: Final = WATCH_S + 15.0
"""A watch that says nothing for longer, not even that it ends, is dead."""

_GONE: Final = 410
_FORBIDDEN: Final = 403
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_OK: Final = 200


class _Outdated(Exception):
    """What was listed is too old to go on from: list again."""


class KubernetesDiscovery:
    """Asks the API server for one service's endpoints."""

    def __init__(
        self,
        service: str,
        *,
        api: Address,
        credentials: Path,
        namespace: str = "",
        port_name: str,
        port: int,
    ) -> None:
        """`credentials` is the folder of the pod's service account: `token`, `ca.crt`, and
        `namespace`, which counts if no other one is named. Nodes listen at the port that the
        service calls `port_name`, or at `port`."""
        self._service = service
        self._api = api
        self._credentials = credentials
        self._namespace = namespace
        self._port_name = port_name
        self._port = port

    @property
    def name(self) -> str:
        """Who is asked."""
        return f"Kubernetes at {self._api} (service {self._service})"

    async def find(self) -> Found:
        """Look once."""
        listed = await self._list()
        answer = self._found({one.metadata.name: one for one in listed.items or ()})
        if not answer.addresses:
            raise NothingFound(
                f"the service {self._service} has no endpoints in the namespace "
                f"{self._read_namespace()}: does it exist, does its selector match the pods, and "
                "does it publish addresses that are not ready (publishNotReadyAddresses)?"
            )
        return answer

    async def follow(self) -> AsyncGenerator[Found, None]:
        """List, then watch what changes; list again when the watch cannot go on."""
        while True:
            listed = await self._list()
            slices = {one.metadata.name: one for one in listed.items or ()}
            yield self._found(slices)
            version = listed.metadata.resourceVersion
            next_at = _now() + WATCH_S_MIN
            try:
                while True:
                    async with aclosing(self._watch(version, slices)) as versions:
                        async for newer in versions:
                            version = newer
                            yield self._found(slices)
                    await _wait_until(next_at)
                    next_at = _now() + WATCH_S_MIN
            except _Outdated:
                await _wait_until(next_at)

    def _found(self, slices: dict[str, EndpointSlice]) -> Found:
        # A pod may be in two slices for a moment, while it moves from one to the other.
        return found(
            address
            for name in sorted(slices)
            for address in slices[name].node_addresses(port_name=self._port_name, port=self._port)
        )

    async def _list(self) -> EndpointSliceList:
        async with self._asked(f"limit={SLICES_MAX}") as answer:
            if answer.status != _OK:
                raise DiscoveryFailed(await self._refusal(answer))
            try:
                listed = msgspec.json.decode(
                    await answer.document(bytes_max=LIST_BYTES_MAX), type=EndpointSliceList
                )
            except msgspec.DecodeError as error:
                raise BadAnswer(f"it does not answer with a list of EndpointSlices: {error}") from (
                    error
                )
        if listed.metadata.continue_:
            raise DiscoveryFailed(self._too_many())
        return listed

    async def _watch(
        self, version: str, slices: dict[str, EndpointSlice]
    ) -> AsyncGenerator[str, None]:
        """Keep `slices` up to date from `version` on, until the server ends the watch.

        Yields, after each change, from where another watch would go on.
        """
        query = (
            f"watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_S}"
            f"&resourceVersion={quote(version, safe='')}"
        )
        async with self._asked(query) as answer:
            if answer.status == _GONE:
                raise _Outdated
            if answer.status != _OK:
                raise DiscoveryFailed(await self._refusal(answer))
            lines = answer.lines(bytes_max=LINE_BYTES_MAX, silence_s_max=SILENCE_S_MAX)
            async with aclosing(lines):
                async for line in lines:
                    try:
                        version = _noted(msgspec.json.decode(line, type=WatchEvent), slices)
                    except msgspec.DecodeError as error:
                        raise BadAnswer(f"a watch has a line that is no event: {error}") from error
                    if len(slices) > SLICES_MAX:
                        raise DiscoveryFailed(self._too_many())
                    yield version

    @asynccontextmanager
    async def _asked(self, query: str) -> AsyncIterator[Answer]:
        """Ask for the service's slices; what goes wrong is told in our words."""
        namespace = quote(self._read_namespace(), safe="")
        selector = quote(f"kubernetes.io/service-name={self._service}", safe="")
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        headers = {
            "Authorization": f"Bearer {self._read('token')}",
            "Accept": "application/json",
            "User-Agent": "angarium",
        }
        context = self._context()
        try:
            async with get(
                self._api,
                f"{path}?labelSelector={selector}&{query}",
                context=context,
                headers=headers,
            ) as answer:
                yield answer
        except TimeoutError:
            raise DiscoveryFailed(f"the Kubernetes API at {self._api} does not answer") from None
        except ssl.SSLCertVerificationError as error:
            raise DiscoveryFailed(
                f"the certificate of the Kubernetes API at {self._api} is not believed "
                f"({self._credentials / 'ca.crt'}): {error.verify_message}"
            ) from error
        except OSError as error:
            why = error.strerror or error
            raise DiscoveryFailed(
                f"the Kubernetes API at {self._api} cannot be reached: {why}"
            ) from error
        except BadAnswer as error:
            raise DiscoveryFailed(f"the Kubernetes API at {self._api}: {error}") from error

    async def _refusal(self, answer: Answer) -> str:
        """Return why a request was refused, and what to do about it."""
        async with asyncio.timeout(SILENCE_S_MAX):
            text = await answer.document(bytes_max=LIST_BYTES_MAX)
        try:
            said = msgspec.json.decode(text, type=Status).message[:300]
        except msgspec.DecodeError:
            said = ""
        what = f"the Kubernetes API answers {answer.status}{f' ({said})' if said else ''}"
        if answer.status == _FORBIDDEN:
            return (
                f"{what}: give the pod's service account a Role with the verbs get, list and watch "
                "on endpointslices of discovery.k8s.io in the namespace "
                f"{self._read_namespace()}, and a RoleBinding to it"
            )
        if answer.status == _UNAUTHORIZED:
            return f"{what}: it does not accept the token in {self._credentials / 'token'}"
        if answer.status == _NOT_FOUND:
            return f"{what}: it has no EndpointSlices, which came with Kubernetes 1.21"
        return what

    def _too_many(self) -> str:
        return f"the service {self._service} has more than {SLICES_MAX} EndpointSlices"

    def _read_namespace(self) -> str:
        return self._namespace or self._read("namespace")

    def _read(self, name: str) -> str:
        """Return what is in a file of the service account, as it is now."""
        path = self._credentials / name
        try:
            with path.open("rb") as file:
                text = file.read(FILE_BYTES_MAX).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DiscoveryFailed(f"{_NO_ACCOUNT}: {error}") from error
        if not text or any(one.isspace() for one in text):
            raise DiscoveryFailed(f"{_NO_ACCOUNT}: {path} holds no {name}")
        return text

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=str(self._credentials / "ca.crt"))
        except (OSError, ssl.SSLError) as error:
            raise DiscoveryFailed(f"{_NO_ACCOUNT}: {error}") from error


_NO_ACCOUNT: Final = (
    "the pod's service account cannot be used (is its token mounted? "
    "automountServiceAccountToken, or kubernetes_credentials in [discovery])"
)


async def _wait_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - _now()))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _noted(event: WatchEvent, slices: dict[str, EndpointSlice]) -> str:
    """Do to `slices` what an event says; return from where to go on watching.

    Raises `_Outdated` if it cannot go on.
    """
    if event.type == "ERROR":
        status = msgspec.json.decode(event.object, type=Status)
        if status.code == _GONE:
            raise _Outdated
        raise BadAnswer(f"a watch has failed: {status.message[:300]}")
    one = msgspec.json.decode(event.object, type=EndpointSlice)
    if event.type == "DELETED":
        slices.pop(one.metadata.name, None)
    elif event.type in ("ADDED", "MODIFIED"):
        slices[one.metadata.name] = one
    return one.metadata.resourceVersion
