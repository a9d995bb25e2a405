"""The schema of the profile, as its brokers published it. proto/compat/bale.proto says the same."""

from __future__ import annotations

from typing import Final

from angarium_compat.schemas import Method, Schema

SCHEMA: Final = Schema(
    file="bale/broker.proto",
    package="broker",
    service="Broker",
    messages={
        "PublishRequest": (
            (1, "subject", "string"),
            (2, "body", "bytes"),
            (3, "expirationSeconds", "int32"),
        ),
        "PublishResponse": ((1, "id", "int32"),),
        "SubscribeRequest": ((1, "subject", "string"),),
        "MessageResponse": ((1, "body", "bytes"),),
        "FetchRequest": ((1, "subject", "string"), (2, "id", "int32")),
        "BroadcastResponse": ((1, "ack", "bool"),),
        "IncIdxRequest": ((1, "subject", "string"),),
        "IncIdxResponse": ((1, "newIdx", "int32"),),
    },
    methods={
        "Publish": Method("PublishRequest", "PublishResponse"),
        "Subscribe": Method("SubscribeRequest", "MessageResponse", server_streams=True),
        "Fetch": Method("FetchRequest", "MessageResponse"),
        "Broadcast": Method("PublishRequest", "BroadcastResponse"),
        "IncIdx": Method("IncIdxRequest", "IncIdxResponse"),
    },
)
