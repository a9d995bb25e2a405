"""The schema of the profile, as its broker published it. proto/compat/geo.proto says the same."""

from __future__ import annotations

from typing import Final

from angarium_compat.schemas import Method, Schema

SCHEMA: Final = Schema(
    file="geo/broker.proto",
    package="broker",
    service="Broker",
    messages={
        "PublishRequest": ((1, "topic", "string"), (2, "body", "bytes")),
        "PublishResponse": ((1, "id", "string"),),
        "SubscribeRequest": ((1, "topics", "map<string,int64>"),),
        "MessageResponse": (
            (1, "id", "string"),
            (2, "timestamp", "int64"),
            (3, "topic", "string"),
            (4, "body", "bytes"),
        ),
    },
    methods={
        "Publish": Method("PublishRequest", "PublishResponse"),
        "Subscribe": Method("SubscribeRequest", "MessageResponse", server_streams=True),
    },
)
