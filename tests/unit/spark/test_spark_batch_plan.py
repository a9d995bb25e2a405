"""The golden table of batch reads, asked of the planner: options and logs, and ranges."""

from __future__ import annotations

import pytest
from tests.unit.spark.golden_reads import LOSSES, READS, REFUSALS, Range, at
from tests.unit.spark.table_of_topics import TableOfTopics

from angarium.spark.batch_plan import batch_ranges
from angarium.spark.losses import DataLoss
from angarium.spark.options import read_options

MOMENTS = {"first": 1000, "between": 1001, "second": 2000, "later": 9000}


def cluster() -> TableOfTopics:
    """Return the topics of the golden table."""
    table = TableOfTopics(orders=2, returns=1, empty=1)
    for log in table.logs["orders"]:
        log.append(5, time=1_000_000)
        log.append(5, time=2_000_000)
    second = table.logs["orders"][1]
    second.append(5, time=2_000_000)
    second.trim(5)
    table.logs["returns"][0].append(3)
    table.create("angarium-own", 1)
    table.logs["angarium-own"][0].append(7)
    table.groups["readers"] = {("orders", 0): 4}
    return table


def ranges(given: dict[str, str]) -> list[Range]:
    options = read_options(at(given, MOMENTS), is_stream=False)
    found = batch_ranges(options, cluster())
    return [(one.topic, one.partition, one.start, one.stop) for one in found]


@pytest.mark.parametrize(("given", "expected"), READS)
def test_options_give_ranges(given: dict[str, str], expected: list[Range]) -> None:
    assert ranges(given) == expected


@pytest.mark.parametrize(("given", "error", "refusal"), REFUSALS)
def test_what_cannot_be_planned_is_refused(
    given: dict[str, str], error: type[Exception], refusal: str
) -> None:
    with pytest.raises(error) as refused:
        ranges(given)
    assert refusal in str(refused.value)


@pytest.mark.parametrize(("given", "loss", "left"), LOSSES)
def test_records_that_are_gone_are_a_loss_unless_told_otherwise(
    given: dict[str, str], loss: str, left: list[Range]
) -> None:
    with pytest.raises(DataLoss, match=loss):
        ranges({"subscribe": "orders", **given})
    assert ranges({"subscribe": "orders", "failOnDataLoss": "false", **given}) == left
