"""Pages from elsewhere: a browser that visits one must not publish here on its behalf.

Browsers name the page a request comes from (`Origin`), and other clients do not. A page that this
very address served may do everything, and so may those that were named in the settings. To these
the browser has to be told so: in every answer, and beforehand, when it asks whether it may send
what it is about to (`OPTIONS`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.wire.http.messages import Response
from angarium.wire.http.request_reader import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.wire.http.messages import Request

REMEMBERED_SECONDS: Final = b"600"
"""How long a browser may take what it was told beforehand for granted."""

EVERYBODY: Final = "*"
"""Among the pages that may: all of them."""

SHOWN_CHARACTERS_MAX: Final = 100
"""How much of an origin that was refused is repeated."""

_METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"


class Origins:
    """The pages from elsewhere whose scripts may use a door."""

    def __init__(
        self, allowed: Iterable[str] = (), *, setting: str = "[http] origins in node.toml"
    ) -> None:
        """Take the pages; `setting` is where one more would be named."""
        self._allowed = frozenset(allowed)
        self._setting = setting

    def admit(self, request: Request, *, readable: Iterable[bytes] = ()) -> Response | None:
        """Let a request through, or return the answer to a browser that asks beforehand.

        `readable` are headers of answers that scripts may read besides the usual ones.
        Raises `RequestRefused` if a web page that may not is behind the request.
        """
        origin = request.header(b"origin")
        if origin is None:
            self._admit_silent(request)
            return None
        text = origin.decode("latin-1")
        if text not in self._allowed and EVERYBODY not in self._allowed:
            if text.partition("://")[2] != request.text_header(b"host"):
                raise RequestRefused(
                    f"web pages from elsewhere may not use this broker; to let those of"
                    f" {text[:SHOWN_CHARACTERS_MAX]!r}, add it to {self._setting}",
                    status=403,
                )
            return None
        request.answer_headers = (
            (b"Access-Control-Allow-Origin", origin),
            (b"Access-Control-Expose-Headers", b", ".join(readable)),
            (b"Vary", b"Origin"),
        )
        if request.method != b"OPTIONS" or request.header(b"access-control-request-method") is None:
            return None
        headers = [
            (b"Access-Control-Allow-Methods", _METHODS),
            (b"Access-Control-Max-Age", REMEMBERED_SECONDS),
        ]
        wanted = request.header(b"access-control-request-headers")
        if wanted:
            headers.append((b"Access-Control-Allow-Headers", wanted))
        return Response(204, headers=tuple(headers))

    def _admit_silent(self, request: Request) -> None:
        """Refuse what a page from elsewhere makes a browser fetch, which names no origin then.

        A browser would bring its user's certificate or password along, and reading for a group
        takes its records. Following a link to a page of ours stays allowed.
        """
        if request.header(b"sec-fetch-site") not in _ELSEWHERE or EVERYBODY in self._allowed:
            return
        is_link = request.header(b"sec-fetch-dest") == b"document"
        if not is_link or b"group=" in request.target:
            raise RequestRefused(
                "a web page from elsewhere asks for this; it may not use this broker", status=403
            )


_ELSEWHERE: Final = frozenset({b"cross-site", b"same-site"})
"""What browsers call pages that are not ours."""
