"""HTTP/1.1 on the node's event loop: connections, requests, streams and WebSockets.

Knows nothing of brokers. The parser is llhttp (through httptools), so what a request *is* is
decided by code that very many servers rely on; what may come, how much and how slowly is decided
here (`http_limits`). A listener builds on `router`, `admission`, `strict_json`, `socket_session`
and, if it describes itself, `openapi`.
docs/decisions/0010-an-http-server-on-llhttp.md says why it is our own.
"""

from angarium.wire.http.http_limits import HttpLimits
from angarium.wire.http.messages import Answer, Request, Response
from angarium.wire.http.server import HttpServer
from angarium.wire.http.stream import Stream

__all__ = ["Answer", "HttpLimits", "HttpServer", "Request", "Response", "Stream"]
