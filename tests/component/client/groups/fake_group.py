"""A consumer group in memory, spoken to over real sockets by the nodes of the fake cluster.

It keeps leases and attempts as a broker does, simply: a queue in which each record is on its own,
or a stream in which a record that fails takes back what lies behind it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.component.client.fake_broker import fake_cluster
from tests.component.client.harness import settings

from angarium.api import ConsumeRequest, GroupConfig, Settled, Settlement, Verb
from angarium.batch import Batch
from angarium.client import Client
from angarium.client.groups.spans import offsets_in, pairs, spans_of
from angarium.client.loop_thread import LoopThread
from angarium.errors import GroupFenced, NotFound
from angarium.kinds import GroupKind
from angarium.wire.operations import (
    Answered,
    ConsumeHeader,
    HandedOver,
    Joined,
    Operation,
    Said,
    SetCredit,
    Settle,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.component.client.fake_broker import Cluster

    from angarium.errors import AngariumError
    from angarium.wire import Stream

GROUP = "g"


@dataclass
class Lease:
    member: str
    ends: float


@dataclass
class Member:
    stream: Stream
    credit: int
    topics: tuple[str, ...] = ()


@dataclass
class FakeGroup:
    """The group "g" over all partitions of the cluster."""

    cluster: Cluster
    kind: GroupKind = GroupKind.QUEUE
    config: GroupConfig = field(default_factory=GroupConfig)
    acked: set[tuple[str, int, int]] = field(default_factory=set)
    attempts: dict[tuple[str, int, int], int] = field(default_factory=dict)
    leases: dict[tuple[str, int, int], Lease] = field(default_factory=dict)
    buried: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """What was rejected, and why."""
    reasons: list[str] = field(default_factory=list)
    delays: list[int | None] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)
    opened: list[ConsumeRequest] = field(default_factory=list)
    frames: list[Settle] = field(default_factory=list)
    handed: int = 0
    records_per_delivery: int = 500
    refusals: list[Settled] = field(default_factory=list)
    """Answers for the next settlements, whatever they are."""
    closed: AngariumError | None = None
    """Why nobody may join."""
    holds_answers: bool = False
    """Whether settlements are taken and never answered."""

    # --- the stream -----------------------------------------------------------------------------

    async def serve(self, stream: Stream) -> None:
        request = stream.opening.read(ConsumeHeader).request
        if self.closed is not None:
            raise self.closed
        for topic in request.topics:
            if topic not in self.cluster.topics:
                raise NotFound(f"there is no topic {topic!r}")
        self.opened.append(request)
        name = request.member or f"member-{len(self.members) + 1}"
        earlier = self.members.pop(name, None)
        if earlier is not None:
            earlier.stream.cancel(GroupFenced("somebody else of that name is here"))
        member = Member(stream, request.credit, request.topics)
        self._claim(name, request)
        self.members[name] = member
        await stream.send(Joined(name, self.kind, self.config))
        handing = asyncio.create_task(self._hand(name, member))
        try:
            async for frame in stream:
                said: Any = frame.read(Said)  # type: ignore[arg-type]
                if isinstance(said, SetCredit):
                    member.credit = said.credit
                elif isinstance(said, Settle):
                    self.frames.append(said)
                    if not self.holds_answers:
                        settled = tuple(self._settle(name, one) for one in said.settlements)
                        await stream.send(Answered(said.number, settled))
            # It left in good order: what it had is free again.
            for place in [place for place, one in self.leases.items() if one.member == name]:
                del self.leases[place]
        finally:
            handing.cancel()
            if self.members.get(name) is member:
                del self.members[name]

    def _claim(self, name: str, request: ConsumeRequest) -> None:
        held = {
            (one.topic, one.partition, offset)
            for one in request.held
            for offset in offsets_in(one.ranges)
        }
        for place, lease in list(self.leases.items()):
            if lease.member == name and place not in held:
                del self.leases[place]
        for place in held:
            if place not in self.acked and place not in self.leases:
                self._lease(name, place)

    async def _hand(self, name: str, member: Member) -> None:
        while True:
            for topic in member.topics:
                for number in range(len(self.cluster.topics[topic].partitions)):
                    await self._hand_of(name, member, topic, number)
            await asyncio.sleep(0.002)

    async def _hand_of(self, name: str, member: Member, topic: str, number: int) -> None:
        now = asyncio.get_running_loop().time()
        room = member.credit - sum(one.member == name for one in self.leases.values())
        partition = self.cluster.topics[topic].partitions[number]
        found: list[int] = []
        attempt = 0
        for record in partition.records():
            place = (topic, number, record.offset)
            lease = self.leases.get(place)
            if lease is not None and lease.ends < now:
                del self.leases[place]
                self.attempts[place] = self.attempts.get(place, 0) + 1
                lease = None
            if place in self.acked or lease is not None:
                continue
            mine = self.attempts.get(place, 0) + 1
            if len(found) == min(room, self.records_per_delivery) or (found and mine != attempt):
                break
            attempt = mine
            found.append(record.offset)
        if not found:
            return
        for offset in found:
            self._lease(name, (topic, number, offset))
        self.handed += len(found)
        ranges = spans_of(found)
        batches = [
            one
            for one in partition.batches
            if any(
                first < Batch.trusted(one).next_offset and Batch.trusted(one).base_offset < past
                for first, past in pairs(ranges)
            )
        ]
        lease_ms = self.config.ack_timeout_ms
        await member.stream.send(HandedOver(topic, number, ranges, attempt, lease_ms), batches)

    def _lease(self, name: str, place: tuple[str, int, int], seconds: float | None = None) -> None:
        length = self.config.ack_timeout_ms / 1000 if seconds is None else seconds
        self.leases[place] = Lease(name, asyncio.get_running_loop().time() + length)

    def _settle(self, name: str, one: Settlement) -> Settled:
        if self.refusals:
            return self.refusals.pop(0)
        places = [(one.topic, one.partition, offset) for offset in offsets_in(one.ranges)]
        for place in places:
            lease = self.leases.get(place)
            is_mine = lease is not None and lease.member == name
            if not is_mine and not (one.verb is Verb.ACK and place in self.acked):
                return Settled(0, GroupFenced.code, f"{place} is not on loan to {name}")
        for place in places:
            if one.verb is Verb.EXTEND:
                self._lease(name, place, None if one.delay_ms is None else one.delay_ms / 1000)
                continue
            self.leases.pop(place, None)
            if one.verb is Verb.ACK:
                self.acked.add(place)
            elif one.verb is Verb.NACK:
                self.attempts[place] = self.attempts.get(place, 0) + 1
                self.reasons.append(one.reason)
                self.delays.append(one.delay_ms)
            elif one.verb is Verb.REJECT:
                self.buried[place] = one.reason
                self.acked.add(place)
        if self.kind is GroupKind.STREAM and one.verb in (Verb.NACK, Verb.RELEASE):
            for topic, partition, offset in list(self.leases):
                if (topic, partition) == (one.topic, one.partition) and offset > one.ranges[0]:
                    del self.leases[topic, partition, offset]
        return Settled(len(places))

    # --- for tests --------------------------------------------------------------------------------

    def offsets(self, topic: str = "t", partition: int = 0) -> list[int]:
        """The acknowledged offsets of a partition."""
        return sorted(one[2] for one in self.acked if one[:2] == (topic, partition))

    async def until(self, happened: Any, *, within_s: float = 60.0) -> None:
        """Wait until something has happened."""
        async with asyncio.timeout(within_s):
            while not happened():  # noqa: ASYNC110 (nobody there to set an event)
                await asyncio.sleep(0.002)


@asynccontextmanager
async def fake_group(
    *,
    nodes: int = 1,
    partitions: int = 1,
    kind: GroupKind = GroupKind.QUEUE,
    config: GroupConfig | None = None,
) -> AsyncIterator[FakeGroup]:
    """A cluster with a topic "t" and a group over it."""
    groups: list[FakeGroup] = []

    def prepare(cluster: Cluster) -> None:
        group = FakeGroup(cluster, kind, config or GroupConfig())
        groups.append(group)
        cluster.stream_handlers[int(Operation.CONSUME)] = group.serve

    async with fake_cluster(nodes, prepare) as cluster:
        cluster.add_topic("t", partitions=partitions)
        yield groups[0]


@asynccontextmanager
async def grouped(**choices: Any) -> AsyncIterator[tuple[FakeGroup, Client]]:
    """The same, and a client of it."""
    changes = {name: choices.pop(name) for name in list(choices) if name.endswith("_s")}
    async with (
        fake_group(**choices) as group,
        Client(*group.cluster.addresses, settings=settings(**changes)) as client,
    ):
        yield group, client


@asynccontextmanager
async def grouped_elsewhere(**choices: Any) -> AsyncIterator[tuple[FakeGroup, Client]]:
    """The same with the cluster in a thread of its own: the test's own loop may be kept busy."""
    thread = LoopThread("fake-cluster")
    changes = {name: choices.pop(name) for name in list(choices) if name.endswith("_s")}
    fake = fake_group(**choices)
    group = await asyncio.wrap_future(thread.submit(fake.__aenter__()))
    try:
        async with Client(*group.cluster.addresses, settings=settings(**changes)) as client:
            yield group, client
    finally:
        await asyncio.wrap_future(thread.submit(fake.__aexit__(None, None, None)))
        thread.stop()
