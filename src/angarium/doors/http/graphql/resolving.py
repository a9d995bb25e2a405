"""What each field of the schema stands for: calls of the contract, and nothing else."""

from __future__ import annotations

import base64
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from angarium.api import FETCH_WAIT_MS_MAX, FetchRequest, GroupConfig, Start, StartAt, TopicConfig
from angarium.api.stored_records import fetched_records
from angarium.doors.http.graphql.access_fields import AccessFields
from angarium.doors.http.graphql.costs import RECORDS_MAX
from angarium.doors.http.graphql.derived_types import DOORS
from angarium.doors.http.graphql.operating_fields import OperatingFields
from angarium.doors.http.graphql.publish_fields import GraphqlPublishing
from angarium.doors.http.graphql.quota_fields import QuotaFields
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Offset
from angarium.wire.errors import UnsupportedOperation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from graphql import GraphQLResolveInfo

    from angarium.api import GroupBroker
    from angarium.api.administration import AdministrationBroker
    from angarium.batch import Record
    from angarium.doors.intake import Intake

C = TypeVar("C", bound=msgspec.Struct)


class HeaderView:
    """A header, as the schema shows it."""

    __slots__ = ("_content", "name")

    def __init__(self, name: str, content: bytes | None) -> None:
        self.name = name
        self._content = content

    value = property(lambda self: text_of(self._content))
    value_base64 = property(lambda self: base64_of(self._content))


class RecordView:
    """A record, as the schema shows it."""

    __slots__ = ("_record", "partition")

    def __init__(self, record: Record, partition: int) -> None:
        self._record = record
        self.partition = partition

    offset = property(lambda self: self._record.offset)
    value = property(lambda self: text_of(self._record.value))
    value_base64 = property(lambda self: base64_of(self._record.value))
    key = property(lambda self: text_of(self._record.key))
    key_base64 = property(lambda self: base64_of(self._record.key))
    headers = property(lambda self: [HeaderView(*one) for one in self._record.headers])
    timestamp_us = property(lambda self: self._record.timestamp)
    append_time_us = property(lambda self: self._record.append_time)


class Page(NamedTuple):
    """Records, and where to go on."""

    records: list[RecordView]
    next_offset: int
    start_offset: int
    end_offset: int
    node: int
    region: str
    staleness_ms: int


class Resolvers(AccessFields, QuotaFields, OperatingFields):
    """The fields of Query and Mutation: each is the method of its name."""

    def __init__(
        self, intake: Intake, groups: GroupBroker | None, access: AdministrationBroker | None = None
    ) -> None:
        super().__init__(access)
        self._broker = intake.broker
        self._groups = groups
        self._shapes = intake.shapes
        publishing = self.publishing = GraphqlPublishing(intake)
        self.publish = publishing.publish
        self.publish_batch = publishing.publish_batch

    def resolve(self, source: object, info: GraphQLResolveInfo[Any], **arguments: Any) -> object:
        """Return what a field stands for; the roots have none but these."""
        if source is not None:
            return shown(source, info.field_name)
        given = {snake(name): value for name, value in arguments.items()}
        return self.field(info.field_name)(**given)

    def field(self, name: str) -> Callable[..., Awaitable[object]]:
        """Return what resolves a field of a root; a valid document asks for no other."""
        found: Callable[..., Awaitable[object]] = getattr(self, snake(name))
        return found

    # --- queries --------------------------------------------------------------------------------

    async def health(self) -> str:
        return "ok"

    async def topics(self) -> object:
        return await self._broker.list_topics()

    async def topic(self, name: str) -> object:
        try:
            return await self._broker.describe_topic(name)
        except NotFound:
            return None

    async def records(
        self,
        topic: str,
        partition: int,
        offset: int,
        limit: int,
        wait_ms: int,
        fresh: bool,
        at_least: int | None = None,
        max_staleness_ms: int | None = None,
    ) -> Page:
        if not 1 <= limit <= RECORDS_MAX or not 0 <= wait_ms <= FETCH_WAIT_MS_MAX or offset < 0:
            raise InvalidArgument(
                f"limit is from 1 to {RECORDS_MAX}, waitMs up to {FETCH_WAIT_MS_MAX},"
                " offset from 0 on"
            )
        wanted = FetchRequest(
            topic=topic,
            partition=partition,
            offset=Offset(offset),
            wait_ms=wait_ms,
            fresh=fresh,
            at_least=None if at_least is None else Offset(at_least),
            max_staleness_ms=max_staleness_ms,
        )
        result = await self._broker.fetch(wanted)
        records, after = fetched_records(result, wanted, limit=limit)
        views = [RecordView(one, partition) for one in records]
        return Page(
            views,
            after,
            result.start_offset,
            result.end_offset,
            result.node,
            result.region,
            result.staleness_ms,
        )

    async def status(self) -> object:
        return await self._broker.cluster_status()

    # --- topics ---------------------------------------------------------------------------------

    async def create_topic(
        self, name: str, partitions: int, config: dict[str, Any] | None = None
    ) -> object:
        topic = await self._broker.create_topic(
            name, partitions=partitions, config=_chosen(TopicConfig, config or {})
        )
        self._shapes.forget(name)
        return topic

    async def alter_topic(
        self, name: str, partitions: int | None = None, config: dict[str, Any] | None = None
    ) -> object:
        settings = None if config is None else _chosen(TopicConfig, config)
        topic = await self._broker.alter_topic(name, partitions=partitions, config=settings)
        self._shapes.forget(name)
        return topic

    async def delete_topic(self, name: str) -> bool:
        await self._broker.delete_topic(name)
        self._shapes.forget(name)
        return True

    # --- groups ---------------------------------------------------------------------------------

    @property
    def _group_broker(self) -> GroupBroker:
        if self._groups is None:
            raise UnsupportedOperation("groups are not served here")
        return self._groups

    async def groups(self) -> object:
        return await self._group_broker.list_groups()

    async def group(self, name: str) -> object:
        try:
            return await self._group_broker.describe_group(name)
        except NotFound:
            return None

    async def alter_group(self, name: str, config: dict[str, Any]) -> object:
        return await self._group_broker.alter_group(name, _chosen(GroupConfig, config))

    async def seek_group(
        self,
        name: str,
        to: str,
        value: int,
        dry_run: bool,
        topic: str | None = None,
        partition: int | None = None,
    ) -> object:
        start = Start(StartAt.TIMESTAMP if to == "TIME" else StartAt[to], value)
        return await self._group_broker.seek_group(
            name, topic=topic, partition=partition, start=start, dry_run=dry_run
        )

    async def pause_group(self, name: str, paused: bool) -> bool:
        await self._group_broker.pause_group(name, paused=paused)
        return True

    async def delete_group(self, name: str, topic: str | None = None) -> bool:
        await self._group_broker.delete_group(name, topic=topic)
        return True


def shown(source: object, name: str) -> object:
    """Return a field of a value: its attribute, in the schema's terms."""
    if name in DOORS:
        addresses: dict[str, str] = source.addresses  # type: ignore[attr-defined]
        return addresses.get(name)
    value = getattr(source, snake(name))
    return value.name if isinstance(value, Enum) else value


@cache  # of as many names as the schema has: valid documents ask for no others
def snake(name: str) -> str:
    """Return a name of the schema as Python has it."""
    letters = "".join(f"_{one.lower()}" if one.isupper() else one for one in name)
    return _TIMES.get(letters, letters)


_TIMES: Final = {
    "created_at_us": "created_at",
    "until_us": "until",
    "since_us": "since",
    "begun_at_us": "begun_at",
    "started_at_us": "started_at",
    "waits_until_us": "waits_until",
}
"""Times of the contract, which have their unit in their names in the schema."""


def _chosen(kind: type[C], given: dict[str, Any]) -> C:
    """Return settings; what is null has its default, and the contract knows the choices' words."""
    return kind(**{snake(name): value for name, value in given.items() if value is not None})


def text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def base64_of(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
