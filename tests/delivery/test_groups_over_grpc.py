"""Consumer groups through the gRPC door, against a node in this process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from tests.delivery.on_nodes import on_nodes

from angarium import Client
from angarium.api.access import ANONYMOUS
from angarium.batch import Batch, split
from angarium.doors.grpc import GrpcDoor
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.testing.broker import InProcessBroker

QUICK = pb.GroupConfig(max_attempts=3, backoff_min_ms=1, backoff_max_ms=1)


@asynccontextmanager
async def opened(broker: InProcessBroker, *, values: int = 0) -> AsyncIterator[Any]:
    """A stub, and a topic "orders" with some records."""
    access = broker.accesses[0]
    assert access is not None
    async with Client(*broker.addresses) as client:
        await client.create_topic("orders")
        if values:
            await client.publish_batch("orders", [b"%d" % n for n in range(values)])
    door = GrpcDoor(access.broker_for(ANONYMOUS), host="127.0.0.1", port=0)
    port = await door.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield BrokerStub(channel)
    finally:
        await door.stop(grace_s=0)


async def joined(stub: Any, *, credit: int = 100, **choices: Any) -> tuple[Any, Any]:
    """A consumer's stream, and what it was told first."""
    call = stub.Subscribe()
    membership = pb.Membership(group="kitchen", topics=["orders"], config=QUICK, **choices)
    opening = pb.SubscribeRequest.Open(group=membership, credit=credit)
    await call.write(pb.SubscribeRequest(open=opening))
    async with asyncio.timeout(60):
        return call, (await call.read()).joined


async def handed(call: Any, records: int) -> list[Any]:
    """Deliveries until so many records have come."""
    found: list[Any] = []
    async with asyncio.timeout(60):
        while sum(len(one.records) for one in found) < records:
            found.append(await call.read())
    return found


def settle(number: int, verb: Any, *ranges: int, **fields: Any) -> pb.SubscribeRequest:
    said = pb.Settlement(topic="orders", partition=0, verb=verb, ranges=ranges, **fields)
    return pb.SubscribeRequest(settle=pb.SubscribeRequest.Settle(number=number, settlements=[said]))


async def answer(call: Any) -> Any:
    async with asyncio.timeout(60):
        while not (response := await call.read()).HasField("answered"):
            assert response.records
        return response.answered


@on_nodes(1)
async def test_records_are_lent_and_settled_on_the_same_stream(broker: InProcessBroker) -> None:
    async with opened(broker, values=5) as stub:
        call, told = await joined(stub, member="anna")
        assert (told.member, told.kind) == ("anna", pb.GROUP_KIND_QUEUE)
        assert told.config.max_attempts == 3
        (delivery,) = await handed(call, 5)
        assert [one.value for one in delivery.records] == [b"0", b"1", b"2", b"3", b"4"]
        assert (list(delivery.ranges), delivery.attempt) == ([0, 5], 1)
        assert delivery.lease_ms > 0

        await call.write(settle(7, pb.VERB_ACK, 0, 2, 3, 5))
        answered = await answer(call)
        assert answered.number == 7
        assert [one.records for one in answered.settled] == [4]

        await call.write(settle(8, pb.VERB_NACK, 2, 3, reason="no teapot"))
        await answer(call)
        (again,) = await handed(call, 1)
        assert (again.attempt, again.records[0].value) == (2, b"2")
        await call.write(settle(9, pb.VERB_EXTEND, 2, 3, delay_ms=60_000))
        await answer(call)
        await call.write(settle(10, pb.VERB_ACK, 2, 3))
        await answer(call)

        described = (await stub.DescribeGroup(pb.DescribeGroupRequest(group="kitchen"))).group
        assert [one.name for one in described.members] == ["anna"]
        assert [(one.floor, one.lag) for one in described.positions] == [(5, 0)]


@on_nodes(1)
async def test_what_is_not_on_loan_is_refused_and_nothing_else(broker: InProcessBroker) -> None:
    async with opened(broker, values=4) as stub:
        call, _ = await joined(stub, credit=2)
        await handed(call, 2)
        await call.write(settle(1, pb.VERB_ACK, 2, 4))
        (refused,) = (await answer(call)).settled
        assert (refused.error.code, refused.error.retriable) == ("GROUP_FENCED", False)
        await call.write(settle(2, pb.VERB_ACK, 0, 2))
        (settled,) = (await answer(call)).settled
        assert settled.records == 2


@on_nodes(1)
async def test_credit_lets_more_records_come(broker: InProcessBroker) -> None:
    async with opened(broker, values=30) as stub:
        call, _ = await joined(stub, credit=10)
        assert sum(len(one.records) for one in await handed(call, 10)) == 10
        more = pb.SubscribeRequest.Credit(records=20)
        await call.write(pb.SubscribeRequest(credit=more))
        assert sum(len(one.records) for one in await handed(call, 20)) == 20


@on_nodes(1)
async def test_leaving_gives_back_what_is_in_hand(broker: InProcessBroker) -> None:
    async with opened(broker, values=3) as stub:
        first, _ = await joined(stub)
        await handed(first, 3)
        await first.write(settle(1, pb.VERB_ACK, 0, 1))
        await first.done_writing()
        await answer(first)
        assert await first.read() is grpc.aio.EOF
        second, _ = await joined(stub)
        (delivery,) = await handed(second, 2)
        assert [one.offset for one in delivery.records] == [1, 2]
        assert delivery.attempt == 1


@on_nodes(1)
async def test_batches_come_as_they_are_stored(broker: InProcessBroker) -> None:
    async with opened(broker, values=10) as stub:
        call = stub.Subscribe()
        membership = pb.Membership(group="kitchen", topics=["orders"], config=QUICK)
        opening = pb.SubscribeRequest.Open(group=membership, credit=4, format=pb.FORMAT_BATCHES)
        await call.write(pb.SubscribeRequest(open=opening))
        assert (await call.read()).HasField("joined")
        delivery = await call.read()
        assert list(delivery.ranges) == [0, 4]
        (batch,) = [Batch.parse(one) for one in split(memoryview(delivery.batches))]
        assert batch.values(0, 4) == [b"0", b"1", b"2", b"3"]


@on_nodes(1)
async def test_records_can_be_settled_request_by_request(broker: InProcessBroker) -> None:
    async with opened(broker, values=2) as stub:
        call, told = await joined(stub)
        await handed(call, 2)
        said = pb.Settlement(topic="orders", partition=0, verb=pb.VERB_ACK, ranges=[0, 2])
        request = pb.SettleRequest(group="kitchen", member=told.member, settlements=[said])
        (settled,) = (await stub.Settle(request)).settled
        assert settled.records == 2


@on_nodes(1)
async def test_groups_are_looked_after(broker: InProcessBroker) -> None:
    async with opened(broker, values=6) as stub:
        call, _ = await joined(stub)
        await handed(call, 6)
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        (listed,) = (await stub.ListGroups(pb.ListGroupsRequest())).groups
        assert (listed.name, listed.kind) == ("kitchen", pb.GROUP_KIND_QUEUE)

        config = pb.GroupConfig(max_attempts=9, poison=pb.POISON_STOP, behind=pb.BEHIND_JUMP)
        altered = (
            await stub.AlterGroup(pb.AlterGroupRequest(group="kitchen", config=config))
        ).group
        assert (altered.config.max_attempts, altered.config.ack_timeout_ms) == (9, 30_000)
        assert (altered.config.poison, altered.config.behind) == (pb.POISON_STOP, pb.BEHIND_JUMP)

        seek = pb.SeekGroupRequest(group="kitchen", start=pb.Start(offset=4), dry_run=True)
        (moved,) = (await stub.SeekGroup(seek)).moved
        assert (moved.topic, moved.old_floor, moved.new_floor) == ("orders", 0, 4)

        await stub.PauseGroup(pb.PauseGroupRequest(group="kitchen"))
        described = (await stub.DescribeGroup(pb.DescribeGroupRequest(group="kitchen"))).group
        assert described.paused
        await stub.PauseGroup(pb.PauseGroupRequest(group="kitchen", undo=True))
        await stub.DeleteGroup(pb.DeleteGroupRequest(group="kitchen"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.DescribeGroup(pb.DescribeGroupRequest(group="kitchen"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@on_nodes(1)
async def test_a_group_that_keeps_its_own_offsets_reports_them(broker: InProcessBroker) -> None:
    async with opened(broker, values=6) as stub:
        checkpoint = pb.ReportCheckpointsRequest.Checkpoint(topic="orders", partition=0, offset=4)
        await stub.ReportCheckpoints(
            pb.ReportCheckpointsRequest(group="lake", checkpoints=[checkpoint])
        )
        described = (await stub.DescribeGroup(pb.DescribeGroupRequest(group="lake"))).group
        assert described.kind == pb.GROUP_KIND_CHECKPOINT
        assert [(one.floor, one.lag) for one in described.positions] == [(4, 2)]


@pytest.mark.parametrize(
    ("opening", "complaint"),
    [
        ({"interests": [pb.Interest(topic="orders")]}, "no interests"),
        ({"group": pb.Membership(group="g", topics=["orders"], kind=9)}, "kind"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Any, opening: Any, complaint: str) -> None:
    @on_nodes(1)
    async def check(broker: InProcessBroker) -> None:
        async with opened(broker) as stub:
            call = stub.Subscribe()
            fields = {"group": pb.Membership(group="g", topics=["orders"]), **opening}
            await call.write(pb.SubscribeRequest(open=pb.SubscribeRequest.Open(**fields)))
            with pytest.raises(grpc.aio.AioRpcError, match=complaint) as caught:
                await call.read()
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    check(tmp_path)
