"""HTTP/2 on the node's event loop: as much of it as gRPC uses, and all that RFC 9113 demands.

Knows nothing of brokers or gRPC. `connection` reads what came and `sender` writes what goes, both
without I/O: bytes in, calls to a `listener`, bytes out. `server` gives them sockets, time and an
end. docs/decisions/0016-grpc-on-an-http2-of-our-own.md says why it is our own.
"""

from angarium.wire.http2.connection import Connection
from angarium.wire.http2.frames import ErrorCode
from angarium.wire.http2.http2_limits import Http2Limits
from angarium.wire.http2.listener import Listener
from angarium.wire.http2.request_heads import RequestHead
from angarium.wire.http2.streams import Stream

__all__ = ["Connection", "ErrorCode", "Http2Limits", "Listener", "RequestHead", "Stream"]
