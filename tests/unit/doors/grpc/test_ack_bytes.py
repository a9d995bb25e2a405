"""Acknowledgements that are written by hand say what protobuf's own messages would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.api import Ack
from angarium.doors.grpc.ack_bytes import AckWriter, stream_response
from angarium.doors.grpc.leader_hints import LeaderHints
from angarium.doors.grpc.refusals import HINT_KEY
from angarium.doors.grpc.to_messages import ack_message
from angarium.doors.grpc.wire_format import bytes_tag, number_tag, varint
from angarium.doors.intake import Placed
from angarium.ids import Micros, Offset, Term
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

INT64_MAX = (1 << 63) - 1
offsets = st.integers(0, INT64_MAX - 1_000) | st.sampled_from([0, 127, 128, 16_383, 16_384])

stored = st.builds(
    lambda base, mode, flags: Ack(
        mode=mode,
        topic="orders",
        partition=3,
        base_offset=Offset(base),
        next_offset=Offset(base + 500),
        append_time=Micros(1_700_000_000_000_000),
        term=Term(7),
        provisional=flags[0],
        duplicate=flags[1],
    ),
    offsets,
    st.sampled_from([DeliveryMode.CONSISTENT, DeliveryMode.EVENTUAL]),
    st.tuples(st.booleans(), st.booleans()),
)
passed = st.builds(
    lambda number, count: Ack(
        mode=DeliveryMode.PERFORMANCE,
        topic="orders",
        partition=0,
        term=Term(2),
        id=f"2.{number}",
        subscribers=count,
    ),
    st.integers(0, 1_000),
    st.integers(0, 300),
)
forgotten = st.just(Ack(mode=DeliveryMode.CONSISTENT, topic="a", partition=0, duplicate=True))
acks = stored | passed | forgotten


@given(st.lists(st.tuples(acks, st.lists(st.integers(0, 499), min_size=1, max_size=4)), max_size=5))
def test_every_record_of_every_batch_is_told_its_own_place(
    batches: list[tuple[Ack, list[int]]],
) -> None:
    writer = AckWriter()
    for ack, rows in batches:
        for row in rows:
            found = pb.PublishResponse.FromString(writer.response(Placed(ack, row)))
            assert found == pb.PublishResponse(ack=ack_message(ack, row=row))


@given(st.lists(st.tuples(st.integers(0, (1 << 64) - 1), acks, st.integers(0, 499)), max_size=5))
def test_results_of_a_stream_are_told_together(said: list[tuple[int, Ack, int]]) -> None:
    writer = AckWriter()
    data = stream_response([writer.result(number, Placed(ack, row)) for number, ack, row in said])
    assert pb.PublishStreamResponse.FromString(data) == pb.PublishStreamResponse(
        results=[
            pb.PublishStreamResult(number=number, acks=[ack_message(ack, row=row)])
            for number, ack, row in said
        ]
    )


@given(st.integers(0, (1 << 64) - 1))
def test_numbers_are_written_as_protobuf_writes_them(number: int) -> None:
    data = number_tag(pb.PublishStreamResult.NUMBER_FIELD_NUMBER) + varint(number)
    assert pb.PublishStreamResult.FromString(data).number == number
    if number:
        assert pb.PublishStreamResult(number=number).SerializeToString() == data


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000])
def test_what_has_a_length_is_written_as_protobuf_writes_it(size: int) -> None:
    data = bytes_tag(pb.NewRecord.VALUE_FIELD_NUMBER) + varint(size) + bytes(size)
    assert pb.NewRecord(value=bytes(size)).SerializeToString() == data


def test_who_leads_is_asked_once_for_the_records_of_a_batch() -> None:
    asked: list[tuple[str, int]] = []
    where: dict[str, str | None] = {"orders": "10.0.0.2:7401", "own": None}

    def leader_hint(topic: str, partition: int) -> str | None:
        asked.append((topic, partition))
        return where[topic]

    hints = LeaderHints(leader_hint)
    elsewhere = Ack(mode=DeliveryMode.CONSISTENT, topic="orders", partition=1)
    here = Ack(mode=DeliveryMode.CONSISTENT, topic="own", partition=0)
    for _ in range(3):
        assert hints.about(elsewhere) == ((HINT_KEY, "10.0.0.2:7401"),)
    for _ in range(3):
        assert hints.about(here) == ()
    assert hints.about(elsewhere) == ((HINT_KEY, "10.0.0.2:7401"),)
    assert asked == [("orders", 1), ("own", 0), ("orders", 1)]
    assert LeaderHints(None).about(elsewhere) == ()
