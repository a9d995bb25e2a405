"""A client that keeps everything in memory, as far as the command line needs one."""

from __future__ import annotations

import asyncio
import fnmatch
from typing import TYPE_CHECKING, Any

import msgspec

from angarium.api import (
    Ack,
    ClusterStatus,
    GroupConfig,
    GroupInfo,
    GroupMember,
    GroupPosition,
    Moved,
    NodeInfo,
    PartitionInfo,
    Start,
    TopicConfig,
    TopicInfo,
)
from angarium.api.balance import BalanceInfo
from angarium.client import Record, RecordHeaders
from angarium.errors import AlreadyExists, Expired, NotFound, OffsetOutOfRange
from angarium.ids import Index, Micros, NodeId, Offset, Term, TopicId
from angarium.kinds import GroupKind
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


class FakeCluster:
    """What all fake clients of a test share."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicInfo] = {}
        self.records: dict[str, list[Record]] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.servers: tuple[str, ...] = ()
        self.groups: dict[str, GroupInfo] = {}
        self.balance = BalanceInfo(is_running=False)

    def client(self, *servers: str, settings: Any, on_wait: Any) -> FakeClient:
        self.servers = servers
        self.tell_what_is_waited_for = on_wait
        return FakeClient(self)


class FakeBatch(list[Record]):
    """Records that came together."""

    @property
    def partition(self) -> int:
        return self[0].partition


class FakeClient:
    """One partition per topic is enough."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def __aenter__(self) -> FakeClient:
        if self._cluster.failure is not None:
            raise self._cluster.failure
        return self

    async def __aexit__(self, *error: object) -> None:
        self._cluster.calls.append(("closed",))

    # --- topics and nodes ---------------------------------------------------------------------

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        if name in self._cluster.topics:
            raise AlreadyExists(f"there is a topic {name!r}")
        parts = tuple(
            PartitionInfo(number=number, replicas=(NodeId(1), NodeId(2)), leader=NodeId(1))
            for number in range(partitions)
        )
        self._cluster.topics[name] = TopicInfo(
            id=TopicId(1), name=name, config=config, partitions=parts, created_at=Micros(0)
        )
        return self._cluster.topics[name]

    async def describe_topic(self, name: str) -> TopicInfo:
        if name not in self._cluster.topics:
            raise NotFound(f"there is no topic {name!r}")
        return self._cluster.topics[name]

    async def alter_topic(
        self, name: str, *, partitions: int | None, config: TopicConfig | None
    ) -> TopicInfo:
        self._cluster.calls.append(("alter", name, partitions, config))
        topic = await self.describe_topic(name)
        self._cluster.topics[name] = msgspec.structs.replace(topic, config=config or topic.config)
        return self._cluster.topics[name]

    async def delete_topic(self, name: str) -> None:
        await self.describe_topic(name)
        del self._cluster.topics[name]

    async def list_topics(self) -> tuple[TopicInfo, ...]:
        return tuple(self._cluster.topics.values())

    async def cluster_status(self) -> ClusterStatus:
        return ClusterStatus(
            cluster_id="feed",
            node=NodeId(1),
            catalog_leader=NodeId(1),
            catalog_index=Index(9),
            nodes=(
                NodeInfo(id=NodeId(1), addresses={"wire": "a:1", "grpc": "a:2"}, leads=2),
                NodeInfo(id=NodeId(2), addresses={"wire": "b:1"}, zone="z", alive=False),
            ),
            topics=len(self._cluster.topics),
            partitions=3,
            feature_level=1,
            version="0",
        )

    async def drain_node(self, node: NodeId, *, draining: bool) -> None:
        self._cluster.calls.append(("drain", node, draining))

    async def remove_node(self, node: NodeId) -> None:
        self._cluster.calls.append(("remove", node))

    async def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        self._cluster.calls.append(("transfer", topic, partition, to))

    async def raise_level(self, level: int | None) -> int:
        self._cluster.calls.append(("raise_level", level))
        return level or 1

    async def describe_balance(self) -> BalanceInfo:
        self._cluster.calls.append(("describe_balance",))
        return self._cluster.balance

    async def rebalance(self, *, bytes_per_s: int | None) -> BalanceInfo:
        self._cluster.calls.append(("rebalance", bytes_per_s))
        return self._cluster.balance

    async def cancel_rebalance(self) -> BalanceInfo:
        self._cluster.calls.append(("cancel_rebalance",))
        return self._cluster.balance

    async def set_auto_balance(self, *, automatic: bool) -> BalanceInfo:
        self._cluster.calls.append(("set_auto_balance", automatic))
        return self._cluster.balance

    # --- records ------------------------------------------------------------------------------

    async def publish_batch(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        keys: Sequence[bytes] | None,
        headers: Sequence[Any] | None,
        partition: int | None,
        mode: DeliveryMode | None,
        deliver_at: int = 0,
        expires_at: int = 0,
    ) -> tuple[Ack, ...]:
        await asyncio.sleep(0)
        stored = self._cluster.records.setdefault(topic, [])
        base = len(stored)
        for place, value in enumerate(values):
            stored.append(
                Record(
                    topic=topic,
                    partition=partition or 0,
                    offset=Offset(base + place),
                    key=keys[place] if keys else None,
                    value=value,
                    headers=RecordHeaders(headers[place] if headers else ()),
                    append_time=Micros(1_700_000_000_000_000 + base),
                    deliver_at=Micros(deliver_at),
                    expires_at=Micros(expires_at),
                )
            )
        return (
            Ack(
                mode=mode or DeliveryMode.CONSISTENT,
                topic=topic,
                partition=partition or 0,
                base_offset=Offset(base),
                next_offset=Offset(len(stored)),
                append_time=Micros(1_700_000_000_000_000),
                term=Term(1),
                provisional=mode is DeliveryMode.EVENTUAL,
            ),
        )

    async def fetch(self, topic: str, partition: int, offset: int) -> list[Record]:
        found = self._cluster.records.get(topic, [])
        found = [one for one in found if one.partition == partition][offset : offset + 2]
        return [] if found and found[0].value == b"expired" else found

    async def fetch_one(self, topic: str, partition: int, offset: int) -> Record:
        found = self._cluster.records.get(topic, [])[offset : offset + 1]
        if not found:
            raise OffsetOutOfRange(offset=offset, start=0, end=offset)
        if found[0].value == b"expired":
            raise Expired(offset=offset)
        return found[0]

    async def read_batches(self, topic: str, *, start: Any) -> AsyncIterator[FakeBatch]:
        self._cluster.calls.append(("read", topic, start))
        for record in self._cluster.records[topic]:
            yield FakeBatch([record])

    def subscribe(self, *topics: str, start: str | int | Start) -> FakeSubscription:
        self._cluster.calls.append(("subscribe", topics, start))
        return FakeSubscription(self._cluster, topics)

    # --- groups -------------------------------------------------------------------------------

    async def list_groups(self) -> tuple[GroupInfo, ...]:
        return tuple(
            msgspec.structs.replace(one, positions=(), listed_lag=one.lag)
            for one in self._groups.values()
        )

    async def describe_group(self, group: str) -> GroupInfo:
        if group not in self._groups:
            raise NotFound(f"there is no group {group!r}")
        return self._groups[group]

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        altered = msgspec.structs.replace(await self.describe_group(group), config=config)
        self._groups[group] = altered
        return altered

    async def seek_group(self, group: str, start: Any, **choices: Any) -> tuple[Moved, ...]:
        self._cluster.calls.append(("seek", group, start, choices))
        return (Moved(topic="t", partition=0, old_floor=Offset(70), new_floor=Offset(20)),)

    async def pause_group(self, group: str, *, paused: bool) -> None:
        self._cluster.calls.append(("pause", group, paused))

    async def delete_group(self, group: str, *, topic: str | None) -> None:
        await self.describe_group(group)
        self._cluster.calls.append(("delete group", group, topic))

    def group(self, name: str, **choices: Any) -> FakeGroup:
        self._cluster.calls.append(("group", name, choices))
        return FakeGroup(self._cluster)

    @property
    def _groups(self) -> dict[str, GroupInfo]:
        return self._cluster.groups


def a_group(name: str = "workers", **changes: Any) -> GroupInfo:
    """A group with one member that stands somewhere."""
    return GroupInfo(
        name=name,
        kind=GroupKind.QUEUE,
        config=GroupConfig(),
        members=(GroupMember(name="m-1", node=NodeId(2), partitions=(("t", 0),), pending=3),),
        positions=(
            GroupPosition(
                topic="t",
                partition=0,
                floor=Offset(70),
                start_offset=Offset(10),
                end_offset=Offset(100),
                acked_above=5,
                pending=3,
                lag=25,
                lag_ms=95_500,
            ),
        ),
        **changes,
    )


class FakeGroupRecord(Record, frozen=True):
    """A record on loan that tells the cluster what is said about it."""

    cluster: Any = None
    attempt: int = 2

    def ack_nowait(self) -> None:
        self.cluster.calls.append(("ack", self.offset))

    async def ack(self) -> None:
        self.ack_nowait()

    async def nack(self, *, reason: str) -> None:
        self.cluster.calls.append(("nack", self.offset, reason))

    async def release(self) -> None:
        self.cluster.calls.append(("release", self.offset))


class FakeGroup:
    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def consume(self, *topics: str, credit: int) -> FakeConsumer:
        self._cluster.calls.append(("consume", topics, credit))
        return FakeConsumer(self._cluster, topics)


class FakeConsumer:
    def __init__(self, cluster: FakeCluster, topics: tuple[str, ...]) -> None:
        self._cluster, self._topics = cluster, topics

    async def __aenter__(self) -> FakeConsumer:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._cluster.calls.append(("left",))

    async def __aiter__(self) -> AsyncIterator[FakeGroupRecord]:
        for topic in self._topics:
            for one in self._cluster.records[topic]:
                fields = {name: getattr(one, name) for name in Record.__struct_fields__}
                yield FakeGroupRecord(**fields, cluster=self._cluster)

    async def flush(self) -> None:
        self._cluster.calls.append(("flushed",))


class FakeSubscription:
    def __init__(self, cluster: FakeCluster, topics: tuple[str, ...]) -> None:
        self._cluster, self._topics = cluster, topics

    async def __aenter__(self) -> FakeSubscription:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._cluster.calls.append(("unsubscribed",))

    async def batches(self) -> AsyncIterator[FakeBatch]:
        for name, records in self._cluster.records.items():
            if any(fnmatch.fnmatchcase(name, topic) for topic in self._topics):
                yield FakeBatch(records)
