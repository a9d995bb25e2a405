"""GraphQL at the HTTP door: one schema for queries, mutations and subscriptions.

The schema is written down in `schema`; docs/reference/graphql.md explains it. graphql-core parses,
checks and executes; what a request may cost is decided before any of it is checked (`costs`).
`endpoint.GraphqlEndpoint` is what the door serves. It is not imported here, because graphql-core
takes as long to load as the rest of the door.
"""

from __future__ import annotations

import msgspec


class QueryParameters(msgspec.Struct, frozen=True):
    """What a URL may say to GraphQL."""

    query: str | None = None
    variables: str | None = None
    operationName: str | None = None  # noqa: N815
