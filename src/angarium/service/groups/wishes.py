"""What is wanted of a group in one partition, at its leader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, assert_never

from angarium.api import GroupConfig, Moved, Settled, Start, StartAt, Verb
from angarium.errors import AlreadyExists, AngariumError, GroupFenced, NotFound, PreconditionFailed
from angarium.ids import Offset
from angarium.kinds import GroupKind
from angarium.lending.configs import settings_of
from angarium.lending.ports import Opening
from angarium.machine import changes
from angarium.machine.outcomes import Refused
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations.members import (
    Alter,
    Forget,
    GroupWishHeader,
    Move,
    Report,
    Rest,
    SettleFor,
    WishDone,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.lending.changes import Fate
    from angarium.lending.host import GroupHost
    from angarium.lending.led_partition import LedPartition
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Outcome


class Wishes:
    """Grants what is wanted, where this node leads."""

    def __init__(self, host: GroupHost) -> None:
        self._host = host

    async def grant(self, header: GroupWishHeader) -> WishDone:
        """Carry out a wish; raises why it cannot be."""
        led = self._host.partition(header.topic, header.partition)
        name, wish = header.group, header.wish
        match wish:
            case Report():
                await self._report(led, name, wish)
            case Forget():
                await self._forget(led, name)
            case SettleFor():
                return WishDone(settled=await self._settle(led, name, wish))
            case Move():
                return WishDone(moved=(await self._move(led, name, wish),))
            case Alter():
                self._known(led, name)
                await self._change(led, changes.Set(name, settings_of(wish.config)))
            case Rest():
                self._known(led, name)
                await self._change(led, changes.Pause(name, wish.paused))
            case _:
                assert_never(wish)
        return WishDone()

    def _known(self, led: LedPartition, name: str) -> Group:
        group = led.replica.partition.machine.groups.by_name.get(name)
        if group is None:
            raise NotFound(f"there is no group {name} in {led.topic} {led.number}")
        return group

    async def _move(self, led: LedPartition, name: str, wish: Move) -> Moved:
        group = self._known(led, name)
        old, new = Offset(group.floor), led.offset_of(wish.start)
        if not wish.dry_run:
            await self._change(led, changes.Seek(name, new))
        return Moved(topic=led.topic, partition=led.number, old_floor=old, new_floor=new)

    async def _forget(self, led: LedPartition, name: str) -> None:
        active = led.groups.get(name)
        if active is not None and active.seats:
            who = ", ".join(sorted(active.seats)[:3])
            raise PreconditionFailed(f"the group {name} has members: {who}")
        if name in led.replica.partition.machine.groups.by_name:
            await self._change(led, changes.Delete(name))

    async def _report(self, led: LedPartition, name: str, wish: Report) -> None:
        group = led.replica.partition.machine.groups.by_name.get(name)
        if group is not None and not group.kind.keeps_own_offsets:
            raise AlreadyExists(f"the group {name} is of the kind {group.kind.name.lower()}")
        if group is None:
            opening = Opening(
                GroupKind.CHECKPOINT, GroupConfig(), Start(StartAt.OFFSET, wish.offset)
            )
            await _fate(lambda fate: led.open(name, opening, fate))
        elif group.floor != wish.offset:
            await self._change(led, changes.Seek(name, wish.offset))

    async def _settle(self, led: LedPartition, name: str, wish: SettleFor) -> tuple[Settled, ...]:
        active = led.groups.get(name)
        if active is None or wish.member not in active.seats:
            absent = f"{wish.member} is not a member of {name} here"
            return (Settled(0, GroupFenced.code, absent),) * len(wish.settlements)
        seat = active.seats[wish.member]
        future: asyncio.Future[Sequence[Settled]] = asyncio.get_running_loop().create_future()

        def told(settled: Sequence[Settled]) -> None:
            for said, answer in zip(wish.settlements, settled, strict=True):
                if said.verb is not Verb.EXTEND and not answer.code:
                    seat.sink.withdrawn(said.ranges)
            if not future.done():
                future.set_result(settled)

        seat.settle(wish.settlements, told)
        return tuple(await future)

    async def _change(self, led: LedPartition, change: changes.Change) -> Outcome:
        return await _fate(lambda fate: led.change(change, fate))


async def _fate(begin: Callable[[Fate], None]) -> Outcome:
    """Return the outcome of a change that is begun; a refusal is raised."""
    future: asyncio.Future[Outcome | AngariumError] = asyncio.get_running_loop().create_future()
    begin(lambda outcome: None if future.done() else future.set_result(outcome))
    outcome = await future
    if isinstance(outcome, AngariumError):
        raise outcome
    if isinstance(outcome, Refused):
        raise error_of(Failure(outcome.code, outcome.message))
    return outcome
