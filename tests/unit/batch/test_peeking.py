"""Numbers of a batch, looked up where its header has them."""

from __future__ import annotations

from angarium.batch import BatchBuilder
from angarium.batch.layout import HEADER_BYTES, unpacked_header
from angarium.batch.peeking import producer_in, records_in
from angarium.ids import Epoch, ProducerId, Sequence


def test_they_are_those_of_the_header() -> None:
    builder = BatchBuilder()
    for number in range(7):
        builder.add(b"%d" % number)
    batch = builder.build(producer_id=ProducerId(1 << 61), epoch=Epoch(3), sequence=Sequence(9))
    header = unpacked_header(batch)
    assert (records_in(batch), producer_in(batch)) == (header.count, header.producer_id)
    assert records_in(memoryview(batch)) == 7


def test_what_is_too_short_to_be_a_batch_says_nothing() -> None:
    assert records_in(b"") == producer_in(b"") == 0
    assert records_in(bytes([255]) * (HEADER_BYTES - 1)) == 0
