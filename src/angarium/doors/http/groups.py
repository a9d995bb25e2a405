"""Groups over REST: one call of the contract each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api import GroupConfig
from angarium.doors.http.answers import NOTHING, json_answer
from angarium.doors.http.forms import chosen
from angarium.doors.http.group_values import (
    AllSettled,
    Checkpoints,
    GroupOut,
    Groups,
    GroupSettings,
    Lag,
    Moves,
    Pause,
    Seek,
    Settlements,
    checkpoint_of,
    group_out,
    seek_start,
    settled_out,
    settlement_of,
)
from angarium.doors.http.routing import Routes
from angarium.doors.http.strict_json import json_body

if TYPE_CHECKING:
    from angarium.api import GroupBroker
    from angarium.doors.http.routing import NoParameters
    from angarium.wire.http.messages import Request, Response

_settings: Final = msgspec.json.Decoder(GroupSettings)
_seek: Final = msgspec.json.Decoder(Seek)
_pause: Final = msgspec.json.Decoder(Pause)
_settlements: Final = msgspec.json.Decoder(Settlements)
_checkpoints: Final = msgspec.json.Decoder(Checkpoints)


_groups: Final = Routes("groups")


class GroupParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which group."""

    group: str


class ForgetParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which group, and where."""

    group: str
    topic: str | None = None
    """Only in this topic; without it, in all of them."""


class GroupAdministration:
    """The requests about groups."""

    def __init__(self, broker: GroupBroker) -> None:
        self._broker = broker

    @_groups.get("/v1/groups", "List all groups.", answer=Groups)
    async def list_groups(self, _: Request, __: NoParameters) -> Response:
        groups = await self._broker.list_groups()
        return json_answer({"groups": [group_out(one) for one in groups]})

    @_groups.get(
        "/v1/groups/{group}", "Describe a group.", parameters=GroupParameters, answer=GroupOut
    )
    async def describe_group(self, _: Request, given: GroupParameters) -> Response:
        return json_answer(group_out(await self._broker.describe_group(given.group)))

    @_groups.get(
        "/v1/groups/{group}/lag",
        "How far a group is behind, in records and in time.",
        parameters=GroupParameters,
        answer=Lag,
    )
    async def group_lag(self, _: Request, given: GroupParameters) -> Response:
        group = await self._broker.describe_group(given.group)
        return json_answer(
            {
                "group": group.name,
                "lag": group.lag,
                "lag_ms": group.lag_ms or 0,
                "positions": group.positions,
            }
        )

    @_groups.put(
        "/v1/groups/{group}/config",
        "Give a group other settings, all of them anew.",
        parameters=GroupParameters,
        body=GroupSettings,
        answer=GroupOut,
        errors=(409,),
    )
    async def alter_group(self, request: Request, given: GroupParameters) -> Response:
        config = chosen(GroupConfig, json_body(request, _settings))
        return json_answer(group_out(await self._broker.alter_group(given.group, config)))

    @_groups.delete(
        "/v1/groups/{group}",
        "Forget a group that nobody takes part in.",
        parameters=ForgetParameters,
        errors=(409,),
    )
    async def delete_group(self, _: Request, given: ForgetParameters) -> Response:
        await self._broker.delete_group(given.group, topic=given.topic)
        return NOTHING

    @_groups.post(
        "/v1/groups/{group}/seek",
        "Move a group; what is on loan is fenced.",
        parameters=GroupParameters,
        body=Seek,
        answer=Moves,
        errors=(409, 416),
    )
    async def seek_group(self, request: Request, given: GroupParameters) -> Response:
        wish = json_body(request, _seek)
        moved = await self._broker.seek_group(
            given.group,
            topic=wish.topic,
            partition=wish.partition,
            start=seek_start(wish),
            dry_run=wish.dry_run,
        )
        return json_answer({"moved": moved})

    @_groups.post(
        "/v1/groups/{group}/pause",
        "Hand nothing more out, or go on.",
        parameters=GroupParameters,
        body=Pause,
        errors=(409,),
    )
    async def pause_group(self, request: Request, given: GroupParameters) -> Response:
        await self._broker.pause_group(given.group, paused=json_body(request, _pause).paused)
        return NOTHING

    @_groups.post(
        "/v1/groups/{group}/settle",
        "Settle records for a member that is connected elsewhere.",
        parameters=GroupParameters,
        body=Settlements,
        answer=AllSettled,
        errors=(409,),
    )
    async def settle_records(self, request: Request, given: GroupParameters) -> Response:
        wish = json_body(request, _settlements)
        settled = await self._broker.settle(
            given.group, wish.member, [settlement_of(one) for one in wish.settlements]
        )
        return json_answer(AllSettled(settled=[settled_out(one) for one in settled]))

    @_groups.post(
        "/v1/groups/{group}/checkpoints",
        "Say how far a group of kind checkpoint has come.",
        parameters=GroupParameters,
        body=Checkpoints,
        errors=(409, 416),
    )
    async def report_checkpoints(self, request: Request, given: GroupParameters) -> Response:
        wish = json_body(request, _checkpoints)
        await self._broker.report_checkpoints(
            given.group, [checkpoint_of(one) for one in wish.checkpoints]
        )
        return NOTHING
