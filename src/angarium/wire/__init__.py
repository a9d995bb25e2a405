"""Frames and connections: how nodes, and our Python client, talk. The only home of raw sockets."""

from angarium.wire.connection import Connection
from angarium.wire.dial import dial
from angarium.wire.errors import (
    ConnectionLost,
    DeadlineExceeded,
    FrameTooLarge,
    HandshakeRefused,
    InvalidFrame,
    RemoteError,
    StreamCancelled,
    Unreachable,
    UnsupportedOperation,
    VersionMismatch,
    WireError,
    WrongCluster,
    WrongNode,
)
from angarium.wire.frames import Frame, Header, packed, roomy
from angarium.wire.handlers import Handlers, Welcome
from angarium.wire.handshake import Hello, Peer, Role
from angarium.wire.link import Link
from angarium.wire.server import Server
from angarium.wire.serving import Request
from angarium.wire.stream_outbox import StreamOutbox
from angarium.wire.streams import Stream
from angarium.wire.wire_limits import WireLimits

__all__ = [
    "Connection",
    "ConnectionLost",
    "DeadlineExceeded",
    "Frame",
    "FrameTooLarge",
    "Handlers",
    "HandshakeRefused",
    "Header",
    "Hello",
    "InvalidFrame",
    "Link",
    "Peer",
    "RemoteError",
    "Request",
    "Role",
    "Server",
    "Stream",
    "StreamCancelled",
    "StreamOutbox",
    "Unreachable",
    "UnsupportedOperation",
    "VersionMismatch",
    "Welcome",
    "WireError",
    "WireLimits",
    "WrongCluster",
    "WrongNode",
    "dial",
    "packed",
    "roomy",
]
