"""Who may ask at all: requests for this host, from pages that may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.wire.http.hosts import Hosts
from angarium.wire.http.origins import Origins

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.wire.http.messages import Request, Response


class Admission:
    """What every HTTP listener asks before it looks at a request."""

    def __init__(self, hosts: Hosts | None = None, origins: Origins | None = None) -> None:
        """Without `hosts` only addresses and loopback names are ours, without `origins` no page
        from elsewhere may."""
        self._hosts = hosts or Hosts()
        self._origins = origins or Origins()

    def admit(self, request: Request, *, readable: Iterable[bytes] = ()) -> Response | None:
        """Let a request through, or return the answer to a browser that asks beforehand.

        `readable` are headers of answers that scripts may read besides the usual ones.
        Raises `RequestRefused` for another host, and for a page that may not.
        """
        if not is_from_a_page(request) and request.named.get(b"host") in self._hosts.remembered:
            return None  # as nearly all are
        self._hosts.admit(request)
        return self._origins.admit(request, readable=readable)


def is_from_a_page(request: Request) -> bool:
    """Whether a browser asks for a page of somebody's: its answer may need headers of its own."""
    return b"origin" in request.named or b"sec-fetch-site" in request.named
