"""What a topic's settings refuse of what is published to it."""

from __future__ import annotations

from typing import Any

import pytest

from angarium.batch import encode
from angarium.errors import InvalidArgument
from angarium.ids import Micros
from angarium.machine.catalog import TopicSettings
from angarium.machine.catalog.values import Cleanup
from angarium.service.admission import check_fit

SECOND = 1_000_000
NOW = Micros(1_000 * SECOND)


def check(settings: TopicSettings, **columns: Any) -> None:
    check_fit([encode([b"a", b"b"], **columns)], settings, now=lambda: NOW)


def test_a_delivery_within_the_retention_is_taken() -> None:
    check(TopicSettings())
    check(TopicSettings(), deliver_at=NOW + 10**12)
    check(TopicSettings(retention_micros=60 * SECOND))
    check(TopicSettings(retention_micros=60 * SECOND), deliver_at=[0, NOW + 60 * SECOND])


def test_a_delivery_beyond_the_retention_is_refused_and_both_are_named() -> None:
    settings = TopicSettings(retention_micros=60 * SECOND)
    with pytest.raises(InvalidArgument, match=r"in 90 s.*retention is 60 s"):
        check(settings, deliver_at=[0, NOW + 90 * SECOND])


def test_a_delivery_after_the_expiry_is_refused_too() -> None:
    with pytest.raises(InvalidArgument, match=r"in 2 s.*expiry is 1 s"):
        check(TopicSettings(expiry_micros=SECOND), deliver_at=NOW + 2 * SECOND)


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    settings = TopicSettings(cleanup=Cleanup.COMPACT)
    check(settings, keys=[b"k", b""])
    for keys in (None, [b"k", None]):
        with pytest.raises(InvalidArgument, match="needs a key"):
            check(settings, keys=keys)
