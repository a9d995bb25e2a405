"""gRPC on one address: the calls of a service, with reflection, within the limits."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from grpc_reflection.v1alpha import reflection

from angarium.closing import Closings
from angarium.doors.grpc.inflating import Inflating
from angarium.doors.grpc.server_limits import server_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.doors.grpc.server_limits import GrpcLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What the door shows, and asks for, on an encrypted connection. All in PEM."""

    certificate: bytes
    """The node's certificate, and those between it and the authority."""
    key: bytes
    """The key of that certificate."""
    client_authorities: bytes | None = None
    """If given, clients must show a certificate signed by one of these."""

    @property
    def credentials(self) -> grpc.ServerCredentials:
        """The same, as gRPC takes it."""
        return grpc.ssl_server_credentials(
            [(self.key, self.certificate)],
            root_certificates=self.client_authorities,
            require_client_auth=self.client_authorities is not None,
        )


class GrpcServer:
    """Serves one service of ours, and what comes with gRPC."""

    def __init__(self, *, host: str, port: int, limits: GrpcLimits, tls: Tls | None = None) -> None:
        """Prepare; `port` 0 takes a free one."""
        self.stopping = asyncio.Event()
        """Set when streams are to end."""
        self.closings = Closings()
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._limits = limits
        self._tls = tls
        self._server: grpc.aio.Server | None = None

    def prepare(
        self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> Inflating:
        """Take the calls of a service; services that come with gRPC are added to what is returned,
        and find their requests inflated."""
        assert self._server is None, "a door is opened once"
        limits = self._limits
        self._server = grpc.aio.server(
            options=server_options(limits), maximum_concurrent_rpcs=limits.calls_max
        )
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, dict(handlers)),)
        )
        return Inflating(self._server, limits.message_bytes_max)

    async def start(self, inflating: Inflating, *services: str, pool: Any = None) -> int:
        """Listen, and tell of `services` by reflection; return the port.

        `OSError` if the address cannot be had.
        """
        assert self._server is not None
        reflection.enable_server_reflection(
            (*services, reflection.SERVICE_NAME), inflating, pool=pool
        )
        try:
            if self._tls is None:
                port = self._server.add_insecure_port(self._address)
            else:
                port = self._server.add_secure_port(self._address, self._tls.credentials)
        except RuntimeError:
            port = 0
        if port == 0:
            self._server = None
            what = f"gRPC cannot listen on {self._address} for {services[0]}"
            raise OSError(errno.EADDRINUSE, what)
        await self._server.start()
        return port

    async def stop(self, grace_s: float) -> None:
        """Close: streams end at once, other calls have `grace_s` to finish."""
        self.stopping.set()
        if self._server is not None:
            await self._server.stop(grace_s)
            self._server = None
        await self.closings.drained()
