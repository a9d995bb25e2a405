"""Pages from elsewhere: a browser that visits one must not publish here on its behalf.

Browsers name the page a request comes from (`Origin`), and other clients do not. A page that this
very address served may do everything, and so may those that were named in the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.doors.http.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Set

    from angarium.doors.http.server.messages import Request


def check_origin(request: Request, allowed: Set[str]) -> None:
    """Raise `Refused` if a web page from elsewhere is behind the request."""
    origin = request.text_header(b"origin")
    if origin is None or origin in allowed:
        return
    host = request.text_header(b"host")
    if origin.partition("://")[2] != host:
        raise Refused("web pages from elsewhere may not use this broker", status=403)
