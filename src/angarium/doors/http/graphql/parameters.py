"""What a URL may say to GraphQL. Apart from the rest, which takes a while to load."""

from __future__ import annotations

import msgspec


class QueryParameters(msgspec.Struct, frozen=True):
    """The same, in a URL."""

    query: str | None = None
    variables: str | None = None
    operationName: str | None = None  # noqa: N815
