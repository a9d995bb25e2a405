"""Groups over REST: each request is one call of the contract.

The annotations of a call are its declaration (`routing.call`), so they are not put off here.
"""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from angarium.api import (
    Checkpoint,
    GroupBroker,
    GroupConfig,
    GroupInfo,
    GroupPosition,
    Moved,
    Start,
    StartAt,
)
from angarium.doors.http.forms import GroupSettings, answer, chosen
from angarium.doors.http.record_json import Count, Partition
from angarium.doors.http.routing import call
from angarium.doors.http.settlement_json import SettledOut, SettlementIn, settled_out, settlement_of
from angarium.ids import Offset

OnlyTopic = Annotated[
    str | None, Meta(description="Only in this topic; without it, in all of them.")
]

_SEEK_STARTS: Final = {
    "earliest": StartAt.EARLIEST,
    "latest": StartAt.LATEST,
    "offset": StartAt.OFFSET,
    "time": StartAt.TIMESTAMP,
}

_groups: Final = partial(call, tag="groups")


@answer
class Groups(msgspec.Struct, frozen=True):
    """All groups, by name, with their lag and without their positions."""

    groups: tuple[GroupInfo, ...]


@answer
class Lag(msgspec.Struct, frozen=True):
    """How far a group is behind: what autoscalers ask."""

    group: str
    lag: int
    """Records that are not settled."""
    lag_ms: int
    """How long ago the oldest of them was appended."""
    positions: tuple[GroupPosition, ...]


class Seek(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a group shall go on."""

    to: Annotated[str, Meta(pattern=f"^({'|'.join(_SEEK_STARTS)})$")]
    value: Count = 0
    """The offset, or the time in microseconds since 1970."""
    topic: str | None = None
    partition: Partition | None = None
    dry_run: bool = False


@answer
class Moves(msgspec.Struct, frozen=True):
    """What a seek did, or would do."""

    moved: tuple[Moved, ...]


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a group shall be handed nothing more."""

    paused: bool = True


class Settlements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records to settle for a member that is connected elsewhere."""

    member: str
    settlements: Annotated[list[SettlementIn], Meta(min_length=1, max_length=10_000)]


class AllSettled(msgspec.Struct, frozen=True):
    """What became of each settlement, in their order."""

    settled: list[SettledOut]


class CheckpointIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a group of kind checkpoint has come in a partition."""

    topic: str
    partition: Partition
    offset: Count


class Checkpoints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a group of kind checkpoint has come."""

    checkpoints: Annotated[list[CheckpointIn], Meta(min_length=1, max_length=10_000)]


class GroupRoutes:
    """The requests about groups."""

    def __init__(self, broker: GroupBroker) -> None:
        self._broker = broker

    @_groups("GET /v1/groups", "List all groups.")
    async def list_groups(self) -> Groups:
        return Groups(await self._broker.list_groups())

    @_groups("GET /v1/groups/{group}", "Describe a group.")
    async def describe_group(self, group: str) -> GroupInfo:
        return await self._broker.describe_group(group)

    @_groups("GET /v1/groups/{group}/lag", "How far a group is behind, in records and in time.")
    async def group_lag(self, group: str) -> Lag:
        found = await self._broker.describe_group(group)
        return Lag(found.name, found.lag, found.lag_ms or 0, found.positions)

    @_groups("PUT /v1/groups/{group}/config", "Give a group other settings, all of them anew.")
    async def alter_group(self, group: str, body: GroupSettings) -> GroupInfo:
        return await self._broker.alter_group(group, chosen(GroupConfig, body))

    @_groups(
        "DELETE /v1/groups/{group}", "Forget a group that nobody takes part in.", errors=(409,)
    )
    async def delete_group(self, group: str, topic: OnlyTopic = None) -> None:
        await self._broker.delete_group(group, topic=topic)

    @_groups(
        "POST /v1/groups/{group}/seek", "Move a group; what is on loan is fenced.", errors=(416,)
    )
    async def seek_group(self, group: str, body: Seek) -> Moves:
        moved = await self._broker.seek_group(
            group,
            topic=body.topic,
            partition=body.partition,
            start=Start(_SEEK_STARTS[body.to], body.value),
            dry_run=body.dry_run,
        )
        return Moves(moved)

    @_groups("POST /v1/groups/{group}/pause", "Hand nothing more out, or go on.")
    async def pause_group(self, group: str, body: Pause) -> None:
        await self._broker.pause_group(group, paused=body.paused)

    @_groups(
        "POST /v1/groups/{group}/settle", "Settle records for a member that is connected elsewhere."
    )
    async def settle_records(self, group: str, body: Settlements) -> AllSettled:
        said = [settlement_of(one) for one in body.settlements]
        settled = await self._broker.settle(group, body.member, said)
        return AllSettled([settled_out(one) for one in settled])

    @_groups(
        "POST /v1/groups/{group}/checkpoints",
        "Say how far a group of kind checkpoint has come.",
        errors=(416,),
    )
    async def report_checkpoints(self, group: str, body: Checkpoints) -> None:
        await self._broker.report_checkpoints(
            group,
            [Checkpoint(one.topic, one.partition, Offset(one.offset)) for one in body.checkpoints],
        )
