"""Conditions on topic, partition, offset and timestamp: what is left to read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.unit.spark.table_of_topics import TableOfTopics

from angarium.spark.pruning import Condition, pruned
from angarium.spark.ranges import OffsetRange


def second(number: int, zone: timezone = UTC) -> datetime:
    return datetime.fromtimestamp(number, zone)


def left(*conditions: tuple[str, str, Any]) -> list[tuple[str, int, int, int]]:
    """Orders: 0..9 in two partitions, half of each at 1 s and half at 2 s; returns: 0..2."""
    table = TableOfTopics(orders=2, returns=1)
    for log in table.logs["orders"]:
        log.append(5, time=1_000_000)
        log.append(5, time=2_000_000)
    table.logs["returns"][0].append(3, time=3_000_000)
    ranges = [
        OffsetRange("orders", 0, 0, 10),
        OffsetRange("orders", 1, 0, 10),
        OffsetRange("returns", 0, 0, 3),
    ]
    found = pruned(ranges, [Condition(*one) for one in conditions], table)
    return [(one.topic, one.partition, one.start, one.stop) for one in found]


ZERO, ONE, RETURNS = ("orders", 0, 0, 10), ("orders", 1, 0, 10), ("returns", 0, 0, 3)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], [ZERO, ONE, RETURNS]),
        ([("topic", "=", "orders")], [ZERO, ONE]),
        ([("topic", "in", ("returns", "other"))], [RETURNS]),
        ([("partition", "=", 1)], [ONE]),
        ([("partition", ">=", 1)], [ONE]),
        ([("partition", "<", 1)], [ZERO, RETURNS]),
        ([("partition", "in", (0, 7)), ("topic", "=", "orders")], [ZERO]),
        ([("offset", "=", 2)], [("orders", 0, 2, 3), ("orders", 1, 2, 3), ("returns", 0, 2, 3)]),
        ([("offset", ">", 2), ("offset", "<=", 4)], [("orders", 0, 3, 5), ("orders", 1, 3, 5)]),
        ([("offset", "in", (8, 4))], [("orders", 0, 4, 9), ("orders", 1, 4, 9)]),
        ([("offset", "<", 0)], []),
        (
            [("timestamp", ">=", second(2))],
            [("orders", 0, 5, 10), ("orders", 1, 5, 10), RETURNS],
        ),
        ([("timestamp", ">", second(2))], [RETURNS]),
        ([("timestamp", "<", second(2))], [("orders", 0, 0, 5), ("orders", 1, 0, 5)]),
        ([("timestamp", "<=", second(1))], [("orders", 0, 0, 5), ("orders", 1, 0, 5)]),
        ([("timestamp", "=", second(3, timezone(timedelta(hours=2))))], [RETURNS]),
        ([("timestamp", ">", second(1)), ("timestamp", "<", second(2))], []),
        # What is not understood costs time, and nothing more.
        ([("timestamp", ">", datetime(1970, 1, 1, 0, 0, 2))], [ZERO, ONE, RETURNS]),
        ([("timestamp", ">", None)], [ZERO, ONE, RETURNS]),
        ([("offset", "<", "x")], [ZERO, ONE, RETURNS]),
        ([("value", "=", b"x")], [ZERO, ONE, RETURNS]),
        ([("topic", "<", "p")], [ZERO, ONE, RETURNS]),
    ],
)
def test_less_is_read(
    conditions: list[tuple[str, str, Any]], expected: list[tuple[str, int, int, int]]
) -> None:
    assert left(*conditions) == expected
