"""What a browser sees that was given nothing but the address: where everything is.

One page without scripts, pictures or anything from elsewhere. Programs get the same list as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

import angarium
from angarium.wire.http.messages import JSON, OF_A_PAGE, Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.wire.http.messages import Request
    from angarium.wire.http.router import NoParameters, Route

HTML: Final = b"text/html; charset=utf-8"

_HEADERS: Final = (
    (
        b"Content-Security-Policy",
        b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
        b" frame-ancestors 'none'",
    ),
    *OF_A_PAGE,
    (b"Vary", b"Accept"),
)

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Angarium</title>
<style>
  :root {{ color-scheme: light dark }}
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto;
          padding: 0 1rem }}
  dt {{ margin-top: .6rem }}
  dd {{ margin-left: 1.5rem }}
  pre {{ padding: .8rem; overflow-x: auto; border: 1px solid #8888; border-radius: .4rem }}
</style>
</head>
<body>
<h1>Angarium</h1>
<p>A replicated message broker, version {version}. This is the HTTP door of one of its nodes, or of
a gateway to them; any of them answers any request.</p>
<dl>
{links}</dl>
<p>To publish a record, and to read it:</p>
<pre>{example}</pre>
</body>
</html>
"""

_EXAMPLE: Final = """\
curl -s {address}/v1/topics/greetings/records -H 'content-type: application/json' \\
     -d '{{"value": "the road is clear"}}'
curl -s '{address}/v1/topics/greetings/partitions/0/records?offset=0'"""


class FrontPage:
    """`GET /`."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Take the routes; those that a browser can follow as they are become links."""
        found = [one for one in routes if one.method == "GET" and "{" not in one.path]
        # A browser cannot follow a link to a WebSocket.
        self._links = [(one.path, one.summary) for one in found if one.path != "/v1/socket"]

    def show(self, request: Request, _: NoParameters) -> Response:
        """Return the page, or, to programs, the list."""
        if b"text/html" not in (request.header(b"accept") or b""):
            found = {
                "name": "Angarium",
                "version": angarium.__version__,
                "links": dict(self._links),
            }
            return Response(200, msgspec.json.encode(found), JSON, _HEADERS)
        from html import escape  # noqa: PLC0415  (its table of entities, for few people's sake)

        shown = "".join(
            f'<dt><a href="{escape(path)}">{escape(path)}</a></dt><dd>{escape(summary)}</dd>\n'
            for path, summary in self._links
        )
        address = request.text_header(b"host") or "localhost:7402"
        example = escape(_EXAMPLE.format(address=address))
        page = _PAGE.format(version=escape(angarium.__version__), links=shown, example=example)
        return Response(200, page.encode(), HTML, _HEADERS)
