"""Finding out whether a port speaks TLS, to tell whoever dialled it without."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Final

ANSWER_S_MAX: Final = 1.0
"""Who has not shown a certificate by then counts as speaking something else."""


async def speaks_tls_at(host: str, port: int) -> bool:
    """Tell whether a port speaks TLS: whether its answer to a greeting in TLS is one."""
    transport: asyncio.BaseTransport | None = None
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, host, port, ssl=_anybody()
            )
    except ssl.SSLError as error:
        # An alert is TLS, whatever it says.
        return "ALERT" in (error.reason or "")
    except (OSError, TimeoutError):
        return False
    finally:
        if transport is not None:
            transport.close()
    return True


@cache
def _anybody() -> ssl.SSLContext:
    """Return a context that believes anybody: nothing is said to them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
