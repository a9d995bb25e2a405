"""The gRPC door: `angarium.v1.Broker`, with health and reflection, for clients of every language.

The service is described in proto/angarium/v1/broker.proto, errors and limits in
docs/reference/grpc.md. `GrpcDoor` is what a node opens; the other modules are its parts.
"""

from angarium.doors.grpc.door import GrpcDoor
from angarium.doors.grpc.door_limits import GrpcLimits

__all__ = ["GrpcDoor", "GrpcLimits"]
