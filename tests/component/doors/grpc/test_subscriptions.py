"""Subscribe: both formats, credit, adding and dropping, slow readers, endings."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tests.component.doors.grpc.opened import (
    LOCALHOST,
    Opened,
    Refused,
    all_is_done,
    opened,
    refused,
)
from tests.on_a_loop import eventually, run

from angarium.api import PublishRequest
from angarium.batch import Batch, encode, split
from angarium.doors.grpc import GrpcLimits
from angarium.errors import CorruptData
from angarium.ids import Micros
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Sequence

EARLIEST = pb.Start(earliest=pb.Start.Earliest())


def interest(topic: str = "orders", **fields: object) -> pb.Interest:
    return pb.Interest(topic=topic, **({"start": EARLIEST} | fields))  # type: ignore[arg-type]


def opening(*interests: pb.Interest, **fields: object) -> pb.SubscribeRequest:
    return pb.SubscribeRequest(
        open=pb.SubscribeRequest.Open(interests=interests, **fields)  # type: ignore[arg-type]
    )


def credit(records: int) -> pb.SubscribeRequest:
    return pb.SubscribeRequest(credit=pb.SubscribeRequest.Credit(records=records))


async def subscribed(it: Opened, *interests: pb.Interest, **fields: object) -> Any:
    call = it.stub.Subscribe()
    before = len(it.broker.subscriptions)
    await call.write(opening(*interests, **fields))
    await eventually(lambda: len(it.broker.subscriptions) > before or call.done())
    return call


async def stored(
    it: Opened,
    values: Sequence[bytes],
    *,
    partition: int = 0,
    topic: str = "orders",
    mode: DeliveryMode | None = None,
) -> None:
    """Publish one batch behind the door's back."""
    await it.broker.publish(
        PublishRequest(topic=topic, partition=partition, batches=(encode(values),), mode=mode)
    )


async def read_records(call: Any, count: int) -> list[pb.Record]:
    found: list[pb.Record] = []
    while len(found) < count:
        found += (await call.read()).records
    return found


async def nothing_comes(it: Opened, call: Any) -> asyncio.Task[Any]:
    """Return a read that is still waiting after the door had time to do something wrong."""
    reading: asyncio.Task[Any] = asyncio.ensure_future(call.read())
    await all_is_done(it)
    assert not reading.done()
    return reading


def test_stored_records_come_first_and_live_ones_follow() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"0", b"1", b"2"])
            call = await subscribed(it, interest(partition=0))
            found = await read_records(call, 3)
            await stored(it, [b"3"])
            found += await read_records(call, 1)
            assert [one.value for one in found] == [b"0", b"1", b"2", b"3"]
            assert [one.offset for one in found] == [0, 1, 2, 3]
            assert found[0].append_time_us < found[3].append_time_us

    run(check())


def test_batches_come_as_they_are_stored_with_the_offset_that_was_asked_for() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"0", b"1", b"2"])
            await stored(it, [b"3"])
            start = pb.Start(offset=2)
            call = await subscribed(
                it, interest(partition=0, start=start), format=pb.FORMAT_BATCHES
            )
            response = await call.read()
            assert response.from_offset == 2
            assert not response.records
            assert [bytes(one) for one in split(response.batches)] == it.broker.partition(
                "orders", 0
            ).batches

    run(check())


def test_expired_records_are_left_out_of_a_delivery_or_named_in_it() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.now = Micros(10)
            batch = encode([b"a", b"b", b"c", b"d"], expires_at=[11, 10, 10, 2**63 - 1])
            await it.broker.publish(PublishRequest(topic="orders", partition=0, batches=(batch,)))
            call = await subscribed(it, interest(partition=0))
            records = [one for _ in range(2) for one in (await call.read()).records]
            assert [(one.offset, one.value) for one in records] == [(0, b"a"), (3, b"d")]
            call = await subscribed(it, interest(partition=0), format=pb.FORMAT_BATCHES)
            assert list((await call.read()).expired) == [1, 3]

    run(check())


def test_records_below_the_offset_asked_for_are_left_out() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"0", b"1", b"2"])
            call = await subscribed(it, interest(partition=0, start=pb.Start(offset=2)))
            assert [one.value for one in (await call.read()).records] == [b"2"]

    run(check())


def test_without_a_partition_all_of_the_topic_is_delivered() -> None:
    async def check() -> None:
        async with opened() as it:
            for partition in range(4):
                await stored(it, [b"%d" % partition], partition=partition)
            call = await subscribed(it, interest())
            responses = [await call.read() for _ in range(4)]
            found = {one.partition: one.records[0].value for one in responses}
            assert found == {0: b"0", 1: b"1", 2: b"2", 3: b"3"}
            assert {one.topic for one in responses} == {"orders"}

    run(check())


def test_live_records_have_no_offset() -> None:
    async def check() -> None:
        async with opened() as it:
            records = await subscribed(it, interest(partition=0))
            batches = await subscribed(it, interest(partition=0), format=pb.FORMAT_BATCHES)
            await stored(it, [b"now"], mode=DeliveryMode.PERFORMANCE)
            response = await records.read()
            assert response.live
            assert not response.records[0].HasField("offset")
            assert response.records[0].value == b"now"
            response = await batches.read()
            assert response.live
            assert Batch.parse(response.batches).values() == [b"now"]

    run(check())


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (None, [b"new"]),
        (pb.Start(latest=pb.Start.Latest()), [b"new"]),
        (pb.Start(), [b"new"]),
        (EARLIEST, [b"old", b"new"]),
        (pb.Start(offset=1), [b"new"]),
        (pb.Start(timestamp_us=1), [b"old", b"new"]),
        (pb.Start(timestamp_us=1_900_000_000_000_000), [b"new"]),
    ],
)
def test_a_subscription_begins_where_it_is_told_to(
    start: pb.Start | None, expected: list[bytes]
) -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"old"])
            call = await subscribed(it, interest(partition=0, start=start))
            await stored(it, [b"new"])
            found = await read_records(call, len(expected))
            assert [one.value for one in found] == expected

    run(check())


# --- credit -----------------------------------------------------------------------------------


def test_no_record_is_sent_beyond_the_credit() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"%d" % n for n in range(10)])
            call = await subscribed(it, interest(partition=0), credit=4)
            assert len((await call.read()).records) == 4
            reading = await nothing_comes(it, call)
            await call.write(credit(3))
            assert [one.offset for one in (await reading).records] == [4, 5, 6]
            reading = await nothing_comes(it, call)
            await call.write(credit(100))
            assert [one.offset for one in (await reading).records] == [7, 8, 9]

    run(check())


def test_without_any_credit_nothing_comes_until_some_is_given() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"v"])
            call = await subscribed(it, interest(partition=0), credit=0)
            reading = await nothing_comes(it, call)
            await call.write(credit(1))
            assert len((await reading).records) == 1

    run(check())


def test_a_batch_goes_out_whole_and_what_it_had_too_much_is_taken_off_the_next_credit() -> None:
    async def check() -> None:
        async with opened() as it:
            for _ in range(3):
                await stored(it, [b"v"] * 10)
            call = await subscribed(it, interest(partition=0), credit=4, format=pb.FORMAT_BATCHES)
            assert len(split((await call.read()).batches)) == 1
            reading = await nothing_comes(it, call)
            await call.write(credit(6))  # still nothing left: 4 - 10 + 6
            await all_is_done(it)
            assert not reading.done()
            await call.write(credit(11))
            assert len(split((await reading).batches)) == 2

    run(check())


def test_records_below_the_start_cost_no_credit() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"v"] * 10)
            await stored(it, [b"w"] * 5)
            start = pb.Start(offset=9)
            call = await subscribed(
                it, interest(partition=0, start=start), credit=2, format=pb.FORMAT_BATCHES
            )
            assert len(split((await call.read()).batches)) == 2

    run(check())


def test_without_credit_the_subscription_is_not_read_any_further() -> None:
    async def check() -> None:
        async with opened() as it:
            call = await subscribed(it, interest(partition=0), credit=1)
            (subscription,) = it.broker.subscriptions
            for number in range(20):
                await stored(it, [b"%d" % number])
                await asyncio.sleep(0)
            await read_records(call, 1)
            await all_is_done(it)
            # One delivery is gone and one waits in the door; all the rest waits behind it.
            assert subscription.taken <= 2
            await call.write(credit(19))
            found = await read_records(call, 19)
            assert [one.offset for one in found] == list(range(1, 20))

    run(check())


def test_a_reader_that_does_not_read_is_slowed_by_its_connection_and_holds_up_nobody() -> None:
    async def check() -> None:
        async with opened() as it:
            slow = await subscribed(it, interest(partition=0), format=pb.FORMAT_BATCHES)
            (slow_side,) = it.broker.subscriptions
            quick = await subscribed(it, interest(partition=0))
            for number in range(60):
                await stored(it, [bytes(200_000)])
                (record,) = (await quick.read()).records
                assert record.offset == number
            await all_is_done(it)
            # 12 MB were published; of these the slow one's connection took what its buffers hold.
            assert slow_side.taken < 50
            found = 0
            while found < 60:
                found += len(split((await slow.read()).batches))

    run(check())


def test_after_its_last_word_a_client_receives_what_its_credit_covers() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"%d" % n for n in range(10)])
            call = await subscribed(it, interest(partition=0), credit=3)
            await call.done_writing()
            assert len((await call.read()).records) == 3
            assert await call.read() is grpc.aio.EOF
            assert await call.code() is grpc.StatusCode.OK
            await eventually(lambda: not it.broker.subscriptions)

    run(check())


def test_without_a_bound_deliveries_go_on_after_the_clients_last_word() -> None:
    async def check() -> None:
        async with opened() as it:
            call = await subscribed(it, interest(partition=0))
            await call.done_writing()
            for number in range(3):
                await stored(it, [b"%d" % number])
                assert (await call.read()).records[0].offset == number

    run(check())


# --- the shape of deliveries ------------------------------------------------------------------


def test_a_delivery_is_cut_to_its_target_size() -> None:
    async def check() -> None:
        async with opened(GrpcLimits(delivery_bytes=10_000)) as it:
            await stored(it, [bytes(1_000)] * 100)
            call = await subscribed(it, interest(partition=0))
            sizes: list[int] = []
            while sum(sizes) < 100:
                response = await call.read()
                assert response.ByteSize() < 11_000
                sizes.append(len(response.records))
            assert 10 < len(sizes) < 15

    run(check())


def test_records_of_very_different_sizes_are_cut_as_well_and_a_large_one_comes_alone() -> None:
    async def check() -> None:
        async with opened(GrpcLimits(delivery_bytes=10_000)) as it:
            await stored(it, [b"small"] * 50 + [bytes(100_000)] + [b"small"] * 50)
            call = await subscribed(it, interest(partition=0))
            found: list[pb.Record] = []
            while len(found) < 101:
                response = await call.read()
                assert response.ByteSize() < 12_000 or len(response.records) == 1
                found += response.records
            assert [one.offset for one in found] == list(range(101))

    run(check())


def test_small_batches_travel_together() -> None:
    async def check() -> None:
        async with opened() as it:
            for _ in range(20):
                await stored(it, [b"v"])
            call = await subscribed(it, interest(partition=0), format=pb.FORMAT_BATCHES)
            assert len(split((await call.read()).batches)) == 20

    run(check())


def test_a_stored_batch_that_cannot_be_read_is_reported_as_damage() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [b"v"])
            it.broker.partition("orders", 0).batches[0] = (
                it.broker.partition("orders", 0).batches[0][:-8] + b"damaged!"
            )
            call = await subscribed(it, interest(partition=0))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
            end = refused(caught.value)
            assert (end.status, end.code) == (grpc.StatusCode.DATA_LOSS, "CORRUPT_DATA")
            assert "orders/0" in end.message

    run(check())


# --- adding and dropping ----------------------------------------------------------------------


def test_topics_can_be_added_and_dropped_on_a_live_stream() -> None:
    async def check() -> None:
        async with opened(topics={"orders": 2, "invoices": 2}) as it:
            call = await subscribed(it, interest(partition=0))
            await stored(it, [b"order"])
            assert (await call.read()).topic == "orders"
            await stored(it, [b"invoice"], topic="invoices", partition=1)
            await call.write(
                pb.SubscribeRequest(add=pb.SubscribeRequest.Add(interests=[interest("invoices")]))
            )
            response = await call.read()
            assert (response.topic, response.partition) == ("invoices", 1)
            await call.write(
                pb.SubscribeRequest(drop=pb.SubscribeRequest.Drop(topic="orders", partition=0))
            )
            (subscription,) = it.broker.subscriptions
            await eventually(lambda: ("orders", 0) not in subscription.partitions)
            await stored(it, [b"unheard"])
            await stored(it, [b"heard"], topic="invoices")
            assert [one.value for one in (await call.read()).records] == [b"heard"]

    run(check())


def test_a_subscription_may_begin_with_nothing_and_drop_a_whole_topic() -> None:
    async def check() -> None:
        async with opened() as it:
            call = await subscribed(it)
            (subscription,) = it.broker.subscriptions
            add = pb.SubscribeRequest.Add(interests=[interest()])
            await call.write(pb.SubscribeRequest(add=add))
            await eventually(lambda: len(subscription.partitions) == 4)
            drop = pb.SubscribeRequest.Drop(topic="orders")
            await call.write(pb.SubscribeRequest(drop=drop))
            await eventually(lambda: not subscription.partitions)

    run(check())


# --- endings ----------------------------------------------------------------------------------


async def ended(call: Any) -> Refused:
    """Return with what a subscription ended, whatever came before."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _read_to_the_end(call)
    return refused(caught.value)


async def _read_to_the_end(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (credit(1), "INVALID_ARGUMENT"),
        (pb.SubscribeRequest(), "INVALID_ARGUMENT"),
        (opening(interest(partition=-1)), "INVALID_ARGUMENT"),
        (opening(interest("")), "INVALID_ARGUMENT"),
        (opening(interest(), credit=-1), "INVALID_ARGUMENT"),
        (opening(interest(), format=9), "INVALID_ARGUMENT"),
        (opening(interest(start=pb.Start(offset=-1))), "INVALID_ARGUMENT"),
        (opening(interest(start=pb.Start(timestamp_us=-1))), "INVALID_ARGUMENT"),
        (opening(interest("nowhere")), "NOT_FOUND"),
        (opening(interest(partition=4)), "NOT_FOUND"),
    ],
)
def test_a_senseless_opening_is_refused(request_: pb.SubscribeRequest, code: str) -> None:
    async def check() -> None:
        async with opened() as it:
            call = it.stub.Subscribe()
            await call.write(request_)
            assert (await ended(call)).code == code

    run(check())


@pytest.mark.parametrize(
    "request_",
    [
        opening(interest()),
        pb.SubscribeRequest(),
        credit(-1),
        pb.SubscribeRequest(add=pb.SubscribeRequest.Add(interests=[interest(partition=-1)])),
        pb.SubscribeRequest(drop=pb.SubscribeRequest.Drop(topic="orders", partition=-1)),
    ],
)
def test_a_senseless_wish_ends_the_subscription(request_: pb.SubscribeRequest) -> None:
    async def check() -> None:
        async with opened() as it:
            call = await subscribed(it, interest())
            await call.write(request_)
            assert (await ended(call)).code == "INVALID_ARGUMENT"
            await eventually(lambda: not it.broker.subscriptions)

    run(check())


def test_a_stream_without_a_word_is_refused() -> None:
    async def check() -> None:
        async with opened() as it:
            call = it.stub.Subscribe()
            await call.done_writing()
            assert (await ended(call)).code == "INVALID_ARGUMENT"

    run(check())


def test_bytes_that_are_no_wish_end_the_subscription() -> None:
    async def check() -> None:
        async with opened() as it:
            call: Any = it.channel.stream_stream("/angarium.v1.Broker/Subscribe")()
            await call.write(opening(interest()).SerializeToString())
            await call.write(b"\xff\xff\xff")
            assert (await ended(call)).code == "INVALID_ARGUMENT"

    run(check())


def test_more_partitions_than_the_limit_are_refused_with_its_name() -> None:
    async def check() -> None:
        async with opened(GrpcLimits(interests_max=3)) as it:
            call = it.stub.Subscribe()
            await call.write(opening(interest()))
            end = await ended(call)
            assert (end.status, end.metadata["limit"]) == (
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "interests_max",
            )

    run(check())


def test_what_breaks_a_subscription_is_what_the_subscriber_hears() -> None:
    async def check() -> None:
        async with opened() as it:
            call = await subscribed(it, interest())
            (subscription,) = it.broker.subscriptions
            subscription.broken = CorruptData("segment 7")
            subscription.changed.set()
            assert (await ended(call)).code == "CORRUPT_DATA"
            await eventually(lambda: not it.broker.subscriptions)

    run(check())


def test_a_subscriber_that_goes_away_leaves_nothing_behind() -> None:
    async def check() -> None:
        async with opened() as it:
            for fields in ({}, {"credit": 0}, {"format": pb.FORMAT_BATCHES}):
                call = await subscribed(it, interest(), **fields)
                call.cancel()
                await eventually(lambda: not it.broker.subscriptions)

    run(check())


def test_subscribers_that_vanish_in_the_middle_of_a_delivery_are_nothing_to_complain_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, [bytes(1_000)] * 1_000)
            for number in range(40):
                async with grpc.aio.insecure_channel(f"{LOCALHOST}:{it.port}") as channel:
                    stub: Any = BrokerStub(channel)
                    call = stub.Subscribe()
                    wanted = pb.FORMAT_BATCHES if number % 2 else pb.FORMAT_RECORDS
                    await call.write(opening(interest(partition=0), format=wanted))
                    if number % 4 < 2:
                        await call.read()
                        call.cancel()
            await eventually(lambda: not it.broker.subscriptions)

    with caplog.at_level(logging.WARNING):
        run(check())
    assert [one for one in caplog.records if one.name.startswith("angarium")] == []


def test_a_closing_door_sends_subscribers_elsewhere_at_once() -> None:
    async def check() -> None:
        async with opened() as it:
            call = await subscribed(it, interest(), credit=0)
            async with asyncio.timeout(20):
                await it.door.stop(grace_s=30)
            end = await ended(call)
            assert (end.status, end.metadata["retriable"]) == (
                grpc.StatusCode.UNAVAILABLE,
                "true",
            )
            assert not it.broker.subscriptions

    run(check())
