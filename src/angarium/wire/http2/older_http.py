"""What is told to whoever speaks HTTP/1 here: curl, a browser, a load balancer's probe."""

from __future__ import annotations

from typing import Final

_TEXT: Final = (
    b"this port speaks gRPC, over HTTP/2 alone;"
    b" REST, GraphQL and metrics are at the node's HTTP port (7402 unless set otherwise)\n"
)

ANSWER: Final = (
    b"HTTP/1.1 505 HTTP Version Not Supported\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: %d\r\n"
    b"Connection: close\r\n\r\n%b" % (len(_TEXT), _TEXT)
)
"""To a client of HTTP/1 frames are noise: curl calls them HTTP/0.9, and shows nothing."""


def is_older_http(data: bytes) -> bool:
    """Whether `data` begins with the request line of HTTP/1.0 or 1.1."""
    return b" HTTP/1." in data.partition(b"\r\n")[0]
