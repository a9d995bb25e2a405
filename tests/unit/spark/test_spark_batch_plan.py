"""The golden table of a batch read: options and logs on one side, ranges on the other."""

from __future__ import annotations

import pytest
from tests.unit.spark.table_of_topics import TableOfTopics

from angarium.errors import InvalidArgument, NotFound
from angarium.spark.batch_plan import batch_ranges
from angarium.spark.losses import DataLoss
from angarium.spark.options import read_options


def cluster() -> TableOfTopics:
    """Orders: 0..9 and 5..14, half of each at 1 s and half at 2 s; an empty topic; one of ours."""
    table = TableOfTopics(orders=2, returns=1, empty=1)
    for log in table.logs["orders"]:
        log.append(5, time=1_000_000)
        log.append(5, time=2_000_000)
    second = table.logs["orders"][1]
    second.append(5, time=2_000_000)
    second.trim(5)
    table.logs["returns"][0].append(3)
    table.create("angarium.dlq", 1)
    table.logs["angarium.dlq"][0].append(7)
    return table


def ranges(table: TableOfTopics, **given: str) -> list[tuple[str, int, int, int]]:
    options = read_options(given, is_stream=False)
    return [(one.topic, one.partition, one.start, one.stop) for one in batch_ranges(options, table)]


BOTH = [("orders", 0, 0, 10), ("orders", 1, 5, 15)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"subscribe": "orders"}, BOTH),
        ({"subscribe": "empty"}, []),
        ({"subscribe": "orders,returns"}, [*BOTH, ("returns", 0, 0, 3)]),
        ({"subscribePattern": "o.*|r.*"}, [*BOTH, ("returns", 0, 0, 3)]),
        ({"subscribePattern": "order"}, []),
        ({"subscribePattern": ".*dlq"}, []),
        ({"subscribePattern": r"angarium\..*"}, [("angarium.dlq", 0, 0, 7)]),
        ({"assign": '{"orders":[1]}'}, [("orders", 1, 5, 15)]),
        (
            {"subscribe": "orders", "startingOffsets": '{"orders":{"0":3,"1":-2}}'},
            [("orders", 0, 3, 10), ("orders", 1, 5, 15)],
        ),
        (
            {"subscribe": "orders", "endingOffsets": '{"orders":{"0":3,"1":-1}}'},
            [("orders", 0, 0, 3), ("orders", 1, 5, 15)],
        ),
        (
            {
                "subscribe": "orders",
                "startingOffsets": '{"orders":{"0":4,"1":9}}',
                "endingOffsets": '{"orders":{"0":4,"1":10}}',
            },
            [("orders", 1, 9, 10)],
        ),
        (
            {"subscribe": "orders", "startingTimestamp": "2000"},
            [("orders", 0, 5, 10), ("orders", 1, 5, 15)],
        ),
        (
            {"subscribe": "orders", "startingTimestamp": "1001"},
            [("orders", 0, 5, 10), ("orders", 1, 5, 15)],
        ),
        ({"subscribe": "orders", "endingTimestamp": "2000"}, [("orders", 0, 0, 5)]),
        ({"subscribe": "orders", "endingTimestamp": "9000"}, BOTH),
        (
            {"subscribe": "orders", "startingOffsetsByTimestamp": '{"orders":{"0":2000,"1":1}}'},
            [("orders", 0, 5, 10), ("orders", 1, 5, 15)],
        ),
        (
            {"subscribe": "orders", "endingOffsetsByTimestamp": '{"orders":{"0":2000,"1":9000}}'},
            [("orders", 0, 0, 5), ("orders", 1, 5, 15)],
        ),
        (
            {
                "subscribe": "orders",
                "startingTimestamp": "9000",
                "startingOffsetsByTimestampStrategy": "latest",
            },
            [],
        ),
        ({"subscribe": "orders", "startingTimestamp": "2000", "endingTimestamp": "1000"}, []),
    ],
)
def test_options_give_ranges(
    given: dict[str, str], expected: list[tuple[str, int, int, int]]
) -> None:
    assert ranges(cluster(), **given) == expected


@pytest.mark.parametrize(
    ("given", "error", "refusal"),
    [
        ({"subscribe": "orders,gone"}, NotFound, "no topic gone"),
        ({"assign": '{"orders":[0,2]}'}, NotFound, "no partition 2 of a topic orders"),
        (
            {"subscribe": "orders", "startingTimestamp": "9000"},
            InvalidArgument,
            "startingTimestamp: orders partition 0, orders partition 1 has no record that is so",
        ),
        (
            {"subscribe": "orders", "startingOffsets": '{"orders":{"0":3}}'},
            InvalidArgument,
            "startingOffsets says nothing about orders partition 1",
        ),
        (
            {"subscribe": "orders", "endingOffsets": '{"orders":{"0":3,"1":7},"returns":{"0":1}}'},
            InvalidArgument,
            "endingOffsets speaks of returns partition 0, which is not read",
        ),
        (
            {
                "subscribe": "returns",
                "startingOffsets": '{"returns":{"0":2}}',
                "endingOffsets": '{"returns":{"0":1}}',
            },
            InvalidArgument,
            r"startingOffsets \(2\) lies behind endingOffsets \(1\) in returns partition 0",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(
    given: dict[str, str], error: type[Exception], refusal: str
) -> None:
    with pytest.raises(error, match=refusal):
        ranges(cluster(), **given)


@pytest.mark.parametrize(
    ("given", "loss", "left"),
    [
        (
            {"startingOffsets": '{"orders":{"0":0,"1":2}}'},
            "orders partition 1 begins at 5, not at 2",
            BOTH,
        ),
        (
            {"endingOffsets": '{"orders":{"0":11,"1":15}}'},
            "orders partition 0 ends at 10, not at 11",
            BOTH,
        ),
        (
            {"startingOffsets": '{"orders":{"0":12,"1":5}}'},
            "orders partition 0 ends at 10, not at 12",
            [("orders", 1, 5, 15)],
        ),
    ],
)
def test_records_that_are_gone_are_a_loss_unless_told_otherwise(
    given: dict[str, str], loss: str, left: list[tuple[str, int, int, int]]
) -> None:
    with pytest.raises(DataLoss, match=loss):
        ranges(cluster(), subscribe="orders", **given)
    assert ranges(cluster(), subscribe="orders", failOnDataLoss="false", **given) == left
