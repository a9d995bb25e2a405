"""A batch as that of another producer: the same records under a checksum that holds."""

from __future__ import annotations

import pytest

from angarium.batch import Batch, BatchBuilder
from angarium.batch.renaming import of_producer
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, ProducerId, Sequence


def made() -> bytes:
    builder = BatchBuilder()
    for number in range(3):
        builder.add(b"%d" % number)
    return bytes(builder.build(producer_id=ProducerId(7), epoch=Epoch(3), sequence=Sequence(9)))


def test_nothing_else_of_it_changes() -> None:
    renamed = Batch.parse(of_producer(memoryview(made()), ProducerId(1 << 62)))
    header = renamed.header
    assert (header.producer_id, header.epoch, header.sequence) == (1 << 62, 3, 9)
    assert [one.value for one in renamed.records(0, 3)] == [b"0", b"1", b"2"]
    assert bytes(of_producer(bytes(renamed.buffer), ProducerId(7))) == made()


def test_damage_is_not_covered_by_a_new_checksum() -> None:
    damaged = bytearray(made())
    damaged[-1] ^= 1
    with pytest.raises(InvalidBatch):
        Batch.parse(of_producer(damaged, ProducerId(8)))
    assert of_producer(b"short", ProducerId(8)) == b"short"
