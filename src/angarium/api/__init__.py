"""The contract: everything a client can ask of a broker, whichever door it comes through.

Doors translate to these values and back, the Python client speaks them over the wire, and the
service behind them is where every rule is enforced. A request that fails raises an
error of `angarium.errors`; there is no other way to fail.
"""

from angarium.api.broker import Broker
from angarium.api.cluster import ClusterStatus, NodeInfo
from angarium.api.groups import (
    Checkpoint,
    ConsumeRequest,
    Consumption,
    GroupBroker,
    GroupConfig,
    GroupInfo,
    GroupMember,
    GroupPosition,
    Handed,
    Held,
    Moved,
    Settled,
    Settlement,
    Verb,
)
from angarium.api.publishing import Ack, OffsetBroker, Producer, PublishRequest
from angarium.api.reading import (
    FETCH_BYTES_MAX,
    FETCH_WAIT_MS_MAX,
    Delivery,
    FetchRequest,
    FetchResult,
    Interest,
    PassingBroker,
    Start,
    StartAt,
    Subscription,
)
from angarium.api.topics import PartitionInfo, TopicConfig, TopicInfo

__all__ = [
    "FETCH_BYTES_MAX",
    "FETCH_WAIT_MS_MAX",
    "Ack",
    "Broker",
    "Checkpoint",
    "ClusterStatus",
    "ConsumeRequest",
    "Consumption",
    "Delivery",
    "FetchRequest",
    "FetchResult",
    "GroupBroker",
    "GroupConfig",
    "GroupInfo",
    "GroupMember",
    "GroupPosition",
    "Handed",
    "Held",
    "Interest",
    "Moved",
    "NodeInfo",
    "OffsetBroker",
    "PartitionInfo",
    "PassingBroker",
    "Producer",
    "PublishRequest",
    "Settled",
    "Settlement",
    "Start",
    "StartAt",
    "Subscription",
    "TopicConfig",
    "TopicInfo",
    "Verb",
]
