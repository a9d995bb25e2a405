"""A broker in memory that has no groups: every call about one ends as for an unknown one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from angarium.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import (
        Checkpoint,
        ConsumeRequest,
        Consumption,
        GroupConfig,
        GroupInfo,
        Moved,
        Settled,
        Settlement,
        Start,
    )


class MemoryGroups:
    """Implements `angarium.api.GroupBroker`."""

    async def consume(self, request: ConsumeRequest) -> Consumption:
        _unknown(request.group)

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        del member, settlements
        _unknown(group)

    async def list_groups(self) -> tuple[GroupInfo, ...]:
        return ()

    async def describe_group(self, group: str) -> GroupInfo:
        _unknown(group)

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        del config
        _unknown(group)

    async def seek_group(
        self,
        group: str,
        *,
        topic: str | None,
        partition: int | None,
        start: Start,
        dry_run: bool,
    ) -> tuple[Moved, ...]:
        del topic, partition, start, dry_run
        _unknown(group)

    async def pause_group(self, group: str, *, paused: bool) -> None:
        del paused
        _unknown(group)

    async def delete_group(self, group: str, *, topic: str | None) -> None:
        del topic
        _unknown(group)

    async def report_checkpoints(self, group: str, checkpoints: Sequence[Checkpoint]) -> None:
        del checkpoints
        _unknown(group)


def _unknown(group: str) -> NoReturn:
    raise NotFound(f"there is no group {group!r}")
