"""A streaming query goes on while a partition has nobody who can answer for it."""

from __future__ import annotations

import logging

import pytest
from tests.unit.spark.table_of_topics import TableOfTopics
from tests.unit.spark.test_spark_stream_plan import EVERYTHING, planned, ranges, through_json

from angarium.spark.answering import PATIENCE_AGAIN_S, PATIENCE_S, NobodyAnswers
from angarium.spark.batch_plan import batch_ranges
from angarium.spark.offsets import NOWHERE
from angarium.spark.options import read_options
from angarium.spark.stream_plan import PATIENCE_AT_LAST_S, TriggerLimit


def grown(records: int = 10) -> TableOfTopics:
    table = TableOfTopics(orders=2)
    for log in table.logs["orders"]:
        log.append(records)
    return table


def test_a_silent_partition_stays_where_it_is_and_misses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = grown()
    plan = planned(table)
    first = plan.end(plan.initial(), EVERYTHING)
    for log in table.logs["orders"]:
        log.append(5)
    table.silent = {("orders", 1)}
    with caplog.at_level(logging.WARNING):
        second = plan.end(through_json(first), EVERYTHING)
    assert ranges(plan, first, second) == [(0, 10, 15)]
    assert plan.silent == {"orders": [1]}
    assert "nobody answers for orders partition 1" in caplog.text
    still = through_json(second)
    assert plan.end(still, EVERYTHING) is still
    assert table.patience == [PATIENCE_S, PATIENCE_AGAIN_S]
    table.silent = set()
    third = plan.end(still, EVERYTHING)
    assert ranges(plan, second, third) == [(1, 10, 15)]
    assert plan.silent == {}


def test_a_planned_micro_batch_is_left_to_its_tasks_when_a_partition_falls_silent() -> None:
    table = grown()
    plan = planned(table)
    end = plan.end(plan.initial(), EVERYTHING)
    table.silent = {("orders", 1)}
    assert ranges(plan, plan.initial(), end) == [(0, 0, 10), (1, 0, 10)]


def test_a_query_for_what_is_there_now_ends_without_a_silent_partition() -> None:
    table = grown()
    plan = planned(table)
    start = plan.initial()
    table.silent = {("orders", 1)}
    plan.stop_at_newest()
    end = plan.end(start, EVERYTHING)
    assert ranges(plan, start, end) == [(0, 0, 10)]
    again = through_json(end)
    assert plan.end(again, EVERYTHING) is again


def test_a_query_in_a_region_goes_as_far_as_the_nearest_copy_and_never_back() -> None:
    table = grown()
    plan = planned(table, region="eu")
    first = plan.end(plan.initial(), EVERYTHING)
    table.logs["orders"][1].append(5)
    table.silent = {("orders", 1)}
    table.copies = {("orders", 1): 8}
    begun = through_json(first)
    assert plan.end(begun, EVERYTHING) is begun
    table.copies = {("orders", 1): 13}
    second = plan.end(begun, EVERYTHING)
    assert ranges(plan, first, second) == [(1, 10, 13)]


def test_a_copy_does_not_count_for_who_reads_from_leaders() -> None:
    table = grown()
    plan = planned(table)
    first = through_json(plan.end(plan.initial(), EVERYTHING))
    table.silent = {("orders", 1)}
    table.copies = {("orders", 1): 13}
    assert plan.end(first, EVERYTHING) is first


def test_a_query_that_does_not_know_where_it_stands_is_not_set_back() -> None:
    table = grown()
    plan = planned(table)
    table.silent = {("orders", 1)}
    with pytest.raises(NobodyAnswers, match="orders partition 1"):
        plan.newest(NOWHERE, must_answer=True)
    # It fails then, so it waits as long as whatever else fails a query.
    assert table.patience == [PATIENCE_AT_LAST_S, PATIENCE_AT_LAST_S]


def test_a_batch_read_fails_and_names_the_partition() -> None:
    table = grown()
    table.silent = {("orders", 1)}
    options = read_options({"subscribe": "orders"}, is_stream=False)
    with pytest.raises(NobodyAnswers, match="nobody answers for orders partition 1"):
        batch_ranges(options, table)


def test_a_partition_that_was_deleted_is_not_silent_for_ever() -> None:
    table = grown()
    table.create("refunds", 1)
    plan = planned(table, subscribe="orders,refunds", failOnDataLoss="false")
    table.silent = {("refunds", 0)}
    with pytest.raises(NobodyAnswers):
        plan.newest(NOWHERE, must_answer=True)
    assert plan.silent == {"refunds": [0]}
    table.delete("refunds")
    plan.newest(NOWHERE)
    assert plan.silent == {}


def test_a_group_hears_how_far_the_others_are_while_a_partition_is_silent() -> None:
    """Told of all at once, it took a minute each time, in which nothing was read."""
    table = grown()
    plan = planned(table, groupId="g")
    first = plan.end(plan.initial(), EVERYTHING)
    table.logs["orders"][0].append(5)
    table.silent = {("orders", 1)}
    second = plan.end(first, EVERYTHING)
    plan.report(second)
    assert table.reports == [{("orders", 0): 15}]
    plan.report(second)
    assert len(table.reports) == 1
    table.silent = set()
    assert plan.end(second, EVERYTHING) is second
    plan.report(second)
    assert table.groups["g"] == {("orders", 0): 15, ("orders", 1): 10}


def test_nothing_of_a_partition_is_read_whose_fences_nobody_has_told() -> None:
    """It came back between two questions: where it ends was answered, and its fences were not."""
    table = grown()
    table.create("grown", 3)
    table.layouts["grown"] = (2, 3)
    for number, log in enumerate(table.logs["grown"][:2]):
        log.append(10)
        table.fences["grown", number] = (6,)
    plan = planned(table, subscribe="grown")
    start = plan.initial()
    table.untold = {("grown", 1)}
    first = plan.end(start, EVERYTHING)
    assert ranges(plan, start, first) == [(0, 0, 6)]
    table.untold = set()
    second = plan.end(through_json(first), EVERYTHING)
    assert ranges(plan, first, second) == [(1, 0, 6)]
    third = plan.end(through_json(second), EVERYTHING)
    assert ranges(plan, second, third) == [(0, 6, 10), (1, 6, 10)]


def test_a_limit_in_bytes_guesses_where_nobody_tells_how_large_records_are() -> None:
    table = grown()
    plan = planned(table, region="eu")
    first = plan.end(plan.initial(), EVERYTHING)
    table.silent = {("orders", 1)}
    table.copies = {("orders", 1): 13}
    second = plan.end(first, TriggerLimit(bytes_max=1 << 20))
    assert ranges(plan, first, second) == [(1, 10, 13)]
