"""What happens to transactions whose client, or coordinator, is gone; and to their home's topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.delivery.on_nodes import on_nodes

from angarium import Client
from angarium.api.transactions import HOMES_TOPIC
from angarium.errors import InvalidArgument, TransactionAborted
from angarium.ids import Micros
from angarium.machine import Configure
from angarium.machine.commands import Decide
from angarium.machine.decisions import Phase
from angarium.machine.fingerprint import home_partition
from angarium.modes import DeliveryMode
from angarium.service.transactions.procedure import inner
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.node.node import Node
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.broker import InProcessBroker


def only_node(broker: InProcessBroker) -> Node:
    node = broker.nodes[0]
    assert node is not None
    return node


def replica_of(node: Node, topic: str, partition: int = 0) -> PartitionReplica:
    group: RaftGroupId = node.catalog.partition(topic, partition).group
    return node.host.replicas[group]


def home_of(node: Node, name: str) -> PartitionReplica:
    count = len(node.catalog.topic(HOMES_TOPIC).groups)
    return replica_of(node, HOMES_TOPIC, home_partition(name, count))


def submit(node: Node, replica: PartitionReplica, command: Decide | Configure) -> None:
    replica.partition.submit(command, now=node.now(), reply=lambda _: None)
    replica.process()
    node.wake()


@on_nodes(1)
async def test_a_commit_whose_coordinator_died_is_carried_out_by_the_homes_leader(
    broker: InProcessBroker,
) -> None:
    node = only_node(broker)
    async with Client(*broker.addresses) as client:
        await client.create_topic("t", partitions=2)
        series = await client.open_series("query")
        write = client.staged("query", epoch=series.epoch, sequence=0)
        async with write.stage("task") as stage:
            for partition in (0, 1):
                await stage.publish("t", b"seen", partition=partition)
        groups = node.catalog.topic("t").groups
        decide = Decide(
            name="t:query",
            epoch=series.epoch,
            sequence=inner(0),
            commit=True,
            stages=tuple((group, ("task",)) for group in groups),
        )
        submit(node, home_of(node, "t:query"), decide)

        async def is_there() -> bool:
            return [record.value async for record in client.read("t")] == [b"seen", b"seen"]

        await eventually(is_there, within_s=60.0, what="it is carried out")
        home = home_of(node, "t:query").partition.machine.numbering.decisions

        async def is_finished() -> bool:
            found = home.records.get("t:query")
            return found is not None and found.phase is Phase.FINISHED

        await eventually(is_finished, within_s=60.0, what="its home has heard of it")
        assert (await write.commit([stage.ticket])).repeated


@on_nodes(1)
async def test_what_was_open_for_too_long_is_aborted_at_its_home(broker: InProcessBroker) -> None:
    node = only_node(broker)
    async with Client(*broker.addresses) as client:
        await client.create_topic("t")
        replica = replica_of(node, "t")
        machine = replica.partition.machine
        impatient = msgspec.structs.replace(machine.limits, transaction_micros_max=200_000)
        submit(node, replica, Configure(limits=impatient))
        series = await client.open_series("query")
        write = client.staged("query", epoch=series.epoch, sequence=0)
        async with write.stage("task") as stage:
            await stage.publish("t", b"never seen")

        async def is_dropped() -> bool:
            return not list(machine.numbering.transactions.overdue(Micros(1 << 62), impatient))

        assert not await is_dropped()
        await eventually(is_dropped, within_s=60.0, what="it is dropped")
        with pytest.raises(TransactionAborted):
            await write.commit([stage.ticket])
        assert [record async for record in client.read("t")] == []


@on_nodes(1)
async def test_the_topic_where_transactions_are_decided_is_left_alone(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses, producer="p") as client:
        await client.create_topic("t")
        async with client.transaction() as tx:
            await tx.publish("t", b"one")
        with pytest.raises(InvalidArgument):
            await client.delete_topic(HOMES_TOPIC)
        with pytest.raises(InvalidArgument):
            await client.alter_topic(HOMES_TOPIC, partitions=99)
        for publish in (
            client.publish(HOMES_TOPIC, b"mischief"),
            client.publish_batch(HOMES_TOPIC, [b"mischief"]),
            client.publish(HOMES_TOPIC, b"passing", mode=DeliveryMode.PERFORMANCE),
            client.publish_once(HOMES_TOPIC, b"numbered", sequence=1),
        ):
            with pytest.raises(InvalidArgument, match="is internal"):
                await publish
        tx = client.transaction()
        await tx.__aenter__()
        await tx.publish(HOMES_TOPIC, b"mischief")
        with pytest.raises(InvalidArgument):
            await tx.__aexit__(None, None, None)
