"""What each field of the schema stands for: calls of the contract, and nothing else."""

from __future__ import annotations

import base64
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from angarium.api import FetchRequest, GroupConfig, Start, StartAt, TopicConfig
from angarium.doors.feeds.records import readable, records_of
from angarium.doors.http.graphql.measuring import RECORDS_MAX
from angarium.doors.http.graphql.publishing import GraphqlPublishing
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Offset
from angarium.wire.errors import UnsupportedOperation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from graphql import GraphQLResolveInfo

    from angarium.api import GroupBroker
    from angarium.batch import Record
    from angarium.doors.intake import Intake

C = TypeVar("C", bound=msgspec.Struct)

WAIT_MS_MAX: Final = 30_000

_SNAKE: Final[dict[str, str]] = {}
"""Names of the schema, as Python has them; as many as the schema has."""


class HeaderView(NamedTuple):
    """A header, as the schema shows it."""

    name: str
    content: bytes | None

    @property
    def value(self) -> str | None:
        return _text(self.content)

    @property
    def value_base64(self) -> str | None:
        return _base64(self.content)


class RecordView:
    """A record, as the schema shows it."""

    __slots__ = ("_record", "partition")

    def __init__(self, record: Record, partition: int) -> None:
        self._record = record
        self.partition = partition

    @property
    def offset(self) -> int:
        return self._record.offset

    @property
    def value(self) -> str | None:
        return _text(self._record.value)

    @property
    def value_base64(self) -> str | None:
        return _base64(self._record.value)

    @property
    def key(self) -> str | None:
        return _text(self._record.key)

    @property
    def key_base64(self) -> str | None:
        return _base64(self._record.key)

    @property
    def headers(self) -> list[HeaderView]:
        return [HeaderView(*one) for one in self._record.headers]

    @property
    def timestamp_us(self) -> int:
        return self._record.timestamp

    @property
    def append_time_us(self) -> int:
        return self._record.append_time


class Page(NamedTuple):
    """Records, and where to go on."""

    records: list[RecordView]
    next_offset: int
    start_offset: int
    end_offset: int


class Resolvers:
    """The fields of Query and Mutation, by their names."""

    def __init__(self, intake: Intake, groups: GroupBroker | None) -> None:
        self._broker = intake.broker
        self._groups = groups
        self._shapes = intake.shapes
        publishing = self.publishing = GraphqlPublishing(intake)
        self.fields: dict[str, Callable[..., Awaitable[object]]] = {
            "health": self._health,
            "topics": self._topics,
            "topic": self._topic,
            "records": self._records,
            "groups": self._list_groups,
            "group": self._group,
            "status": self._status,
            "publish": publishing.publish,
            "publishBatch": publishing.publish_batch,
            "createTopic": self._create_topic,
            "alterTopic": self._alter_topic,
            "deleteTopic": self._delete_topic,
            "alterGroup": self._alter_group,
            "seekGroup": self._seek_group,
            "pauseGroup": self._pause_group,
            "deleteGroup": self._delete_group,
        }

    def resolve(self, source: object, info: GraphQLResolveInfo[Any], **arguments: Any) -> object:
        """Return what a field stands for; the roots have none but these."""
        if source is None:
            return self.fields[info.field_name](**arguments)
        return shown(source, info.field_name)

    # --- queries --------------------------------------------------------------------------------

    async def _health(self) -> str:
        return "ok"

    async def _topics(self) -> object:
        return await self._broker.list_topics()

    async def _topic(self, name: str) -> object:
        try:
            return await self._broker.describe_topic(name)
        except NotFound:
            return None

    async def _records(
        self,
        topic: str,
        partition: int,
        offset: int,
        limit: int,
        waitMs: int,  # noqa: N803  (the schema's name)
        fresh: bool,
    ) -> Page:
        if not 1 <= limit <= RECORDS_MAX or not 0 <= waitMs <= WAIT_MS_MAX or offset < 0:
            raise InvalidArgument(
                f"limit is from 1 to {RECORDS_MAX}, waitMs up to {WAIT_MS_MAX}, offset from 0 on"
            )
        result = await self._broker.fetch(
            FetchRequest(
                topic=topic,
                partition=partition,
                offset=Offset(offset),
                wait_ms=waitMs,
                fresh=fresh,
            )
        )
        records: list[RecordView] = []
        after = offset
        for buffer in result.batches:
            batch = readable(buffer, topic=topic, partition=partition)
            for one in records_of(batch, from_offset=Offset(offset), expired=result.expired):
                if len(records) == limit:
                    return Page(records, one.offset, result.start_offset, result.end_offset)
                records.append(RecordView(one, partition))
            after = max(after, batch.next_offset)
        return Page(records, after, result.start_offset, result.end_offset)

    async def _status(self) -> object:
        return await self._broker.cluster_status()

    # --- topics ---------------------------------------------------------------------------------

    async def _create_topic(
        self, name: str, partitions: int, config: dict[str, Any] | None = None
    ) -> object:
        topic = await self._broker.create_topic(
            name, partitions=partitions, config=_chosen(TopicConfig, config or {})
        )
        self._shapes.forget(name)
        return topic

    async def _alter_topic(
        self, name: str, partitions: int | None = None, config: dict[str, Any] | None = None
    ) -> object:
        topic = await self._broker.alter_topic(
            name,
            partitions=partitions,
            config=None if config is None else _chosen(TopicConfig, config),
        )
        self._shapes.forget(name)
        return topic

    async def _delete_topic(self, name: str) -> bool:
        await self._broker.delete_topic(name)
        self._shapes.forget(name)
        return True

    # --- groups ---------------------------------------------------------------------------------

    @property
    def _group_broker(self) -> GroupBroker:
        if self._groups is None:
            raise UnsupportedOperation("groups are not served here")
        return self._groups

    async def _list_groups(self) -> object:
        return await self._group_broker.list_groups()

    async def _group(self, name: str) -> object:
        try:
            return await self._group_broker.describe_group(name)
        except NotFound:
            return None

    async def _alter_group(self, name: str, config: dict[str, Any]) -> object:
        return await self._group_broker.alter_group(name, _chosen(GroupConfig, config))

    async def _seek_group(
        self,
        name: str,
        to: str,
        value: int,
        dryRun: bool,  # noqa: N803  (the schema's name)
        topic: str | None = None,
        partition: int | None = None,
    ) -> object:
        place = StartAt.TIMESTAMP if to == "TIME" else StartAt[to]
        return await self._group_broker.seek_group(
            name, topic=topic, partition=partition, start=Start(place, value), dry_run=dryRun
        )

    async def _pause_group(self, name: str, paused: bool) -> bool:
        await self._group_broker.pause_group(name, paused=paused)
        return True

    async def _delete_group(self, name: str, topic: str | None = None) -> bool:
        await self._group_broker.delete_group(name, topic=topic)
        return True


def shown(source: object, name: str) -> object:
    """Return a field of a value: its attribute, in the schema's terms."""
    if name in {"wire", "grpc", "http"}:
        addresses: dict[str, str] = source.addresses  # type: ignore[attr-defined]
        return addresses.get(name)
    value = getattr(source, _snake(name))
    if isinstance(value, IntEnum):
        return value.name
    return value


def _snake(name: str) -> str:
    found = _SNAKE.get(name)
    if found is None:
        letters = "".join(f"_{one.lower()}" if one.isupper() else one for one in name)
        # base64 and created_at_us are one word each there.
        found = {"created_at_us": "created_at"}.get(letters, letters)
        _SNAKE[name] = found
    return found


def _chosen(kind: type[C], given: dict[str, Any]) -> C:
    """Return settings; what is null has its default, and the contract knows the choices' words."""
    return kind(**{_snake(name): value for name, value in given.items() if value is not None})


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
