"""Records through protobuf and batches and back: nothing is lost, nothing invented."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.batch import NEVER, TIME_MAX, Batch, BatchBuilder, Record
from angarium.doors.grpc.record_messages import add_records, outgoing
from angarium.doors.grpc.wire_format import varint
from angarium.doors.intake import Outgoing, ProducerIdentity
from angarium.doors.intake.outgoing import added, single_batch
from angarium.doors.intake.packing import cut
from angarium.ids import Epoch, ProducerId, Sequence
from angarium.proto.v1 import broker_pb2 as pb

MAYBE_BYTES = st.none() | st.binary(max_size=20)
TIMES = st.integers(0, TIME_MAX)

NEW_RECORDS = st.builds(
    pb.NewRecord,
    key=MAYBE_BYTES,
    value=MAYBE_BYTES,
    headers=st.lists(
        st.builds(
            pb.Header,
            name=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
            value=MAYBE_BYTES,
        ),
        max_size=3,
    ),
    timestamp_us=TIMES,
    expires_at_us=TIMES,
    deliver_at_us=TIMES,
)


def same(stored: Record, sent: pb.NewRecord) -> bool:
    times = outgoing(sent)[3:]
    return (
        stored.key == (sent.key if sent.HasField("key") else None)
        and stored.value == (sent.value if sent.HasField("value") else None)
        and list(stored.headers)
        == [(one.name, one.value if one.HasField("value") else None) for one in sent.headers]
        and (stored.timestamp, stored.expires_at, stored.deliver_at) == times
    )


@settings(max_examples=150)
@given(NEW_RECORDS)
def test_a_single_record_survives_the_way_in(sent: pb.NewRecord) -> None:
    identity = ProducerIdentity(ProducerId(5), Epoch(6), Sequence(7))
    batch = Batch.parse(single_batch(outgoing(sent), identity))
    (stored,) = batch
    assert same(stored, sent)
    assert (batch.producer_id, batch.epoch, batch.first_sequence) == (5, 6, 7)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 129, 16_383, 16_384, 16_385, 1 << 21])
def test_a_value_of_any_size_is_all_there_is_unless_more_is_said(size: int) -> None:
    value = bytes(size)
    assert outgoing(pb.NewRecord(value=value)) == Outgoing(value)
    assert outgoing(pb.NewRecord(value=value, key=b"")) == Outgoing(value, b"")
    assert outgoing(pb.NewRecord(value=value, timestamp_us=1)) == Outgoing(value, timestamp=1)
    soon = pb.NewRecord(value=value, deliver_at_us=5)
    assert outgoing(soon) == Outgoing(value, deliver_at=5)
    # What a newer client says and this release does not know.
    unknown = pb.NewRecord.FromString(soon.SerializeToString() + varint(99 << 3) + b"\x01")
    assert outgoing(unknown) == Outgoing(value, deliver_at=5)


@settings(max_examples=80)
@given(st.lists(NEW_RECORDS, min_size=1, max_size=20))
def test_both_ways_of_packing_say_the_same(sent: list[pb.NewRecord]) -> None:
    builder = BatchBuilder()
    assert all(added(builder, outgoing(one)) for one in sent)
    together = list(Batch.parse(builder.build()))
    alone = [next(iter(Batch.parse(single_batch(outgoing(one))))) for one in sent]
    assert [(one.key, one.value, one.headers) for one in together] == [
        (one.key, one.value, one.headers) for one in alone
    ]
    assert all(same(stored, one) for stored, one in zip(together, sent, strict=True))


@settings(max_examples=80)
@given(st.lists(NEW_RECORDS, min_size=1, max_size=20), st.integers(1, 2_000))
def test_a_record_survives_the_way_in_and_out(sent: list[pb.NewRecord], bytes_max: int) -> None:
    ((packed, count),) = cut(list(map(outgoing, sent)), bytes_max=1 << 20)
    batch = Batch.parse(packed)
    assert len(batch) == count == len(sent)
    response = pb.FetchResponse()
    position = 0
    while position < len(batch):
        count = add_records(response, batch, position, len(batch), live=False, bytes_max=bytes_max)
        assert count >= 1
        position += count
    for offset, (found, one) in enumerate(zip(response.records, sent, strict=True)):
        assert found.offset == offset
        for name in ("key", "value"):
            assert found.HasField(name) == one.HasField(name)
            assert getattr(found, name) == getattr(one, name)
        assert list(found.headers) == list(one.headers)
        assert found.timestamp_us == one.timestamp_us
        assert found.expires_at_us == one.expires_at_us
        assert found.deliver_at_us == one.deliver_at_us


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=40), st.integers(700, 5_000))
def test_batches_of_records_keep_order_and_number_every_record(
    sizes: list[int], bytes_max: int
) -> None:
    sent = [pb.NewRecord(value=bytes(size)) for size in sizes]
    identity = ProducerIdentity(ProducerId(1), Epoch(0), Sequence(100))
    records = list(map(outgoing, sent))
    batches = [Batch.parse(one) for one, _ in cut(records, producers=identity, bytes_max=bytes_max)]
    assert [len(value or b"") for one in batches for value in one.values()] == sizes
    following = 100
    for one in batches:
        assert one.first_sequence == following
        following += len(one)
        # Only a record too large for any batch of this size may go beyond it, alone.
        assert len(one.buffer) <= bytes_max or len(one) == 1


def test_a_record_that_never_expires_says_nothing_about_it() -> None:
    (stored,) = Batch.parse(single_batch(outgoing(pb.NewRecord(value=b"v"))))
    assert stored.expires_at == NEVER
    assert stored.deliver_at == 0


@given(st.integers(0, 2**63 - 1))
def test_numbers_are_written_as_protobuf_reads_them(number: int) -> None:
    tag = varint(pb.FindOffsetResponse.OFFSET_FIELD_NUMBER << 3)
    assert pb.FindOffsetResponse.FromString(tag + varint(number)).offset == number
