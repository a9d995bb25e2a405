"""Micro-batches: how far they go, that they can be repeated, and what happens when logs change."""

from __future__ import annotations

import json

import pytest
from tests.unit.spark.table_of_topics import TableOfTopics

from angarium.errors import NotLeader, PreconditionFailed
from angarium.spark.losses import DataLoss
from angarium.spark.offsets import StreamOffset, stream_offset
from angarium.spark.options import read_options
from angarium.spark.stream_plan import StreamPlan, TriggerLimit

EVERYTHING = TriggerLimit()


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def planned(table: TableOfTopics, clock: Clock | None = None, **given: str) -> StreamPlan:
    if not {"subscribePattern", "assign"} & given.keys():
        given.setdefault("subscribe", "orders")
    given.setdefault("startingOffsets", "earliest")
    return StreamPlan(read_options(given, is_stream=True), table, clock=clock or Clock())


def through_json(offset: StreamOffset) -> StreamOffset:
    """Return what Spark hands back: the offset after a trip through its checkpoint."""
    return stream_offset(json.loads(json.dumps(offset.to_json())))


def ranges(plan: StreamPlan, start: StreamOffset, end: StreamOffset) -> list[tuple[int, int, int]]:
    found = plan.ranges(through_json(start), through_json(end))
    return [(one.partition, one.start, one.stop) for one in found]


def test_a_query_reads_what_is_there_and_then_what_comes() -> None:
    table = TableOfTopics(orders=2)
    table.logs["orders"][0].append(10)
    plan = planned(table)
    first = plan.end(plan.initial(), EVERYTHING)
    assert ranges(plan, plan.initial(), first) == [(0, 0, 10)]
    table.logs["orders"][1].append(3)
    second = plan.end(first, EVERYTHING)
    assert ranges(plan, first, second) == [(1, 0, 3)]


def test_nothing_new_is_the_very_same_offset() -> None:
    table = TableOfTopics(orders=2)
    plan = planned(table)
    start = through_json(plan.initial())
    assert plan.end(start, EVERYTHING) is start


def test_offsets_are_written_in_one_form_only() -> None:
    one = StreamOffset(offsets={"b": {10: 1, 2: 2}, "a": {0: 1}}, topics={"b": 2, "a": 1})
    two = StreamOffset(offsets={"a": {0: 1}, "b": {2: 2, 10: 1}}, topics={"a": 1, "b": 2})
    assert json.dumps(one.to_json()) == json.dumps(two.to_json())
    assert through_json(one) == two


def test_latest_is_found_once() -> None:
    table = TableOfTopics(orders=1)
    table.logs["orders"][0].append(5)
    plan = planned(table, startingOffsets="latest")
    initial = plan.initial()
    table.logs["orders"][0].append(5)
    assert plan.initial() == initial


def test_a_first_batch_that_is_repeated_begins_where_it_began() -> None:
    table = TableOfTopics(orders=1)
    log = table.logs["orders"][0]
    log.append(5)
    plan = planned(table, startingOffsets="latest")
    initial = plan.initial()
    log.append(5)
    end = plan.end(initial, EVERYTHING)
    log.append(5)
    # The driver crashed before the batch was done; Spark asks the next one for a new beginning.
    again = planned(table, startingOffsets="latest")
    assert ranges(again, again.initial(), end) == [(0, 5, 10)]
    # Later batches follow what Spark says.
    later = again.end(through_json(end), EVERYTHING)
    assert later.start is None
    assert ranges(again, end, later) == [(0, 10, 15)]


def test_a_trigger_reads_no_more_than_it_may_and_exactly_that_much() -> None:
    table = TableOfTopics(orders=3)
    for number, count in enumerate((100, 50, 1)):
        table.logs["orders"][number].append(count)
    plan = planned(table)
    end = plan.end(plan.initial(), TriggerLimit(records_max=30))
    found = ranges(plan, plan.initial(), end)
    assert sum(stop - start for _, start, stop in found) == 30
    assert [one[0] for one in found] == [0, 1]
    offset = end
    while (following := plan.end(offset, TriggerLimit(records_max=30))) is not offset:
        offset = following
    assert offset.offsets == {"orders": {0: 100, 1: 50, 2: 1}}


def test_a_limit_in_bytes_goes_by_the_size_of_the_records() -> None:
    table = TableOfTopics(orders=1)
    table.logs["orders"][0].append(1000)
    table.record_size = 50.0
    plan = planned(table)
    end = plan.end(plan.initial(), TriggerLimit(bytes_max=5000))
    assert ranges(plan, plan.initial(), end) == [(0, 0, 100)]
    assert plan.end(plan.initial(), TriggerLimit(bytes_max=1)).offsets == {"orders": {0: 1}}


def test_a_trigger_waits_for_enough_but_not_for_ever() -> None:
    table, clock = TableOfTopics(orders=1), Clock()
    log = table.logs["orders"][0]
    limit = TriggerLimit(records_min=10)
    plan = planned(table, clock, minOffsetsPerTrigger="10", maxTriggerDelay="30s")
    start = plan.initial()
    log.append(9)
    assert plan.end(start, limit) is start
    log.append(1)
    ten = plan.end(start, limit)
    assert ten.offsets == {"orders": {0: 10}}
    log.append(1)
    clock.now += 29
    assert plan.end(ten, limit) is ten
    clock.now += 1
    assert plan.end(ten, limit).offsets == {"orders": {0: 11}}


def test_a_query_for_what_is_there_now_ends_with_it() -> None:
    table = TableOfTopics(orders=1)
    log = table.logs["orders"][0]
    log.append(10)
    plan = planned(table)
    plan.stop_at_newest()
    log.append(10)
    limit = TriggerLimit(records_max=7, records_min=5)
    first = plan.end(plan.initial(), limit)
    second = plan.end(first, limit)
    assert second.offsets == {"orders": {0: 10}}
    assert plan.end(second, limit) is second


def test_new_partitions_and_new_topics_of_a_pattern_are_read_from_their_beginning() -> None:
    table = TableOfTopics(orders=1)
    table.logs["orders"][0].append(5)
    plan = planned(table, subscribePattern="o.*", startingOffsets="latest")
    start = plan.initial()
    table.logs["orders"].append(type(table.logs["orders"][0])())
    table.logs["orders"][1].append(2)
    table.create("others", 1)
    table.logs["others"][0].append(4)
    end = plan.end(start, EVERYTHING)
    found = [(one.topic, one.partition, one.start, one.stop) for one in plan.ranges(start, end)]
    assert found == [("orders", 1, 0, 2), ("others", 0, 0, 4)]


def test_records_trimmed_before_they_were_read_are_a_loss() -> None:
    table = TableOfTopics(orders=1)
    log = table.logs["orders"][0]
    log.append(10)
    plan, lenient = planned(table), planned(table, failOnDataLoss="false")
    start = plan.initial()
    end = plan.end(start, EVERYTHING)
    log.trim(4)
    with pytest.raises(DataLoss, match="orders partition 0 begins at 4, not at 0"):
        plan.ranges(start, end)
    assert ranges(lenient, start, end) == [(0, 4, 10)]
    # Everything of the batch is gone: nothing is read, least of all what comes after it.
    log.append(20)
    log.trim(15)
    assert ranges(lenient, start, end) == []


def test_a_deleted_topic_is_a_loss() -> None:
    table = TableOfTopics(orders=1, returns=1)
    plan = planned(table, subscribe="orders,returns")
    lenient = planned(table, subscribe="orders,returns", failOnDataLoss="false")
    start = plan.initial()
    table.logs["orders"][0].append(3)
    table.delete("returns")
    with pytest.raises(DataLoss, match="the topic returns was deleted"):
        plan.end(start, EVERYTHING)
    end = lenient.end(start, EVERYTHING)
    assert end.topics.keys() == {"orders"}
    assert ranges(lenient, start, end) == [(0, 0, 3)]


def test_a_topic_made_anew_under_its_name_is_another_topic() -> None:
    table = TableOfTopics(orders=1)
    table.logs["orders"][0].append(10)
    plan, lenient = planned(table), planned(table, failOnDataLoss="false")
    reached = plan.end(plan.initial(), EVERYTHING)
    table.delete("orders")
    table.create("orders", 1)
    table.logs["orders"][0].append(20)
    with pytest.raises(DataLoss, match="the topic orders was deleted and made anew"):
        plan.end(reached, EVERYTHING)
    end = lenient.end(reached, EVERYTHING)
    assert ranges(lenient, reached, end) == [(0, 0, 20)]


def test_a_topic_deleted_after_its_batch_was_planned_is_a_loss() -> None:
    table = TableOfTopics(orders=1)
    table.logs["orders"][0].append(10)
    plan, lenient = planned(table), planned(table, failOnDataLoss="false")
    start = plan.initial()
    end = plan.end(start, EVERYTHING)
    table.delete("orders")
    with pytest.raises(DataLoss, match="orders partition 0 was deleted"):
        plan.ranges(start, end)
    assert ranges(lenient, start, end) == []


def test_a_log_that_ends_before_the_query_is_a_loss() -> None:
    table = TableOfTopics(orders=1)
    plan = planned(table, startingOffsets='{"orders":{"0":5}}')
    with pytest.raises(DataLoss, match="orders partition 0 ends at 0, but the query stands at 5"):
        plan.end(plan.initial(), EVERYTHING)


def test_a_query_starts_where_a_group_stands_and_tells_how_far_it_has_come() -> None:
    table = TableOfTopics(orders=2)
    for log in table.logs["orders"]:
        log.append(10)
    table.groups["g"] = {("orders", 0): 4}
    plan = planned(table, startingOffsets="committed", groupId="g")
    start = plan.initial()
    assert start.offsets == {"orders": {0: 4, 1: 0}}
    end = plan.end(start, EVERYTHING)
    plan.report(through_json(end))
    assert table.groups["g"] == {("orders", 0): 10, ("orders", 1): 10}


def test_a_broker_that_cannot_be_told_is_told_later_and_a_wrong_group_fails_the_query() -> None:
    table = TableOfTopics(orders=1)
    plan = planned(table, groupId="g")
    table.refusal = NotLeader()
    plan.report(plan.initial())
    table.refusal = None
    plan.report(plan.initial())
    assert table.groups["g"] == {("orders", 0): 0}
    table.logs["orders"][0].append(1)
    table.refusal = PreconditionFailed("g is a queue")
    with pytest.raises(PreconditionFailed):
        plan.report(plan.end(plan.initial(), EVERYTHING))


def test_a_group_is_no_reason_to_fail_where_a_topic_was_deleted_and_that_is_allowed() -> None:
    """Each start reported the same place again, so the query could not be started any more."""
    table = TableOfTopics(orders=1, refunds=1)
    for name in ("orders", "refunds"):
        table.logs[name][0].append(10)
    plan = planned(table, subscribe="orders,refunds", groupId="g", failOnDataLoss="false")
    first = plan.end(plan.initial(), EVERYTHING)
    table.delete("refunds")
    plan.report(first)
    table.logs["orders"][0].append(5)
    second = plan.end(first, EVERYTHING)
    plan.report(second)
    assert table.groups["g"] == {("orders", 0): 15}
