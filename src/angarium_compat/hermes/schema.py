"""The schema of the profile, as its broker published it."""

from __future__ import annotations

from typing import Final

from angarium_compat.schemas import Method, Schema

SCHEMA: Final = Schema(
    file="hermes/broker.proto",
    package="broker",
    service="BrokerService",
    enums={"DeliveryMode": ("CONSISTENT", "EVENTUAL", "PERFORMANCE")},
    messages={
        "PublishRequest": (
            (1, "topic", "string"),
            (2, "payload", "bytes"),
            (3, "mode", "DeliveryMode"),
        ),
        "PublishResponse": ((1, "success", "bool"),),
        "PublishSummary": ((1, "processed_count", "uint64"), (2, "failed_count", "uint64")),
        "PublishBatchRequest": (
            (1, "topic", "string"),
            (2, "payloads", "repeated bytes"),
            (3, "mode", "DeliveryMode"),
        ),
        "SubscribeRequest": (
            (1, "topic", "string"),
            (2, "ack_message_id", "string"),
            (3, "action", "string"),
            (4, "group_id", "string"),
        ),
        "Message": (
            (1, "id", "string"),
            (2, "topic", "string"),
            (3, "payload", "bytes"),
            (4, "timestamp", "int64"),
        ),
        "JoinRequest": ((1, "node_id", "string"), (2, "raft_addr", "string")),
        "JoinResponse": ((1, "success", "bool"), (2, "error", "string")),
    },
    methods={
        "Publish": Method("PublishRequest", "PublishResponse"),
        "PublishStream": Method("PublishRequest", "PublishSummary", client_streams=True),
        "PublishBatch": Method("PublishBatchRequest", "PublishResponse"),
        "Subscribe": Method(
            "SubscribeRequest", "Message", client_streams=True, server_streams=True
        ),
        "Join": Method("JoinRequest", "JoinResponse"),
    },
)
