"""The Python client: the contract over the wire, with batching, routing and retries.

`Client` is for asyncio, `SyncClient` for everybody else. docs/guides/python-client.md shows both.
"""

from angarium.api import Ack, GroupConfig, TopicConfig
from angarium.client.client import Client
from angarium.client.dead_letters import DeadLetter, DeadLetters, LetterFilter
from angarium.client.groups.consumer import Consumer
from angarium.client.groups.group import Group
from angarium.client.groups.group_records import (
    GroupBatch,
    GroupRecord,
    SyncGroupBatch,
    SyncGroupRecord,
)
from angarium.client.groups.sync import SyncConsumer, SyncGroup
from angarium.client.headers import RecordHeaders
from angarium.client.publishing.receipts import Loss, Receipt
from angarium.client.reading.starts import StartLike
from angarium.client.reading.subscription import Subscription
from angarium.client.records import ReceivedBatch, Record
from angarium.client.settings import ClientSettings
from angarium.client.sync import SyncClient, SyncSubscription
from angarium.security.tls import TlsOptions

__all__ = [
    "Ack",
    "Client",
    "ClientSettings",
    "Consumer",
    "DeadLetter",
    "DeadLetters",
    "Group",
    "GroupBatch",
    "GroupConfig",
    "GroupRecord",
    "LetterFilter",
    "Loss",
    "Receipt",
    "ReceivedBatch",
    "Record",
    "RecordHeaders",
    "StartLike",
    "Subscription",
    "SyncClient",
    "SyncConsumer",
    "SyncGroup",
    "SyncGroupBatch",
    "SyncGroupRecord",
    "SyncSubscription",
    "TlsOptions",
    "TopicConfig",
]
