"""Looking after groups: the part of the contract that is about them, over the wire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api import GroupConfig, GroupInfo
from angarium.client.reading.starts import start_in
from angarium.wire.operations import (
    AlterGroupHeader,
    DeleteGroupHeader,
    GroupHeader,
    GroupsAnswer,
    Operation,
    PauseGroupHeader,
    ReportCheckpointsHeader,
    SeekGroupAnswer,
    SeekGroupHeader,
    SettleAnswer,
    SettleHeader,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Checkpoint, Moved, Settled, Settlement
    from angarium.client.reach import Reach
    from angarium.client.reading.starts import StartLike


class GroupAdministration(ABC):
    """What a client can do with groups besides taking part in them. All of it may be repeated."""

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def list_groups(self) -> tuple[GroupInfo, ...]:
        """Return all groups, by name, with their lag and without their positions."""
        frame = await self._reach.calls.ask(Operation.LIST_GROUPS)
        return frame.unpack(GroupsAnswer).groups

    async def describe_group(self, group: str) -> GroupInfo:
        """Return a group's members and where it stands in each partition; `NotFound`."""
        frame = await self._reach.calls.ask(Operation.DESCRIBE_GROUP, GroupHeader(group))
        return frame.unpack(GroupInfo)

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        """Give a group other settings."""
        frame = await self._reach.calls.ask(Operation.ALTER_GROUP, AlterGroupHeader(group, config))
        return frame.unpack(GroupInfo)

    async def seek_group(
        self,
        group: str,
        start: StartLike,
        *,
        topic: str | None = None,
        partition: int | None = None,
        dry_run: bool = False,
    ) -> tuple[Moved, ...]:
        """Move a group, in all its partitions or in some; return where from and where to.

        What its consumers hold is fenced, and what it acknowledged above the new position is
        forgotten. With `dry_run` nothing moves.
        """
        header = SeekGroupHeader(group, topic, partition, start_in(start, partition or 0), dry_run)
        frame = await self._reach.calls.ask(Operation.SEEK_GROUP, header)
        return frame.unpack(SeekGroupAnswer).moved

    async def pause_group(self, group: str, *, paused: bool = True) -> None:
        """Hand nothing more out to a group's consumers, or go on."""
        await self._reach.calls.ask(Operation.PAUSE_GROUP, PauseGroupHeader(group, paused))

    async def resume_group(self, group: str) -> None:
        """Go on with a group that was paused."""
        await self.pause_group(group, paused=False)

    async def delete_group(self, group: str, *, topic: str | None = None) -> None:
        """Forget a group, or its part in one topic; `PreconditionFailed` while it is in use."""
        await self._reach.calls.ask(
            Operation.DELETE_GROUP, DeleteGroupHeader(group, topic), may_repeat=False
        )

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        """Settle records for a member, request by request; consumers do it over their stream."""
        header = SettleHeader(group, member, tuple(settlements))
        return (await self._reach.calls.ask(Operation.SETTLE, header)).read(SettleAnswer).settled

    async def report_checkpoints(
        self, group: str, checkpoints: Sequence[Checkpoint], *, timeout_s: float | None = None
    ) -> None:
        """Say how far a group that keeps its own offsets has come, so that its lag is visible."""
        header = ReportCheckpointsHeader(group, tuple(checkpoints))
        await self._reach.calls.ask(Operation.REPORT_CHECKPOINTS, header, timeout_s=timeout_s)
