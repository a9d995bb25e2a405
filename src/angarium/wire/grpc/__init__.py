"""gRPC on HTTP/2 of our own: calls, their metadata and messages, deadlines and ends.

Knows nothing of brokers or protobuf: messages are bytes. A handler gets a `Call` and answers on it.
"""

from angarium.wire.grpc.call import Call, CallEnded, ReadyAnswer
from angarium.wire.grpc.call_limits import CallLimits
from angarium.wire.grpc.codes import GrpcCode
from angarium.wire.grpc.messages import CallRefused
from angarium.wire.grpc.methods import Method, streaming, unary
from angarium.wire.grpc.requests import Requests
from angarium.wire.grpc.server import GrpcServer

__all__ = [
    "Call",
    "CallEnded",
    "CallLimits",
    "CallRefused",
    "GrpcCode",
    "GrpcServer",
    "Method",
    "ReadyAnswer",
    "Requests",
    "streaming",
    "unary",
]
