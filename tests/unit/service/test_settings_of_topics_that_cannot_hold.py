"""Settings of topics that could not hold are refused when they are given."""

from __future__ import annotations

from typing import Any

import pytest

from angarium.api import GroupConfig, TopicConfig
from angarium.api.settings import check, settings_of
from angarium.api.topics import BATCH_BYTES_LARGEST, BATCH_BYTES_LEAST, REPLICATION_LARGEST
from angarium.batch.builder import BatchBuilder
from angarium.errors import InvalidArgument
from angarium.lending.letters import LETTER_BYTES_MAX
from angarium.machine.catalog.topics import REPLICATION_MAX
from angarium.wire.wire_limits import WireLimits


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("batch_bytes_max", (0, -1, 1, 136, 1 << 30, (16 << 20) + 1)),
        ("retention_ms", (0, -1, 1 << 60, 1 << 80)),
        ("retention_bytes", (0, -1, 1 << 63)),
        ("expiry_ms", (0, -1, 1 << 60)),
        ("tombstone_ms", (-1, 1 << 60)),
        ("dirty_percent", (0, 101)),
        ("replication", (0, 8)),
    ],
)
def test_what_cannot_hold_is_refused_by_its_name(name: str, values: tuple[int, ...]) -> None:
    for value in values:
        given: dict[str, Any] = {name: value}
        with pytest.raises(InvalidArgument, match=name):
            check(TopicConfig(**given))


def test_what_can_hold_is_taken() -> None:
    check(TopicConfig())
    for size in (BATCH_BYTES_LEAST, BATCH_BYTES_LARGEST, LETTER_BYTES_MAX):
        check(TopicConfig(batch_bytes_max=size, retention_ms=1, expiry_ms=1 << 53))


def test_the_bounds_of_batches_fit_what_carries_them() -> None:
    limits = WireLimits()
    assert 2 * BATCH_BYTES_LARGEST + limits.header_bytes_max < limits.frame_bytes_max
    assert BatchBuilder(bytes_max=BATCH_BYTES_LEAST).add(b"a value of some length" * 10)


def test_the_catalog_takes_as_many_copies_as_the_contract() -> None:
    assert REPLICATION_LARGEST == REPLICATION_MAX


def test_every_number_among_the_settings_has_bounds() -> None:
    for config in (TopicConfig, GroupConfig):
        for one in settings_of(config):
            assert (one.bounds is not None) == (one.kind is int), one.name
            assert one.about.sentence.endswith("."), one.name
