"""PublishStream: order, packing, results, bounds and endings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tests.component.doors.grpc.opened import all_is_done, opened, refused
from tests.on_a_loop import eventually, run

from angarium.batch import Batch, encode
from angarium.doors.grpc import GrpcLimits
from angarium.errors import DiskFull, NotLeader
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable


def a_publish(number: int, **fields: object) -> pb.PublishStreamRequest:
    record = pb.NewRecord(value=b"%d" % number)
    fields = {"topic": "orders", "partition": 0, "record": record} | fields
    return pb.PublishStreamRequest(number=number, publish=pb.PublishRequest(**fields))  # type: ignore[arg-type]


async def results_of(
    stub: Any, requests: Iterable[pb.PublishStreamRequest]
) -> list[pb.PublishStreamResult]:
    """Send everything, say that this was all, and return every result."""
    call = stub.PublishStream()
    for request in requests:
        await call.write(request)
    await call.done_writing()
    return await rest(call)


async def all_read(call: Any) -> None:
    """Wait until the door has read everything sent so far, by a request that nothing holds up."""
    await call.write(a_publish(99_999, partition=3))
    (result,) = (await call.read()).results
    assert result.number == 99_999


async def drained(call: Any, found: list[pb.PublishStreamResult]) -> None:
    """Put all further results into `found`."""
    while (response := await call.read()) is not grpc.aio.EOF:
        found += response.results


async def rest(call: Any) -> list[pb.PublishStreamResult]:
    """Return all further results."""
    found: list[pb.PublishStreamResult] = []
    await drained(call, found)
    return found


def values_in(batches: Iterable[Any]) -> list[bytes | None]:
    return [value for one in batches for value in Batch.parse(one, compacted=True).values()]


def test_what_one_stream_sends_to_a_partition_is_stored_and_answered_in_order() -> None:
    async def check() -> None:
        async with opened() as it:
            found = await results_of(it.stub, (a_publish(n, partition=n % 3) for n in range(600)))
            assert len(found) == 600
            for partition in range(3):
                own = [one for one in found if one.acks[0].partition == partition]
                assert [one.number for one in own] == list(range(partition, 600, 3))
                assert [one.acks[0].offset for one in own] == list(range(200))
                assert [one.acks[0].next_offset for one in own] == list(range(1, 201))
                stored = values_in(it.broker.partition("orders", partition).batches)
                assert stored == [b"%d" % n for n in range(partition, 600, 3)]

    run(check())


def test_records_that_wait_for_an_answer_share_a_batch() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishStream()
            for number in range(100):
                await call.write(a_publish(number))
                if number == 0:
                    await eventually(lambda: it.broker.requests)
            await all_read(call)  # and all but the first one wait
            await call.done_writing()
            it.broker.hang.set()
            found = await rest(call)
            assert [one.acks[0].offset for one in found] == list(range(100))
            sent = [one.batches for one in it.broker.requests if one.partition == 0]
            assert [[len(Batch.parse(one)) for one in batches] for batches in sent] == [[1], [99]]

    run(check())


def test_records_of_different_modes_are_never_packed_together() -> None:
    async def check() -> None:
        async with opened() as it:
            modes = [pb.DELIVERY_MODE_EVENTUAL, pb.DELIVERY_MODE_CONSISTENT] * 10
            found = await results_of(
                it.stub, (a_publish(n, mode=mode) for n, mode in enumerate(modes))
            )
            assert [one.number for one in found] == list(range(20))
            assert [one.acks[0].mode for one in found] == modes
            assert [one.acks[0].provisional for one in found] == [True, False] * 10
            sent = [(one.mode, len(values_in(one.batches))) for one in it.broker.requests]
            assert sent == [(DeliveryMode.EVENTUAL, 1), (DeliveryMode.CONSISTENT, 1)] * 10

    run(check())


def test_a_producers_records_keep_batches_of_their_own() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishStream()
            for number in range(10):
                producer = pb.Producer(id=7, epoch=1, sequence=number)
                await call.write(a_publish(number, producer=producer))
            await all_read(call)
            await call.done_writing()
            it.broker.hang.set()
            found = await rest(call)
            assert [one.acks[0].offset for one in found] == list(range(10))
            sent = [one for one in it.broker.requests if one.partition == 0]
            batches = [Batch.parse(one) for request in sent for one in request.batches]
            assert [(len(one), one.first_sequence) for one in batches] == [
                (1, n) for n in range(10)
            ]

    run(check())


def test_batches_and_records_mix_in_order() -> None:
    async def check() -> None:
        async with opened() as it:
            packed = bytes(encode([b"p1", b"p2"]) + encode([b"p3"]))
            requests = [
                a_publish(0),
                pb.PublishStreamRequest(
                    number=1,
                    batch=pb.PublishBatchRequest(topic="orders", partition=0, packed=packed),
                ),
                a_publish(2),
                pb.PublishStreamRequest(
                    number=3,
                    batch=pb.PublishBatchRequest(
                        topic="orders",
                        partition=0,
                        records=[pb.NewRecord(value=b"r1"), pb.NewRecord(value=b"r2")],
                    ),
                ),
                a_publish(4, record=pb.NewRecord(value=bytes(100_000))),
            ]
            found = await results_of(it.stub, requests)
            assert [one.number for one in found] == [0, 1, 2, 3, 4]
            spans = [[(ack.offset, ack.next_offset) for ack in one.acks] for one in found]
            assert spans == [[(0, 1)], [(1, 3), (3, 4)], [(4, 5)], [(5, 7)], [(7, 8)]]
            stored = values_in(it.broker.partition("orders", 0).batches)
            assert stored == [b"0", b"p1", b"p2", b"p3", b"2", b"r1", b"r2", bytes(100_000)]

    run(check())


@pytest.mark.parametrize(
    "request_",
    [
        pb.PublishStreamRequest(number=5),
        a_publish(5, partition=-1),
        a_publish(5, mode=9),
        a_publish(5, record=pb.NewRecord(deliver_after_ms=-5)),
        pb.PublishStreamRequest(
            number=5, batch=pb.PublishBatchRequest(topic="orders", records=[pb.NewRecord()])
        ),
        pb.PublishStreamRequest(
            number=5, batch=pb.PublishBatchRequest(topic="orders", partition=0)
        ),
        pb.PublishStreamRequest(
            number=5, batch=pb.PublishBatchRequest(topic="orders", partition=0, packed=b"rubbish")
        ),
        a_publish(5, record=pb.NewRecord(timestamp_us=-4)),
        a_publish(5, topic="nowhere"),
    ],
)
def test_a_request_that_cannot_be_served_is_told_so_and_the_stream_goes_on(
    request_: pb.PublishStreamRequest,
) -> None:
    async def check() -> None:
        async with opened() as it:
            found = await results_of(it.stub, [a_publish(4), request_, a_publish(6)])
            by_number = {one.number: one for one in found}
            assert by_number.keys() == {4, 5, 6}
            assert by_number[5].error.code in ("INVALID_ARGUMENT", "INVALID_BATCH", "NOT_FOUND")
            assert not by_number[5].acks
            assert [by_number[n].acks[0].offset for n in (4, 6)] == [0, 1]

    run(check())


def test_a_bad_record_among_packed_neighbours_fails_alone_and_in_its_place() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishStream()
            for number in range(6):
                record = pb.NewRecord(value=b"%d" % number, timestamp_us=-1 if number == 3 else 0)
                await call.write(a_publish(number, record=record))
                if number == 0:
                    await eventually(lambda: it.broker.requests)
            await all_read(call)
            await call.done_writing()
            it.broker.hang.set()
            found = await rest(call)
            assert [one.number for one in found] == [0, 1, 2, 3, 4, 5]
            assert [one.error.code for one in found] == ["", "", "", "INVALID_BATCH", "", ""]
            stored = values_in(it.broker.partition("orders", 0).batches)
            assert stored == [b"0", b"1", b"2", b"4", b"5"]

    run(check())


def test_a_failed_call_answers_every_request_in_it_and_the_stream_goes_on() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.trouble = NotLeader(leader=2)
            call = it.stub.PublishStream()
            for number in range(20):
                await call.write(a_publish(number))
            failed: list[pb.PublishStreamResult] = []
            while len(failed) < 20:
                failed += (await call.read()).results
            assert {(one.error.code, one.error.retriable) for one in failed} == {
                ("NOT_LEADER", True)
            }
            it.broker.trouble = None
            await call.write(a_publish(20))
            (result,) = (await call.read()).results
            assert (result.number, result.acks[0].offset) == (20, 0)
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF
            assert await call.code() is grpc.StatusCode.OK

    run(check())


def test_one_troubled_partition_does_not_hold_up_another() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.trouble_in = {1: DiskFull("no room")}
            found = await results_of(it.stub, (a_publish(n, partition=n % 2) for n in range(20)))
            codes = {one.number: one.error.code for one in found}
            assert codes == {n: "DISK_FULL" if n % 2 else "" for n in range(20)}

    run(check())


def test_no_more_is_read_than_the_limit_allows_until_results_have_gone_out() -> None:
    async def check() -> None:
        async with opened(GrpcLimits(stream_requests_max=10)) as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishStream()
            writing = asyncio.create_task(_write_all(call, 200))
            await eventually(lambda: it.broker.requests)
            await all_is_done(it)
            it.broker.hang.set()
            found = await rest(call)
            await writing
            assert [one.number for one in found] == list(range(200))
            assert max(len(values_in(one.batches)) for one in it.broker.requests) <= 10

    run(check())


def test_the_bytes_of_unanswered_requests_are_bounded() -> None:
    async def check() -> None:
        async with opened(GrpcLimits(stream_bytes_max=50_000)) as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishStream()
            writing = asyncio.create_task(_write_all(call, 100, value=bytes(10_000)))
            await eventually(lambda: it.broker.requests)
            await all_is_done(it)
            it.broker.hang.set()
            found = await rest(call)
            await writing
            assert len(found) == 100
            # One may overdraw it.
            assert max(len(values_in(one.batches)) for one in it.broker.requests) <= 6

    run(check())


async def _write_all(call: Any, count: int, value: bytes = b"v") -> None:
    for number in range(count):
        await call.write(a_publish(number, record=pb.NewRecord(value=value)))
    await call.done_writing()


def test_a_client_that_goes_away_cancels_what_was_under_way() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishStream()
            await call.write(a_publish(0))
            await eventually(lambda: it.broker.requests)
            call.cancel()
            await eventually(lambda: it.broker.cancelled == 1)

    run(check())


def test_bytes_that_are_no_request_end_the_stream() -> None:
    async def check() -> None:
        async with opened() as it:
            call: Any = it.channel.stream_stream("/angarium.v1.Broker/PublishStream")()
            await call.write(b"\xff\xff\xff")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
            assert refused(caught.value).code == "INVALID_ARGUMENT"

    run(check())


def test_a_closing_door_answers_what_it_took_and_then_says_that_it_stops() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishStream()
            for number in range(5):
                await call.write(a_publish(number))
            await all_read(call)
            closing = asyncio.create_task(it.door.stop(grace_s=5))
            await asyncio.sleep(0)  # it has begun to close
            it.broker.hang.set()
            found: list[pb.PublishStreamResult] = []
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await drained(call, found)
            assert [one.acks[0].offset for one in found] == [0, 1, 2, 3, 4]
            end = refused(caught.value)
            assert (end.status, end.code) == (grpc.StatusCode.UNAVAILABLE, "UNREACHABLE")
            assert end.metadata["retriable"] == "true"
            await closing

    run(check())


def test_an_idle_stream_does_not_hold_up_a_closing_door() -> None:
    async def check() -> None:
        async with opened() as it:
            call = it.stub.PublishStream()
            await call.write(a_publish(0))
            await call.read()
            async with asyncio.timeout(20):
                await it.door.stop(grace_s=30)
            assert await call.code() is grpc.StatusCode.UNAVAILABLE

    run(check())
