"""Groups over REST: one call of the contract each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.doors.http.answers import NOTHING, json_answer
from angarium.doors.http.group_values import (
    AllSettled,
    Checkpoints,
    GroupOut,
    Groups,
    GroupSettings,
    Lag,
    MoveOut,
    Moves,
    Pause,
    Seek,
    Settlements,
    checkpoint_of,
    group_config,
    group_out,
    position_out,
    seek_start,
    settled_out,
    settlement_of,
)
from angarium.doors.http.routing import Routes
from angarium.doors.http.strict_json import json_body

if TYPE_CHECKING:
    from angarium.api import GroupBroker
    from angarium.doors.http.routing import NoParameters, Route
    from angarium.doors.http.server.messages import Request, Response

_settings: Final = msgspec.json.Decoder(GroupSettings)
_seek: Final = msgspec.json.Decoder(Seek)
_pause: Final = msgspec.json.Decoder(Pause)
_settlements: Final = msgspec.json.Decoder(Settlements)
_checkpoints: Final = msgspec.json.Decoder(Checkpoints)


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

    async def list_groups(self, _: Request, __: NoParameters) -> Response:
        """Return all groups."""
        groups = await self._broker.list_groups()
        return json_answer(Groups(groups=[group_out(one) for one in groups]))

    async def describe_group(self, _: Request, given: GroupParameters) -> Response:
        """Return one group."""
        return json_answer(group_out(await self._broker.describe_group(given.group)))

    async def group_lag(self, _: Request, given: GroupParameters) -> Response:
        """Return how far a group is behind."""
        group = await self._broker.describe_group(given.group)
        return json_answer(
            Lag(
                group=group.name,
                lag=group.lag,
                lag_ms=max((one.lag_ms for one in group.positions), default=0),
                positions=[position_out(one) for one in group.positions],
            )
        )

    async def alter_group(self, request: Request, given: GroupParameters) -> Response:
        """Give a group other settings."""
        config = group_config(json_body(request, _settings))
        return json_answer(group_out(await self._broker.alter_group(given.group, config)))

    async def delete_group(self, _: Request, given: ForgetParameters) -> Response:
        """Forget a group."""
        await self._broker.delete_group(given.group, topic=given.topic)
        return NOTHING

    async def seek_group(self, request: Request, given: GroupParameters) -> Response:
        """Move a group."""
        wish = json_body(request, _seek)
        moved = await self._broker.seek_group(
            given.group,
            topic=wish.topic,
            partition=wish.partition,
            start=seek_start(wish),
            dry_run=wish.dry_run,
        )
        return json_answer(
            Moves(
                moved=[
                    MoveOut(
                        topic=one.topic,
                        partition=one.partition,
                        old_floor=one.old_floor,
                        new_floor=one.new_floor,
                    )
                    for one in moved
                ]
            )
        )

    async def pause_group(self, request: Request, given: GroupParameters) -> Response:
        """Hand nothing more out, or go on."""
        await self._broker.pause_group(given.group, paused=json_body(request, _pause).paused)
        return NOTHING

    async def settle_records(self, request: Request, given: GroupParameters) -> Response:
        """Settle records for a member that is connected elsewhere."""
        wish = json_body(request, _settlements)
        settled = await self._broker.settle(
            given.group, wish.member, [settlement_of(one) for one in wish.settlements]
        )
        return json_answer(AllSettled(settled=[settled_out(one) for one in settled]))

    async def report_checkpoints(self, request: Request, given: GroupParameters) -> Response:
        """Say how far a group of kind checkpoint has come."""
        wish = json_body(request, _checkpoints)
        await self._broker.report_checkpoints(
            given.group, [checkpoint_of(one) for one in wish.checkpoints]
        )
        return NOTHING

    def routes(self) -> list[Route]:
        """Return where all of this is."""
        group = "/v1/groups/{group}"
        which = {"parameters": GroupParameters}
        add = Routes("groups")
        add.get("/v1/groups", self.list_groups, "List all groups.", answer=Groups)
        add.get(group, self.describe_group, "Describe a group.", **which, answer=GroupOut)
        add.get(
            f"{group}/lag",
            self.group_lag,
            "How far a group is behind, in records and in time.",
            **which,
            answer=Lag,
        )
        add.put(
            f"{group}/config",
            self.alter_group,
            "Give a group other settings, all of them anew.",
            **which,
            body=GroupSettings,
            answer=GroupOut,
            errors=(409,),
        )
        add.delete(
            group,
            self.delete_group,
            "Forget a group that nobody takes part in.",
            parameters=ForgetParameters,
            errors=(409,),
        )
        add.post(
            f"{group}/seek",
            self.seek_group,
            "Move a group; what is on loan is fenced.",
            **which,
            body=Seek,
            answer=Moves,
            errors=(409, 416),
        )
        add.post(
            f"{group}/pause",
            self.pause_group,
            "Hand nothing more out, or go on.",
            **which,
            body=Pause,
            errors=(409,),
        )
        add.post(
            f"{group}/settle",
            self.settle_records,
            "Settle records for a member that is connected elsewhere.",
            **which,
            body=Settlements,
            answer=AllSettled,
            errors=(409,),
        )
        add.post(
            f"{group}/checkpoints",
            self.report_checkpoints,
            "Say how far a group of kind checkpoint has come.",
            **which,
            body=Checkpoints,
            errors=(409, 416),
        )
        return add.found
