"""Calling somebody: once, with a deadline."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from angarium.wire.connection import Connection
from angarium.wire.errors import HandshakeRefused, InvalidFrame, Unreachable
from angarium.wire.handlers import Handlers
from angarium.wire.handshake import check_node
from angarium.wire.tls_probe import speaks_tls_at
from angarium.wire.tls_refusals import refusal_of, speaks_tls
from angarium.wire.wire_limits import WireLimits

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.security.tls import Dialling
    from angarium.wire.handlers import Welcome
    from angarium.wire.handshake import Hello


async def dial(
    *,
    host: str,
    port: int,
    hello: Hello,
    welcome: Welcome | None = None,
    expected_node: NodeId | None = None,
    limits: WireLimits | None = None,
    timeout_s: float = 5.0,
    tls: Dialling | None = None,
) -> Connection:
    """Return an open connection, its handshake done.

    Raises `Unreachable` when nobody answers in time, and `HandshakeRefused` (or another error the
    other side refused us with) when we do not fit together: `TlsMismatch`, `CertificateRefused`.
    """

    def prove(connection: Connection) -> None:
        # Before its greeting, or its goodbye, is read: either may say that this node has to end.
        if tls is not None:
            shown = connection.peer_certificate
            assert shown is not None, "a listener without a certificate is not believed"
            tls.check(shown)

    def check_and_welcome(connection: Connection) -> Handlers:
        check_node(connection.peer.hello, expected_node)
        return Handlers() if welcome is None else welcome(connection)

    connection: Connection | None = None
    is_open = False
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(
                    hello=hello,
                    welcome=check_and_welcome,
                    limits=limits or WireLimits(),
                    is_dialled=True,
                    prove=prove,
                ),
                host,
                port,
                ssl=None if tls is None else tls.context(),
                server_hostname=None if tls is None else tls.server_name(host),
            )
            await connection.opened()
            is_open = True
    except TimeoutError:
        raise Unreachable(f"{host}:{port} did not answer within {timeout_s:g} s") from None
    except Unreachable as closed:
        # Most listeners close without a word when plaintext comes where TLS is spoken.
        if tls is None and connection is not None and await speaks_tls_at(host, port):
            raise speaks_tls(f"{host}:{port}") from closed
        raise
    except ssl.SSLError as error:
        raise refusal_of(error, f"{host}:{port}") from error
    except OSError as error:
        why = str(error) or "it closed the connection during the TLS handshake"
        raise Unreachable(f"{host}:{port} cannot be reached: {why}") from error
    except UnicodeError as error:  # "bad..host": whoever names an address may say anything
        raise Unreachable(f"{host}:{port} cannot be reached: that is no host's name") from error
    except InvalidFrame as strange:
        raise HandshakeRefused(
            f"{host}:{port} does not speak the wire protocol; is it a node's wire port, and not "
            f"the one for gRPC or HTTP? ({strange})"
        ) from strange
    finally:
        if connection is not None and not is_open:
            connection.fail(Unreachable("the caller no longer waits for this connection"))
    return connection
