"""Pages of other origins: a browser that shows one must not publish here on its behalf.

Browsers name the page that a request comes from (`Origin`) and how far it is from the address that
is asked for (`Sec-Fetch-Site`); other clients send neither. A page of this very scheme, host and
port may do everything, and so may those that the settings name. To these the browser has to be
told so: in every answer, and beforehand, when it asks whether it may send what it is about to
(`OPTIONS`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.wire.http.messages import Page, Response
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
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_ORIGIN: Final = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^:\[\]/@?#\s]+)(?::([0-9]{1,5}))?")
_BROWSERS: Final = b"Mozilla/"
"""How every browser begins its User-Agent, which no page can change for a request that is not
asked for beforehand."""


class WebOrigin(NamedTuple):
    """What browsers tell pages apart by."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parsed(cls, text: str) -> WebOrigin | None:
        """Return the origin of `SCHEME://HOST[:PORT]`; None if that is none, as `null` is."""
        found = _ORIGIN.fullmatch(text.lower())
        if found is None:
            return None
        scheme, host, port = found.groups()
        return cls(scheme, host.removesuffix("."), int(port or _DEFAULT_PORTS[scheme]))


class Origins:
    """The pages of other origins whose scripts may use a listener."""

    def __init__(
        self, allowed: Iterable[str] = (), *, setting: str = "[http] origins in node.toml"
    ) -> None:
        """Take the pages; `setting` is where one more would be named."""
        listed = tuple(allowed)
        self._is_open = EVERYBODY in listed
        self._allowed = frozenset(map(WebOrigin.parsed, listed)) - {None}
        self._setting = setting

    def admit(self, request: Request, *, readable: Iterable[bytes] = ()) -> Response | None:
        """Let a request through, or return the answer to a browser that asks beforehand.

        `readable` are headers of answers that scripts may read besides the usual ones.
        Raises `RequestRefused` if a web page that may not is behind the request.
        """
        origin = request.header(b"origin")
        if origin is None:
            request.page = self._page_of_silent(request)
            return None
        request.page = Page.ADMITTED
        text = origin.decode("latin-1")
        parsed = WebOrigin.parsed(text)
        if not self._is_open and parsed not in self._allowed:
            if parsed is None or parsed != own_origin(request) or _is_elsewhere(request):
                raise RequestRefused(
                    f"web pages of other origins may not use this broker; to allow those of"
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

    def _page_of_silent(self, request: Request) -> Page:
        """Return which page is behind a request that names no origin; refuse what another page
        makes a browser fetch.

        A browser would send its user's certificate or password along. Following a link to a page
        of ours stays allowed; the router refuses it where it would change something.
        """
        if self._is_open or not _is_elsewhere(request):
            is_told = self._is_open or b"sec-fetch-site" in request.named
            return Page.ADMITTED if is_told else Page.UNNAMED
        is_link = request.header(b"sec-fetch-dest") == b"document"
        if not is_link or request.method not in {b"GET", b"HEAD"}:
            raise RequestRefused(
                "a web page of another origin asks for this; it may not use this broker", status=403
            )
        return Page.LINK


def check_no_link(request: Request) -> None:
    """Raise `RequestRefused` if a page of another origin may have led a browser to this.

    To an address without TLS other than localhost browsers send no `Sec-Fetch-Site`. There only
    the page that they came from is known (`Referer`), and a page can withhold it.
    """
    page = request.page
    if page is Page.UNNAMED and (request.header(b"user-agent") or b"").startswith(_BROWSERS):
        referer = request.text_header(b"referer") or ""
        before = WebOrigin.parsed("/".join(referer.split("/")[:3]))
        is_ours = before is not None and before == own_origin(request)
        page = Page.ADMITTED if is_ours else Page.LINK
    if page is Page.LINK:
        raise RequestRefused(
            "this request changes something, and a link on a page of another origin may have led"
            " a browser here; send it from a page of this broker, or from a program",
            status=403,
        )


def own_origin(request: Request) -> WebOrigin | None:
    """Return the origin of the pages that are served where a request was sent."""
    scheme = "https" if request.connection.is_encrypted else "http"
    host = request.text_header(b"host")
    return None if host is None else WebOrigin.parsed(f"{scheme}://{host}")


def _is_elsewhere(request: Request) -> bool:
    """Whether a browser says that the page behind a request is of another origin."""
    return request.header(b"sec-fetch-site") not in _HERE


_HERE: Final = frozenset({None, b"same-origin", b"none"})
"""All but `cross-site` and `same-site`. `none`: the address was typed, or is a bookmark."""
