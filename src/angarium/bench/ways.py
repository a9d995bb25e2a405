"""Which doors of which nodes a measurement goes through: where it publishes, where it reads."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Final

from angarium.bench.drivers.wire import WireDriver
from angarium.bench.plan import Protocol, Route
from angarium.errors import InvalidArgument
from angarium.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api import NodeInfo, TopicInfo
    from angarium.bench.drivers.port import Driver
    from angarium.bench.plan import Plan
    from angarium.ids import NodeId


REACHED_SECONDS_MAX: Final = 5.0
"""How long a target may take to let us in."""


class Ways:
    """The addresses of one protocol's door, for each partition."""

    def __init__(self, publish: Mapping[TopicPartition, Sequence[str]], read: str) -> None:
        self.read = read
        """Where deliveries come from."""
        self._publish = publish
        self._turns = count()

    def to(self, partition: TopicPartition) -> str:
        """Return where to publish next; several take turns."""
        addresses = self._publish[partition]
        return addresses[next(self._turns) % len(addresses)]

    @property
    def addresses(self) -> list[str]:
        """All that are published to."""
        return sorted({one for some in self._publish.values() for one in some})


async def check_targets(plan: Plan) -> None:
    """Raise `InvalidArgument` if a target that the plan will publish to cannot be reached.

    Publishers wait for a node that is away, since it may come back; one that was never there would
    be waited for until the end.
    """
    for option, door, targets in (
        ("grpc-targets", "grpc", plan.grpc_targets),
        ("http-targets", "http", plan.http_targets),
    ):
        for target in targets if plan.protocol.door == door else ():
            host, _, port = target.rpartition(":")
            try:
                async with asyncio.timeout(REACHED_SECONDS_MAX):
                    _, writer = await asyncio.open_connection(host, int(port))
            except (OSError, ValueError):
                raise InvalidArgument(f"{option}: nothing listens at {target}") from None
            writer.close()


def driver_of(
    plan: Plan,
    servers: str,
    topics: Sequence[TopicInfo],
    nodes: Sequence[NodeInfo],
) -> Driver:
    """Return the driver that does what the plan says, on the topics that were made for it."""
    leaders = {
        TopicPartition(topic.name, one.number): one.leader
        for topic in topics
        for one in topic.partitions
    }
    if plan.protocol is Protocol.WIRE:
        read = None if plan.sub_target is None else _read_at(plan, leaders, nodes, "wire")
        return WireDriver(servers, plan.mode, read=read)
    door = plan.protocol.door
    publish = {
        partition: _publish_at(plan, leader, nodes, door) for partition, leader in leaders.items()
    }
    read = _read_at(plan, leaders, nodes, door)
    ways = Ways(publish, read)
    if door == "http":
        from angarium.bench.drivers.http import HttpDriver  # noqa: PLC0415

        return HttpDriver(ways, plan.mode, is_graphql=plan.protocol is Protocol.GRAPHQL)
    # gRPC is loaded only by those who measure it.
    from angarium.bench.drivers.grpc import GrpcDriver  # noqa: PLC0415

    return GrpcDriver(ways, plan.mode, is_streaming=plan.protocol is Protocol.GRPC_STREAM)


def _publish_at(
    plan: Plan, leader: NodeId | None, nodes: Sequence[NodeInfo], door: str
) -> list[str]:
    named = plan.http_targets if door == "http" else plan.grpc_targets
    if named:
        return list(named)
    wanted = {
        Route.LEADER: [one for one in nodes if one.id == leader],
        Route.FOLLOWER: [one for one in nodes if one.id != leader][:1],
        Route.ALL: list(nodes),
    }[plan.route]
    addresses = [one.addresses[door] for one in wanted if one.addresses.get(door)]
    if not addresses:
        raise InvalidArgument(f"through: no {plan.route} has its {door} door open")
    return addresses


def _read_at(
    plan: Plan,
    leaders: Mapping[TopicPartition, NodeId | None],
    nodes: Sequence[NodeInfo],
    door: str,
) -> str:
    """Return where deliveries come from: one door for all partitions, as one subscriber has it."""
    leader = next(iter(leaders.values()))
    target = plan.sub_target
    if target in (None, Route.LEADER):
        # Where there are several partitions their leaders differ; any node serves all of them.
        wanted = [one for one in nodes if one.id == leader]
    elif target == Route.FOLLOWER:
        wanted = [one for one in nodes if one.id != leader]
    else:
        # A node may be named by any of its doors, so that one name serves every protocol.
        wanted = [one for one in nodes if target in one.addresses.values()]
        if not wanted:
            raise InvalidArgument(f"sub-target: no node listens at {target}")
    addresses = [one.addresses[door] for one in wanted if one.addresses.get(door)]
    if not addresses:
        raise InvalidArgument(f"sub-target: that node has no {door} door open")
    return addresses[0]
