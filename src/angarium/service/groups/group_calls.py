"""Groups behind the contract: checks what is asked, and finds the node that can do it."""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from angarium.api import GroupConfig, GroupInfo, Moved, Settled
from angarium.api.dead_letters import DEAD_LETTERS
from angarium.api.groups import SETTLEMENTS_MAX
from angarium.api.reading import check_start
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    NotLeader,
    TooLarge,
)
from angarium.kinds import GroupKind
from angarium.lending.configs import settings_of
from angarium.lending.ports import Membership, Opening
from angarium.machine.partition_limits import NAME_CHARACTERS_MAX
from angarium.service.groups.consumer_limits import CONSUMERS_MAX, CREDIT_MAX, TOPICS_MAX
from angarium.service.groups.consumption import LocalConsumption
from angarium.service.groups.dead_letters import found_or_made
from angarium.service.groups.hosting import Hosting
from angarium.service.groups.looking import Looking, joined
from angarium.service.groups.wishes import Wishes
from angarium.service.makers import current_maker
from angarium.service.partitions import named_leader
from angarium.wire import Unreachable
from angarium.wire.operations import Operation
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
    from collections.abc import Sequence

    from angarium.api import Checkpoint, ConsumeRequest, Settlement, Start
    from angarium.ids import NodeId
    from angarium.service.own_node import OwnNode
    from angarium.service.publishing import Publisher
    from angarium.service.topics import Topics
    from angarium.wire.operations.members import GroupSeen, Wish

RETRY_PAUSE_S = 0.05
"""How long a wish waits while a partition has no leader, again and again until its deadline."""


class GroupCalls:
    """Implements `api.GroupBroker` on a node."""

    def __init__(self, node: OwnNode, topics: Topics, publishing: Publisher) -> None:
        self.hosting = Hosting(node, topics, publishing)
        self.host = self.hosting.host
        self.looking = Looking(node, self.host)
        self.wishes = Wishes(self.host)
        self._node = node
        self._topics = topics
        self._consumptions: dict[tuple[str, str], LocalConsumption] = {}

    async def run(self) -> None:
        """Serve groups until cancelled; then consumers are told to go elsewhere."""
        try:
            await self.hosting.run()
        finally:
            for consumption in list(self._consumptions.values()):
                consumption.break_off(Unreachable("the node is stopping"))

    # --- consuming ------------------------------------------------------------------------------

    async def consume(self, request: ConsumeRequest) -> LocalConsumption:
        """Take part in a group, which is made on first use."""
        _check(request)
        if len(self._consumptions) >= CONSUMERS_MAX:
            raise LimitExceeded("CONSUMERS_MAX", f"node {self._node.id} has {CONSUMERS_MAX}")
        for name in request.topics:
            await self._topics.find(name)
        seen = await self.looking.look(request.group, with_positions=False)
        opening = opening_of(request, seen)
        if not seen:
            await self._have_letters_topic(opening.config)
        member = request.member or f"member-{self._node.id}-{secrets.token_hex(6)}"
        topics = tuple(sorted(set(request.topics)))
        membership = Membership(request.group, member, self._node.id, self._node.now(), topics)
        earlier = self._consumptions.get((request.group, member))
        if earlier is not None:
            earlier.superseded()
        consumption = LocalConsumption(
            self._node,
            self.host,
            membership,
            opening,
            credit=request.credit,
            on_end=self._ended,
        )
        self._consumptions[request.group, member] = consumption
        held: defaultdict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
        for one in request.held:
            for start, end in zip(one.ranges[::2], one.ranges[1::2], strict=True):
                held[one.topic, one.partition].append((start, end, one.attempt))
        await consumption.begin(held, known_in={one.topic for one in seen if one.leads})
        return consumption

    async def _have_letters_topic(self, config: GroupConfig) -> None:
        """Create a dead-letter topic of the group's own, if it counts for the principal that names
        it: a leader creates it for the first letter otherwise, and knows no principal."""
        maker = current_maker()
        if maker is not None and config.dead_letter_topic != DEAD_LETTERS:
            await found_or_made(self._node, self._topics, config.dead_letter_topic, maker=maker)

    def _ended(self, consumption: LocalConsumption) -> None:
        key = (consumption.membership.group, consumption.membership.member)
        if self._consumptions.get(key) is consumption:
            del self._consumptions[key]

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        """Settle records for a member, wherever it is connected."""
        if len(settlements) > SETTLEMENTS_MAX:
            said = f"{len(settlements)} settlements at once; {SETTLEMENTS_MAX} are taken"
            raise TooLarge("SETTLEMENTS_MAX", said)
        here = self._consumptions.get((group, member))
        if here is not None:
            return await here.settle(settlements)
        by_partition: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for row, one in enumerate(settlements):
            by_partition[one.topic, one.partition].append(row)
        answers: list[Settled] = [Settled()] * len(settlements)

        async def one_partition(topic: str, partition: int, rows: list[int]) -> None:
            wish = SettleFor(member, tuple(settlements[row] for row in rows))
            try:
                settled = (await self._wish(group, topic, partition, wish)).settled
            except AngariumError as error:
                settled = (Settled(0, error.code, str(error)),) * len(rows)
            for row, answer in zip(rows, settled, strict=True):
                answers[row] = answer

        await asyncio.gather(*(one_partition(*one, rows) for one, rows in by_partition.items()))
        return tuple(answers)

    # --- looking after groups -------------------------------------------------------------------

    async def list_groups(self) -> tuple[GroupInfo, ...]:
        """Return all groups, by name, with their lag and without their positions."""
        found = joined(await self.looking.look(None, with_positions=True))
        return tuple(replace(one, positions=(), listed_lag=one.lag) for one in found)

    async def describe_group(self, group: str) -> GroupInfo:
        """Return one group; `NotFound`."""
        seen = await self._find(group, with_positions=True)
        return joined(seen)[0]

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        """Give a group other settings."""
        settings_of(config)
        seen = await self._find(group)
        await self._have_letters_topic(config)
        await self._everywhere(seen, Alter(config))
        return await self.describe_group(group)

    async def seek_group(
        self,
        group: str,
        *,
        topic: str | None,
        partition: int | None,
        start: Start,
        dry_run: bool,
    ) -> tuple[Moved, ...]:
        """Move a group."""
        if topic is None and partition is not None:
            raise InvalidArgument("name the topic of the partition")
        check_start(start)
        seen = [
            one
            for one in await self._find(group)
            if topic in {None, one.topic} and partition in {None, one.partition}
        ]
        if not seen:
            where = topic if partition is None else f"{topic} {partition}"
            raise NotFound(f"the group {group} has not consumed {where}")
        done = await self._everywhere(seen, Move(start, dry_run))
        return tuple(moved for one in done for moved in one.moved)

    async def pause_group(self, group: str, *, paused: bool) -> None:
        """Hand nothing more out, or go on."""
        await self._everywhere(await self._find(group), Rest(paused))

    async def delete_group(self, group: str, *, topic: str | None) -> None:
        """Forget a group; `PreconditionFailed` while somebody takes part in it."""
        seen = [one for one in await self._find(group) if topic in {None, one.topic}]
        if not seen:
            raise NotFound(f"the group {group} has not consumed {topic}")
        for one in seen:
            if one.members:
                # Looked at first everywhere, so that nothing is deleted in part.
                await self._wish(group, one.topic, one.partition, Forget())
        await self._everywhere(seen, Forget())

    async def report_checkpoints(self, group: str, checkpoints: Sequence[Checkpoint]) -> None:
        """Say how far a group of kind CHECKPOINT has come; it is made on first use."""
        _check_name(group, "a group's name")
        await asyncio.gather(
            *(
                self._wish(group, one.topic, one.partition, Report(one.offset))
                for one in checkpoints
            )
        )

    async def _find(self, group: str, *, with_positions: bool = False) -> list[GroupSeen]:
        seen = await self.looking.look(group, with_positions=with_positions)
        if not seen:
            raise NotFound(f"there is no group {group!r}")
        return seen

    async def _everywhere(self, seen: list[GroupSeen], wish: Wish) -> list[WishDone]:
        return list(
            await asyncio.gather(
                *(self._wish(one.name, one.topic, one.partition, wish) for one in seen)
            )
        )

    async def _wish(self, group: str, topic: str, partition: int, wish: Wish) -> WishDone:
        """Have a wish granted by the leader, waiting for a leader if need be."""
        found = await self._topics.partition(topic, partition)
        header = GroupWishHeader(group, topic, partition, wish)
        deadline = asyncio.get_running_loop().time() + self._node.config.request_timeout_s
        named: NodeId | None = None
        while True:
            try:
                if self._node.replicas.leading(found.group) is not None:
                    return await self.wishes.grant(header)
                leader = await self._topics.leader(found, named=named)
                frame = await self._node.peers.request(
                    leader,
                    Operation.GROUP_WISH,
                    header,
                    timeout_s=self._node.config.request_timeout_s,
                )
                return frame.read(WishDone)
            except (NotLeader, Unreachable) as error:
                named = named_leader(error)
                # Definite: nothing has changed, so it may be said again.
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(RETRY_PAUSE_S)


def opening_of(request: ConsumeRequest, seen: Sequence[GroupSeen]) -> Opening:
    """Return what the group is, or what it is to be; raises `AlreadyExists` for another kind.

    What leaders say counts more than what other replicas say, which may lag behind.
    """
    if not seen:
        kind = GroupKind.QUEUE if request.kind is None else request.kind
        return Opening(kind, request.config or GroupConfig(), request.start)
    known = next((one for one in seen if one.leads), seen[0])
    kind = known.kind if request.kind is None else request.kind
    for one in seen:
        if one.leads and one.topic in request.topics and one.kind is not kind:
            is_kind = one.kind.name.lower()
            raise AlreadyExists(f"the group {request.group} is of the kind {is_kind}")
    return Opening(kind, known.config, request.start)


def _check(request: ConsumeRequest) -> None:
    _check_name(request.group, "a group's name")
    if request.member:
        _check_name(request.member, "a member's name")
    if not 0 < len(request.topics) <= TOPICS_MAX:
        raise InvalidArgument(f"a consumer has 1 to {TOPICS_MAX} topics")
    if not 0 < request.credit <= CREDIT_MAX:
        raise InvalidArgument(f"a credit is from 1 to {CREDIT_MAX}, not {request.credit}")
    if request.kind is not None and request.kind.keeps_own_offsets:
        raise InvalidArgument("a checkpoint group keeps its own offsets; nothing is handed out")
    check_start(request.start)
    if request.config is not None:
        settings_of(request.config)
    for held in request.held:
        bounds = held.ranges
        ascending = all(low < high for low, high in pairwise(bounds))
        if len(bounds) % 2 or not ascending or (bounds and bounds[0] < 0):
            raise InvalidArgument("held ranges must ascend and must not be empty")


def _check_name(name: str, what: str) -> None:
    if not 0 < len(name) <= NAME_CHARACTERS_MAX:
        raise InvalidArgument(f"{what} has 1 to {NAME_CHARACTERS_MAX} characters")
