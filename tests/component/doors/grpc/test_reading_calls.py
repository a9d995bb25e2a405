"""Fetch and FindOffset over a real connection."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import grpc
import pytest
from tests.component.doors.grpc.opened import Opened, opened, refusal
from tests.on_a_loop import run

from angarium.api import FETCH_BYTES_MAX, FETCH_WAIT_MS_MAX, FetchRequest, PublishRequest
from angarium.batch import Batch, Codec, encode, split
from angarium.doors.grpc import GrpcLimits
from angarium.ids import Micros
from angarium.proto.v1 import broker_pb2 as pb

TRIES = 10
"""Calls with a deadline of which one is answered in time, also on a machine that does much else."""


async def stored(it: Opened, *batches: bytearray) -> None:
    """Publish batches to orders/0 behind the door's back."""
    await it.broker.publish(PublishRequest(topic="orders", partition=0, batches=batches))


def fetch_requests(it: Opened) -> list[FetchRequest]:
    return [one[1] for one in it.broker.calls if one[0] == "fetch"]  # type: ignore[misc]


async def all_records(it: Opened, **fields: object) -> tuple[list[pb.Record], int]:
    """Fetch from the start until nothing comes; return everything, and how many calls it took."""
    found: list[pb.Record] = []
    calls = following = 0
    while True:
        request = pb.FetchRequest(topic="orders", offset=following, **fields)  # type: ignore[arg-type]
        answer = await it.stub.Fetch(request)
        if not answer.records:
            return found, calls
        found += answer.records
        calls += 1
        assert answer.next_offset > following
        following = answer.next_offset


def test_records_come_back_as_they_were_published() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(
                it,
                encode(
                    [b"v", None, b""],
                    keys=[None, b"k", b""],
                    headers=[None, [("a", b"1"), ("a", None)], None],
                    timestamps=[0, 5, 6],
                    expires_at=[2**63 - 1, 9, 2**63 - 1],
                    deliver_at=[0, 0, 8],
                ),
            )
            answer = await it.stub.Fetch(pb.FetchRequest(topic="orders"))
            assert (answer.start_offset, answer.end_offset, answer.next_offset) == (0, 3, 3)
            one, two, three = answer.records
            assert (one.offset, two.offset, three.offset) == (0, 1, 2)
            assert (one.HasField("key"), one.value) == (False, b"v")
            assert (two.key, two.HasField("value")) == (b"k", False)
            assert three.HasField("key")
            assert three.HasField("value")
            assert [(header.name, header.HasField("value")) for header in two.headers] == [
                ("a", True),
                ("a", False),
            ]
            assert [record.timestamp_us for record in answer.records] == [0, 5, 6]
            assert [record.expires_at_us for record in answer.records] == [0, 9, 0]
            assert [record.deliver_at_us for record in answer.records] == [0, 0, 8]
            assert len({record.append_time_us for record in answer.records}) == 1

    run(check())


def test_an_empty_partition_gives_an_empty_answer() -> None:
    async def check() -> None:
        async with opened() as it:
            for wanted in (pb.FORMAT_RECORDS, pb.FORMAT_BATCHES):
                answer = await it.stub.Fetch(pb.FetchRequest(topic="orders", format=wanted))
                assert (answer.next_offset, len(answer.records), answer.batches) == (0, 0, b"")

    run(check())


def test_batches_come_as_they_are_stored() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, encode([b"0", b"1"]), encode([b"2"], codec=Codec.ZSTD))
            request = pb.FetchRequest(topic="orders", offset=1, format=pb.FORMAT_BATCHES)
            answer = await it.stub.Fetch(request)
            assert [bytes(one) for one in split(answer.batches)] == it.broker.partition(
                "orders", 0
            ).batches
            assert answer.next_offset == 3

    run(check())


def test_records_below_the_offset_are_left_out() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, encode([b"%d" % n for n in range(10)]))
            answer = await it.stub.Fetch(pb.FetchRequest(topic="orders", offset=7))
            assert [one.offset for one in answer.records] == [7, 8, 9]

    run(check())


def test_offsets_that_compaction_emptied_are_stepped_over() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, encode([b"%d" % n for n in range(10)]), encode([b"last"]))
            batches = it.broker.partition("orders", 0).batches
            batches[0] = bytearray(Batch.parse(batches[0]).retain([2, 5]))
            found, _ = await all_records(it)
            assert [one.offset for one in found] == [2, 5, 10]
            batches[0] = bytearray(Batch.parse(batches[0], compacted=True).retain([]))
            answer = await it.stub.Fetch(pb.FetchRequest(topic="orders", bytes_max=1))
            assert (answer.next_offset, len(answer.records)) == (10, 0)

    run(check())


def test_an_answer_is_cut_to_the_bytes_asked_for_and_fetching_goes_on_without_gap() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, *(encode([bytes(100)] * 50) for _ in range(4)))
            found, calls = await all_records(it, bytes_max=2_000)
            assert [one.offset for one in found] == list(range(200))
            assert 10 < calls < 20
            _, calls = await all_records(it, bytes_max=1)
            assert calls == 200

    run(check())


def test_a_batch_that_grows_when_it_is_opened_is_cut_as_well() -> None:
    async def check() -> None:
        async with opened(GrpcLimits(fetch_bytes_max=1 << 20)) as it:
            bomb = encode([bytes(1_000)] * 10_000, codec=Codec.ZSTD)
            assert len(bomb) < 50_000
            await stored(it, bomb)
            request = pb.FetchRequest(topic="orders", bytes_max=2**31 - 1)
            answer = await it.stub.Fetch(request)
            assert answer.ByteSize() < 1.1 * (1 << 20)
            assert answer.next_offset == len(answer.records)

    run(check())


def test_a_record_larger_than_everything_comes_alone() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, encode([b"a", bytes(3_000_000), b"b"]))
            found, _ = await all_records(it, bytes_max=1_000)
            assert [len(one.value) for one in found] == [1, 3_000_000, 1]

    run(check())


def test_what_is_asked_reaches_the_broker_within_its_bounds() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, encode([b"v"]))
            await it.stub.Fetch(
                pb.FetchRequest(topic="orders", bytes_max=77, wait_ms=5, fresh=True)
            )
            await it.stub.Fetch(pb.FetchRequest(topic="orders"))
            await it.stub.Fetch(
                pb.FetchRequest(
                    topic="orders",
                    bytes_max=2**31 - 1,
                    wait_ms=2**31 - 1,
                    format=pb.FORMAT_BATCHES,
                )
            )
            asked, plain, greedy = fetch_requests(it)
            assert (asked.bytes_max, asked.wait_ms, asked.fresh) == (77, 5, True)
            assert (plain.bytes_max, plain.wait_ms, plain.fresh) == (1 << 20, 0, False)
            assert (greedy.bytes_max, greedy.wait_ms) == (FETCH_BYTES_MAX, FETCH_WAIT_MS_MAX)

    run(check())


def test_a_fetch_that_waits_answers_before_its_deadline() -> None:
    async def check() -> None:
        async with opened() as it:
            request = pb.FetchRequest(topic="orders", wait_ms=20_000)
            answer = None
            for _ in range(TRIES):
                with suppress(grpc.aio.AioRpcError):  # the way back took longer than is kept for it
                    answer = await it.stub.Fetch(request, timeout=2)
                    break
            assert answer is not None, "it never answers in time"
            assert len(answer.records) == 0

    run(check())


@pytest.mark.parametrize(
    "request_",
    [
        pb.FetchRequest(topic="orders", partition=-1),
        pb.FetchRequest(topic="orders", offset=-1),
        pb.FetchRequest(topic="orders", bytes_max=-1),
        pb.FetchRequest(topic="orders", wait_ms=-1),
        pb.FetchRequest(topic="orders", format=3),  # type: ignore[arg-type]
    ],
)
def test_a_senseless_fetch_is_refused_before_the_broker_sees_it(request_: pb.FetchRequest) -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refusal(it.stub.Fetch(request_))
            assert refused.code == "INVALID_ARGUMENT"
            assert fetch_requests(it) == []

    run(check())


def test_an_offset_that_was_never_written_is_out_of_range_and_the_range_is_told() -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refusal(it.stub.Fetch(pb.FetchRequest(topic="orders", offset=9)))
            assert (refused.status, refused.code) == (
                grpc.StatusCode.OUT_OF_RANGE,
                "OFFSET_OUT_OF_RANGE",
            )
            told = {name: refused.metadata[name] for name in ("offset", "start", "end")}
            assert told == {"offset": "9", "start": "0", "end": "0"}

    run(check())


def test_a_stored_batch_that_cannot_be_read_is_reported_as_damage() -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, encode([b"v"]))
            it.broker.partition("orders", 0).batches[0] = (
                it.broker.partition("orders", 0).batches[0][:-8] + b"damaged!"
            )
            refused = await refusal(it.stub.Fetch(pb.FetchRequest(topic="orders")))
            assert refused.status is grpc.StatusCode.DATA_LOSS
            assert refused.metadata["fault"] == "data"

    run(check())


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (pb.Start(earliest=pb.Start.Earliest()), 0),
        (pb.Start(latest=pb.Start.Latest()), 3),
        (pb.Start(), 3),
        (None, 3),
        (pb.Start(offset=2), 2),
        (pb.Start(timestamp_us=1), 0),
        (pb.Start(timestamp_us=1_900_000_000_000_000), 3),
    ],
)
def test_a_place_has_an_offset(start: pb.Start | None, expected: int) -> None:
    async def check() -> None:
        async with opened() as it:
            await stored(it, encode([b"0", b"1", b"2"]))
            answer = await it.stub.FindOffset(pb.FindOffsetRequest(topic="orders", start=start))
            assert answer.offset == expected

    run(check())


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (pb.FindOffsetRequest(topic="nowhere"), "NOT_FOUND"),
        (pb.FindOffsetRequest(topic="orders", partition=7), "NOT_FOUND"),
        (pb.FindOffsetRequest(topic="orders", partition=-7), "INVALID_ARGUMENT"),
        (pb.FindOffsetRequest(topic="orders", start=pb.Start(offset=-7)), "INVALID_ARGUMENT"),
    ],
)
def test_a_place_that_is_nowhere_is_refused(request_: pb.FindOffsetRequest, code: str) -> None:
    async def check() -> None:
        async with opened() as it:
            assert (await refusal(it.stub.FindOffset(request_))).code == code

    run(check())


def test_a_call_past_its_deadline_is_cancelled_behind_the_door() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                # Long enough for the call to get there on a busy machine.
                await it.stub.Fetch(pb.FetchRequest(topic="orders"), timeout=2)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            async with asyncio.timeout(60):
                while not it.broker.cancelled:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)

    run(check())


@pytest.mark.parametrize("bytes_max", [1, 0])
def test_expired_records_are_left_out_and_named(bytes_max: int) -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.now = Micros(10)
            never = 2**63 - 1
            await stored(it, encode([b"a", b"b", b"c"], expires_at=[9, never, 10]))
            await stored(
                it, encode([b"d", b"e"], expires_at=[10, 11]), encode([b"f"], expires_at=3)
            )
            found, following = [], 0
            while following < 6:
                answer = await it.stub.Fetch(
                    pb.FetchRequest(topic="orders", offset=following, bytes_max=bytes_max)
                )
                found += [(one.offset, one.value) for one in answer.records]
                assert answer.next_offset > following
                following = answer.next_offset
            assert found == [(1, b"b"), (4, b"e")]
            batches = await it.stub.Fetch(pb.FetchRequest(topic="orders", format=pb.FORMAT_BATCHES))
            assert list(batches.expired) == [0, 1, 2, 4, 5, 6]

    run(check())
