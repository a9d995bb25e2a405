"""What the other side of a connection has shown, and was believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.security.tls.certificate import Certificate

if TYPE_CHECKING:
    import asyncio


def certificate_shown(transport: asyncio.BaseTransport | None) -> Certificate | None:
    """Return the certificate that was shown and verified; None without one, or without TLS.

    One that says something that makes no sense counts as none.
    """
    told = None if transport is None else transport.get_extra_info("peercert")
    try:
        return Certificate.decoded(told) if told else None
    except (KeyError, ValueError):
        return None
