"""What is known of groups: from this node's own replicas, and put together from all nodes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from angarium.api import GroupInfo, GroupMember, GroupPosition
from angarium.delivery.retry_times import RetryTimes, retry_of
from angarium.errors import AngariumError
from angarium.ids import Micros, NodeId, Offset
from angarium.lending.configs import config_of
from angarium.wire.operations import Operation
from angarium.wire.operations.members import (
    GroupLookAnswer,
    GroupLookHeader,
    GroupSeen,
    MemberSeen,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import RaftGroupId
    from angarium.lending.host import GroupHost
    from angarium.lending.led_group import LedGroup
    from angarium.lending.led_partition import LedPartition
    from angarium.machine.catalog import Partition
    from angarium.machine.cursors import Group
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode

LEADER: Final = "a leader of the partition"
"""What a group waits for where no node that answered leads."""

ANSWER_S_MAX = 2.0
"""How long another node may take to say what it knows. Then others' word has to do."""


class Looking:
    """Sees groups wherever they are."""

    def __init__(self, node: OwnNode, host: GroupHost) -> None:
        self._node = node
        self._host = host

    # --- here -----------------------------------------------------------------------------------

    def seen_here(self, header: GroupLookHeader) -> tuple[GroupSeen, ...]:
        """Return what this node's replicas know of one group, or of all."""
        seen: list[GroupSeen] = []
        for raft_group, replica in self._node.replicas.here.items():
            known = self._node.catalog.partition_in(raft_group)
            if known is None:
                continue
            groups = replica.partition.machine.groups.by_name
            if header.group is None:
                seen += [self._seen(known, replica, one, header) for one in groups.values()]
            elif header.group in groups:
                seen.append(self._seen(known, replica, groups[header.group], header))
        return tuple(seen)

    def _seen(
        self,
        partition: Partition,
        replica: PartitionReplica,
        group: Group,
        header: GroupLookHeader,
    ) -> GroupSeen:
        topic = self._node.catalog.topic_of(partition).name
        led = self._host.led.get(partition.group)
        active = led.groups.get(group.name) if led is not None else None
        owner, on_loan = "", 0
        members: tuple[MemberSeen, ...] = ()
        if active is not None:
            owner, on_loan = active.delivery.owner, active.delivery.on_loan
            held = active.delivery.members
            members = tuple(
                MemberSeen(
                    name,
                    seat.membership.node,
                    held.get(name, 0),
                    not group.kind.is_ordered or name == owner,
                )
                for name, seat in sorted(active.seats.items())
            )
        position = None
        if header.with_positions:
            is_timed = header.group is not None  # a list of all groups reads no logs
            position = self._position(topic, partition.number, replica, group, is_timed=is_timed)
            position = replace(position, pending=on_loan, owner=owner)
            if is_timed and replica.may_serve:
                position = self._with_waiting(position, group, led, active)
        return GroupSeen(
            name=group.name,
            raft_group=partition.group,
            topic=topic,
            partition=partition.number,
            leads=replica.may_serve,
            kind=group.kind,
            config=config_of(group.settings),
            paused=group.paused,
            members=members,
            position=position,
        )

    def _with_waiting(
        self,
        position: GroupPosition,
        group: Group,
        led: LedPartition | None,
        active: LedGroup | None,
    ) -> GroupPosition:
        """Return the position with what deliveries wait for, as the leader knows."""
        now = self._node.now()
        if active is not None:
            waiting = active.waiting(now)
            if waiting is not None:
                return replace(position, waits_for=waiting.what, waits_until=waiting.until or None)
            return position
        times = RetryTimes(group) if led is None else led.retry_times(group)
        retry = times.soonest(now)
        if retry is None:
            return position
        until, offset = retry
        return replace(position, waits_for=retry_of(offset), waits_until=Micros(until))

    def _position(
        self, topic: str, number: int, replica: PartitionReplica, group: Group, *, is_timed: bool
    ) -> GroupPosition:
        log = replica.partition.log
        start, end = log.start_offset, log.end_offset
        first = max(group.floor, start)
        above = group.acked.count if end > first else 0
        lag = max(end - first - above, 0)
        lag_ms = 0
        if lag and is_timed:
            try:
                lag_ms = max(int(self._node.now() - log.time_at(Offset(first))) // 1_000, 0)
            except AngariumError:
                lag_ms = 0  # only a gap is left, or the disk cannot tell at the moment
        return GroupPosition(
            topic=topic,
            partition=number,
            floor=Offset(group.floor),
            start_offset=start,
            end_offset=end,
            acked_above=above,
            retrying=len(group.attempts),
            lag=lag,
            lag_ms=lag_ms,
            is_behind=group.is_behind(start),
        )

    # --- everywhere -----------------------------------------------------------------------------

    async def look(self, group: str | None, *, with_positions: bool) -> list[GroupSeen]:
        """Return what is known of one group or of all; of each partition the best word."""
        header = GroupLookHeader(group, with_positions)
        peers = [one for one in self._node.peers.ids if self._node.peers.is_up(one)]
        answers = await asyncio.gather(*(self._ask(peer, header) for peer in peers))
        best: dict[tuple[str, RaftGroupId], GroupSeen] = {}
        for seen in (self.seen_here(header), *answers):
            for one in seen:
                known = best.get((one.name, one.raft_group))
                # The leader knows; of the others, the one that has seen more.
                if known is None or (one.leads, _floor(one)) > (known.leads, _floor(known)):
                    best[one.name, one.raft_group] = one
        return [best[key] for key in sorted(best)]

    async def _ask(self, peer: NodeId, header: GroupLookHeader) -> tuple[GroupSeen, ...]:
        try:
            frame = await self._node.peers.request(
                peer, Operation.GROUP_LOOK, header, timeout_s=ANSWER_S_MAX
            )
            return frame.unpack(GroupLookAnswer).seen
        except AngariumError:
            return ()  # it went away, or is too busy; others have replicas, too


def joined(seen: Iterable[GroupSeen]) -> list[GroupInfo]:
    """Put what is known of each partition together, by group."""
    by_name: defaultdict[str, list[GroupSeen]] = defaultdict(list)
    for one in seen:
        by_name[one.name].append(one)
    return [_info(name, by_name[name]) for name in sorted(by_name)]


def _info(name: str, seen: list[GroupSeen]) -> GroupInfo:
    seen.sort(key=lambda one: (one.topic, one.partition))
    nodes: dict[str, NodeId] = {}
    pending: defaultdict[str, int] = defaultdict(int)
    partitions: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for one in seen:
        for member in one.members:
            nodes[member.name] = member.node
            pending[member.name] += member.pending
            if member.is_active:
                partitions[member.name].append((one.topic, one.partition))
    return GroupInfo(
        name=name,
        kind=seen[0].kind,
        config=seen[0].config,
        paused=any(one.paused for one in seen),
        members=tuple(
            GroupMember(
                name=member,
                node=nodes[member],
                partitions=tuple(partitions[member]),
                pending=pending[member],
            )
            for member in sorted(nodes)
        ),
        positions=tuple(_led(one, one.position) for one in seen if one.position is not None),
    )


def _led(seen: GroupSeen, position: GroupPosition) -> GroupPosition:
    """Return the position as it is shown: no leader knows it if none was there to say so."""
    return position if seen.leads else replace(position, waits_for=LEADER)


def _floor(seen: GroupSeen) -> int:
    return -1 if seen.position is None else seen.position.floor
