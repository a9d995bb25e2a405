"""Publish and PublishBatch over a real connection."""

from __future__ import annotations

import time

import grpc
import pytest
from tests.component.doors.grpc.opened import opened, refusal
from tests.on_a_loop import run

from angarium.batch import Batch, encode, key_hash
from angarium.errors import DiskFull, NotLeader, OutcomeUnknown
from angarium.ids import Sequence
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

MODES = {
    pb.DELIVERY_MODE_UNSPECIFIED: None,
    pb.DELIVERY_MODE_CONSISTENT: DeliveryMode.CONSISTENT,
    pb.DELIVERY_MODE_EVENTUAL: DeliveryMode.EVENTUAL,
    pb.DELIVERY_MODE_PERFORMANCE: DeliveryMode.PERFORMANCE,
}


def a_record(**fields: object) -> pb.NewRecord:
    return pb.NewRecord(**({"value": b"v"} | fields))  # type: ignore[arg-type]


def test_a_record_is_stored_as_it_was_sent_and_its_ack_says_where() -> None:
    async def check() -> None:
        async with opened() as it:
            record = pb.NewRecord(
                key=b"k",
                value=b"v",
                headers=[
                    pb.Header(name="trace", value=b"1"),
                    pb.Header(name="trace", value=b"2"),
                    pb.Header(name="nothing"),
                ],
                timestamp_us=1_650_000_000_000_000,
                expires_at_us=1_900_000_000_000_000,
                deliver_at_us=1_800_000_000_000_000,
            )
            request = pb.PublishRequest(topic="orders", partition=2, record=record)
            ack = (await it.stub.Publish(request)).ack
            assert (ack.topic, ack.partition, ack.offset, ack.next_offset) == ("orders", 2, 0, 1)
            assert ack.mode == pb.DELIVERY_MODE_CONSISTENT
            assert ack.term == 3
            assert not ack.provisional
            (stored,) = Batch.parse(it.broker.partition("orders", 2).batches[0])
            assert (stored.key, stored.value) == (b"k", b"v")
            assert stored.headers == (("trace", b"1"), ("trace", b"2"), ("nothing", None))
            assert stored.timestamp == 1_650_000_000_000_000
            assert stored.expires_at == 1_900_000_000_000_000
            assert stored.deliver_at == 1_800_000_000_000_000
            assert stored.append_time == ack.append_time_us

    run(check())


def test_null_and_empty_are_told_apart() -> None:
    async def check() -> None:
        async with opened() as it:
            for record in (pb.NewRecord(), pb.NewRecord(key=b"", value=b"")):
                await it.stub.Publish(pb.PublishRequest(topic="orders", partition=0, record=record))
            stored = [
                next(iter(Batch.parse(one)))
                for one in it.broker.topics["orders"].partitions[0].batches
            ]
            assert [(one.key, one.value) for one in stored] == [(None, None), (b"", b"")]

    run(check())


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_reaches_the_broker_and_the_ack_names_it(mode: pb.DeliveryMode) -> None:
    async def check() -> None:
        async with opened() as it:
            request = pb.PublishRequest(topic="orders", partition=0, record=a_record(), mode=mode)
            ack = (await it.stub.Publish(request)).ack
            assert it.broker.requests[0].mode is MODES[mode]
            assert ack.mode == (mode or pb.DELIVERY_MODE_CONSISTENT)
            assert ack.provisional is (mode == pb.DELIVERY_MODE_EVENTUAL)
            if mode == pb.DELIVERY_MODE_PERFORMANCE:
                assert not ack.HasField("offset")
                assert (ack.id, ack.subscribers) == ("3-1", 0)

    run(check())


def test_a_key_chooses_the_partition_by_its_hash() -> None:
    async def check() -> None:
        async with opened() as it:
            for number in range(12):
                key = f"customer-{number}".encode()
                request = pb.PublishRequest(topic="orders", record=a_record(key=key))
                ack = (await it.stub.Publish(request)).ack
                assert ack.partition == key_hash(key) % 4

    run(check())


def test_records_without_key_and_partition_take_turns() -> None:
    async def check() -> None:
        async with opened() as it:
            request = pb.PublishRequest(topic="orders", record=a_record())
            found = [(await it.stub.Publish(request)).ack.partition for _ in range(8)]
            assert sorted(found) == [0, 0, 1, 1, 2, 2, 3, 3]
            assert found[:4] == found[4:]

    run(check())


def test_delay_and_expiry_count_from_now() -> None:
    async def check() -> None:
        async with opened() as it:
            before = time.time_ns() // 1_000
            record = a_record(expires_after_ms=60_000, deliver_after_ms=5_000)
            await it.stub.Publish(pb.PublishRequest(topic="orders", partition=0, record=record))
            after = time.time_ns() // 1_000
            (stored,) = Batch.parse(it.broker.partition("orders", 0).batches[0])
            assert before + 60_000_000 <= stored.expires_at <= after + 60_000_000
            assert before + 5_000_000 <= stored.deliver_at <= after + 5_000_000

    run(check())


def test_a_repeated_publish_of_a_producer_is_stored_once() -> None:
    async def check() -> None:
        async with opened() as it:
            opening = await it.stub.OpenProducer(pb.OpenProducerRequest())
            producer = pb.Producer(id=opening.producer_id, epoch=opening.epoch, sequence=0)
            request = pb.PublishRequest(
                topic="orders", partition=1, record=a_record(), producer=producer
            )
            acks = [(await it.stub.Publish(request)).ack for _ in range(2)]
            assert [ack.duplicate for ack in acks] == [False, True]
            assert it.broker.partition("orders", 1).end == 1
            request.producer.sequence = 5
            refused = await refusal(it.stub.Publish(request))
            assert refused.code == "SEQUENCE_GAP"

    run(check())


@pytest.mark.parametrize(
    "request_",
    [
        pb.PublishRequest(topic="orders", partition=-1, record=a_record()),
        pb.PublishRequest(topic="orders", record=a_record(), mode=77),  # type: ignore[arg-type]
        pb.PublishRequest(topic="orders", record=a_record(), producer=pb.Producer(id=7)),
        pb.PublishRequest(topic="orders", partition=0, record=a_record(), producer=pb.Producer()),
        pb.PublishRequest(
            topic="orders", partition=0, record=a_record(), producer=pb.Producer(id=7, sequence=-1)
        ),
        pb.PublishRequest(topic="orders", record=a_record(expires_after_ms=-1)),
        pb.PublishRequest(topic="orders", record=a_record(deliver_after_ms=-1)),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_broker_sees_it(
    request_: pb.PublishRequest,
) -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refusal(it.stub.Publish(request_))
            assert (refused.status, refused.code) == (
                grpc.StatusCode.INVALID_ARGUMENT,
                "INVALID_ARGUMENT",
            )
            assert it.broker.requests == []

    run(check())


@pytest.mark.parametrize(
    "record",
    [
        a_record(timestamp_us=-1),
        a_record(timestamp_us=2**62),
        a_record(expires_at_us=-1),
        a_record(deliver_at_us=-1),
        a_record(deliver_after_ms=2**62),
        a_record(expires_after_ms=2**62),
    ],
)
def test_times_out_of_this_world_are_refused(record: pb.NewRecord) -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refusal(
                it.stub.Publish(pb.PublishRequest(topic="orders", record=record))
            )
            assert refused.code == "INVALID_BATCH"
            assert it.broker.requests == []

    run(check())


def test_an_unknown_topic_or_partition_is_not_found() -> None:
    async def check() -> None:
        async with opened() as it:
            for topic, partition in (("nowhere", 0), ("orders", 4), ("orders", 2**31 - 1)):
                request = pb.PublishRequest(topic=topic, partition=partition, record=a_record())
                refused = await refusal(it.stub.Publish(request))
                assert (refused.status, refused.code) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")

    run(check())


def test_a_topic_that_was_made_anew_with_fewer_partitions_is_noticed() -> None:
    async def check() -> None:
        async with opened() as it:
            request = pb.PublishRequest(topic="orders", record=a_record())
            for _ in range(3):
                await it.stub.Publish(request)
            await it.broker.delete_topic("orders")
            await it.broker.create_topic("orders", partitions=1, config=it.broker.calls[0][3])  # type: ignore[arg-type]
            # The first one may still go to a partition that is gone; then the door looks again.
            await refusal(it.stub.Publish(pb.PublishRequest(topic="orders", partition=3)))
            for _ in range(4):
                assert (await it.stub.Publish(request)).ack.partition == 0

    run(check())


def test_a_publish_that_was_passed_on_says_who_leads() -> None:
    async def check() -> None:
        def hint(topic: str, partition: int) -> str | None:
            return "10.0.0.2:7401" if (topic, partition) == ("orders", 2) else None

        async with opened(leader_hint=hint) as it:
            for partition, expected in ((2, "10.0.0.2:7401"), (1, None)):
                call = it.stub.Publish(
                    pb.PublishRequest(topic="orders", partition=partition, record=a_record())
                )
                await call
                assert dict(await call.trailing_metadata()).get("x-leader-hint") == expected

    run(check())


# --- many at once -----------------------------------------------------------------------------


def test_many_records_go_where_their_keys_say_and_the_answer_places_each() -> None:
    async def check() -> None:
        async with opened() as it:
            records = [a_record(key=b"k%d" % n, value=b"%d" % n) for n in range(50)]
            records += [a_record(value=b"no key %d" % n) for n in range(10)]
            answer = await it.stub.PublishBatch(
                pb.PublishBatchRequest(topic="orders", records=records)
            )
            assert len(answer.partitions) == 60
            for n in range(50):
                assert answer.partitions[n] == key_hash(b"k%d" % n) % 4
            assert len(set(answer.partitions[50:])) == 1
            # The n-th record of a partition has the n-th of the offsets that its acks cover.
            offsets = {ack.partition: ack.offset for ack in answer.acks}
            for record, partition in zip(records, answer.partitions, strict=True):
                stored = [
                    one
                    for batch in it.broker.partition("orders", partition).batches
                    for one in Batch.parse(batch)
                ]
                assert stored[offsets[partition]].value == record.value
                offsets[partition] += 1
            assert all(ack.next_offset == offsets[ack.partition] for ack in answer.acks)

    run(check())


def test_records_of_a_producer_are_numbered_through_all_their_batches() -> None:
    async def check() -> None:
        async with opened() as it:
            records = [a_record(value=bytes(300_000)) for _ in range(9)]
            request = pb.PublishBatchRequest(
                topic="orders",
                partition=0,
                records=records,
                producer=pb.Producer(id=9, epoch=2, sequence=0),
            )
            answer = await it.stub.PublishBatch(request)
            assert len(answer.acks) > 1
            batches = [Batch.parse(one) for one in it.broker.requests[0].batches]
            assert [one.producer_id for one in batches] == [9] * len(batches)
            assert [one.epoch for one in batches] == [2] * len(batches)
            following = 0
            for one in batches:
                assert one.first_sequence == following
                following += len(one)
            assert following == 9

    run(check())


def test_a_large_record_among_small_ones_keeps_its_place() -> None:
    async def check() -> None:
        async with opened() as it:
            values = [b"a", bytes(900_000), b"b", b"c"]
            request = pb.PublishBatchRequest(
                topic="orders", partition=0, records=[a_record(value=one) for one in values]
            )
            answer = await it.stub.PublishBatch(request)
            assert [ack.next_offset - ack.offset for ack in answer.acks] == [1, 1, 2]
            (sent,) = it.broker.requests
            assert [value for one in sent.batches for value in Batch.parse(one).values()] == values

    run(check())


def test_packed_batches_arrive_as_they_are() -> None:
    async def check() -> None:
        async with opened() as it:
            batches = [encode([b"%d" % n] * 3, keys=[b"k"] * 3) for n in range(4)]
            request = pb.PublishBatchRequest(
                topic="orders",
                partition=1,
                packed=b"".join(batches),
                mode=pb.DELIVERY_MODE_EVENTUAL,
            )
            answer = await it.stub.PublishBatch(request)
            assert [(ack.offset, ack.next_offset) for ack in answer.acks] == [
                (0, 3),
                (3, 6),
                (6, 9),
                (9, 12),
            ]
            assert all(ack.provisional for ack in answer.acks)
            (sent,) = it.broker.requests
            assert sent.mode is DeliveryMode.EVENTUAL
            # Only the leader's stamp, from byte 8 to 36, has changed.
            assert [bytes(one[36:]) for one in sent.batches] == [bytes(one[36:]) for one in batches]

    run(check())


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (pb.PublishBatchRequest(topic="orders"), "INVALID_ARGUMENT"),
        (pb.PublishBatchRequest(topic="orders", packed=bytes(encode([b"v"]))), "INVALID_ARGUMENT"),
        (
            pb.PublishBatchRequest(
                topic="orders", partition=0, packed=bytes(encode([b"v"])), records=[a_record()]
            ),
            "INVALID_ARGUMENT",
        ),
        (
            pb.PublishBatchRequest(
                topic="orders",
                partition=0,
                packed=bytes(encode([b"v"])),
                producer=pb.Producer(id=7),
            ),
            "INVALID_ARGUMENT",
        ),
        (
            pb.PublishBatchRequest(
                topic="orders", records=[a_record()], producer=pb.Producer(id=7)
            ),
            "INVALID_ARGUMENT",
        ),
        (pb.PublishBatchRequest(topic="orders", partition=-2, packed=b"x"), "INVALID_ARGUMENT"),
        (
            pb.PublishBatchRequest(topic="orders", partition=-2, records=[a_record()]),
            "INVALID_ARGUMENT",
        ),
        (pb.PublishBatchRequest(topic="orders", partition=0, packed=b"rubbish"), "INVALID_BATCH"),
        (pb.PublishBatchRequest(topic="orders", partition=0, packed=bytes(500)), "INVALID_BATCH"),
        (
            pb.PublishBatchRequest(topic="orders", partition=0, packed=bytes(encode([b"v"]))[:-8]),
            "INVALID_BATCH",
        ),
        (
            pb.PublishBatchRequest(
                topic="orders", partition=0, packed=bytes(encode([b"v"])) + b"more"
            ),
            "INVALID_BATCH",
        ),
    ],
)
def test_a_senseless_batch_request_is_refused_before_the_broker_sees_it(
    request_: pb.PublishBatchRequest, code: str
) -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refusal(it.stub.PublishBatch(request_))
            assert (refused.status, refused.code) == (grpc.StatusCode.INVALID_ARGUMENT, code)
            assert it.broker.requests == []

    run(check())


def test_a_flipped_bit_in_a_packed_batch_is_refused_by_the_broker_and_stored_nowhere() -> None:
    async def check() -> None:
        async with opened() as it:
            bad = encode([b"value"])
            bad[-9] ^= 1
            request = pb.PublishBatchRequest(topic="orders", partition=0, packed=bytes(bad))
            refused = await refusal(it.stub.PublishBatch(request))
            assert refused.code == "INVALID_BATCH"
            assert it.broker.partition("orders", 0).end == 0

    run(check())


def test_success_means_all_and_a_partial_failure_tells_which_part() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.trouble_in = {2: DiskFull("no room")}
            records = [a_record(key=b"k%d" % n) for n in range(40)]
            refused = await refusal(
                it.stub.PublishBatch(pb.PublishBatchRequest(topic="orders", records=records))
            )
            assert (refused.status, refused.code) == (
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "DISK_FULL",
            )
            (answer,) = refused.details
            failed = {ack.partition: ack.error for ack in answer.acks if ack.HasField("error")}
            assert failed.keys() == {2}
            assert (failed[2].code, failed[2].retriable) == ("DISK_FULL", True)
            for ack in answer.acks:
                if ack.partition != 2:
                    assert it.broker.partition("orders", ack.partition).end == ack.next_offset

    run(check())


def test_one_refused_batch_of_several_fails_the_call_and_shows_in_the_details() -> None:
    async def check() -> None:
        async with opened() as it:
            producer = (await it.broker.open_producer()).id
            first = encode([b"first"], producer_id=producer)
            gap = encode([b"second"], producer_id=producer, sequence=Sequence(5))
            packed = bytes(first + gap + encode([b"third"]))
            refused = await refusal(
                it.stub.PublishBatch(
                    pb.PublishBatchRequest(topic="orders", partition=0, packed=packed)
                )
            )
            assert refused.code == "SEQUENCE_GAP"
            (answer,) = refused.details
            assert [ack.error.code for ack in answer.acks] == ["", "SEQUENCE_GAP", ""]
            assert [ack.offset for ack in answer.acks] == [0, 0, 1]

    run(check())


def test_an_answer_too_long_for_the_details_is_left_out_of_them() -> None:
    async def check() -> None:
        async with opened(topics={"wide": 200}) as it:
            it.broker.trouble = OutcomeUnknown("the leader went silent")
            records = [a_record(key=b"k%d" % n) for n in range(1_000)]
            refused = await refusal(
                it.stub.PublishBatch(pb.PublishBatchRequest(topic="wide", records=records))
            )
            assert (refused.status, refused.code) == (grpc.StatusCode.UNKNOWN, "OUTCOME_UNKNOWN")
            assert refused.details == []

    run(check())


def test_a_batch_call_without_a_leader_names_the_one_that_is_known() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.trouble = NotLeader(leader=3)
            request = pb.PublishBatchRequest(topic="orders", records=[a_record()])
            refused = await refusal(it.stub.PublishBatch(request))
            assert (refused.status, refused.hint) == (
                grpc.StatusCode.UNAVAILABLE,
                "10.0.0.3:7401",
            )

    run(check())
