"""The HTTP door: REST with an OpenAPI document, server-sent events, WebSockets, GraphQL, metrics.

docs/reference/http.md describes what can be asked for, docs/reference/graphql.md the schema. The
door translates between HTTP and the contract of `angarium.api`, and no more. `HttpDoor` is what a
node or a gateway opens; `server` is the HTTP/1.1 underneath, and the other modules are its parts.
"""

from angarium.doors.http.door import HttpDoor
from angarium.wire.http import HttpLimits

__all__ = ["HttpDoor", "HttpLimits"]
