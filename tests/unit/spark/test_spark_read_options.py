"""The options of a read: what they mean, and what is refused by name."""

from __future__ import annotations

import pytest

from angarium.errors import InvalidArgument
from angarium.spark.boundaries import CommittedBy, EachOffset, Edge, Since, SinceEach
from angarium.spark.options import (
    RECORDS_PER_TASK_MAX,
    Assigned,
    Matching,
    Named,
    ReadOptions,
    read_options,
)


def batch(**options: str) -> ReadOptions:
    return read_options({"subscribe": "orders", **options}, is_stream=False)


def stream(**options: str) -> ReadOptions:
    return read_options({"subscribe": "orders", **options}, is_stream=True)


def test_a_batch_reads_everything_and_a_stream_what_is_new_unless_told() -> None:
    assert (batch().start, batch().end) == (Edge.EARLIEST, Edge.LATEST)
    assert stream().start is Edge.LATEST


def test_defaults_are_those_of_kafkas_connector() -> None:
    options = stream()
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.trigger_delay_s_max == 900
    assert options.records_per_task_max == RECORDS_PER_TASK_MAX
    assert not options.from_nearest


def test_names_of_options_are_read_in_any_case() -> None:
    assert batch(STARTINGOFFSETS="earliest", failondataloss="False").fail_on_data_loss is False


def test_without_servers_those_of_the_environment_are_fixed_on_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANGARIUM_SERVERS", "a:1,b:2")
    assert batch().servers == ("a:1", "b:2")
    assert batch(servers="c").servers == ("c:7400",)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({"subscribe": "a, b,a"}, Named(("a", "b"))),
        ({"path": "orders"}, Named(("orders",))),
        ({"subscribePattern": "a.*"}, Matching("a.*")),
        ({"assign": '{"b":[1,0,1],"a":[2]}'}, Assigned({"a": (2,), "b": (0, 1)})),
    ],
)
def test_topics_are_chosen_in_one_of_four_ways(given: dict[str, str], choice: object) -> None:
    assert read_options(given, is_stream=False).choice == choice


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({"startingOffsets": "earliest"}, Edge.EARLIEST),
        ({"startingOffsets": '{"orders":{"0":23,"1":-2}}'}, EachOffset({"orders": {0: 23, 1: -2}})),
        ({"startingOffsets": "committed", "groupId": "g"}, CommittedBy("g")),
        ({"startingTimestamp": "1500"}, Since(1_500_000)),
        ({"startingTimestamp": "1970-01-01T00:00:01.5Z"}, Since(1_500_000)),
        ({"startingTimestamp": "1970-01-01T01:00:01.5+01:00"}, Since(1_500_000)),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":2}}'}, SinceEach({"orders": {0: 2000}})),
    ],
)
def test_a_start_has_five_forms(given: dict[str, str], start: object) -> None:
    assert batch(**given).start == start
    assert stream(**given).start == start


def test_an_end_has_the_same_forms() -> None:
    assert batch(endingOffsets='{"orders":{"0":-1}}').end == EachOffset({"orders": {0: -1}})
    assert batch(endingTimestamp="1").end == Since(1000)
    ends = batch(endingOffsetsByTimestamp='{"orders":{"0":1}}').end
    assert ends == SinceEach({"orders": {0: 1000}})


def test_limits_of_a_trigger() -> None:
    options = stream(
        maxOffsetsPerTrigger="1000",
        minOffsetsPerTrigger="10",
        maxTriggerDelay="30s",
        maxBytesPerTrigger="64m",
    )
    assert options.offsets_per_trigger_max == 1000
    assert options.offsets_per_trigger_min == 10
    assert options.trigger_delay_s_max == 30
    assert options.bytes_per_trigger_max == 64 << 20


REFUSED_IN_BOTH = [
    ({"subscrbe": "a"}, "no option subscrbe for a .*; did you mean subscribe?"),
    ({"kafka.bootstrap.servers": "a"}, "no option kafka.bootstrap.servers .*is called servers"),
    ({"kafka.group.id": "a"}, "no option kafka.group.id .*is called groupId"),
    ({"kafka.security.protocol": "SSL"}, "a setting of Kafka's own clients; leave it out"),
    ({"groupIdPrefix": "a"}, "a setting of Kafka's own clients; leave it out"),
    ({"paths": '["a","b"]'}, "write several topics with commas between them"),
    ({"topic": "a"}, "no option topic .*is called subscribe here"),
    ({"assign": '{"a":[0]}'}, "subscribe and assign contradict"),
    ({"path": "a"}, "subscribe and path contradict"),
    ({"startingOffsets": "earliest", "startingTimestamp": "1"}, "startingOffsets and startingTime"),
    (
        {"startingOffsets": "soon"},
        "startingOffsets: 'soon' is not of the form earliest, ",
    ),
    ({"startingOffsets": '{"orders":{"0":-3}}'}, "startingOffsets: -3 is no offset"),
    ({"startingOffsets": '{"orders":{"x":3}}'}, "startingOffsets: .* is not of the form"),
    ({"startingOffsets": '{"orders":{"0":1.5}}'}, "startingOffsets: .* is not of the form"),
    ({"startingTimestamp": "yesterday"}, "startingTimestamp: 'yesterday' is no time"),
    ({"startingTimestamp": "2026-11-15"}, "has no time zone; .* write 2026-11-15T00:00:00Z"),
    ({"startingTimestamp": "9" * 20}, "is no time in milliseconds since 1970"),
    ({"startingOffsetsByTimestamp": '{"orders":{"0":%s}}' % ("9" * 20)}, "is no time"),
    ({"startingOffsets": '{"orders":{"0":%s}}' % ("9" * 20)}, "9 is no offset"),
    ({"minPartitions": "9" * 20}, "minPartitions: '9+' is no whole number"),
    ({"startingOffsetsByTimestamp": '{"orders":{"0":-1}}'}, "ByTimestamp: .* before 1970"),
    ({"startingOffsetsByTimestampStrategy": "latest"}, "Strategy means nothing without a start by"),
    ({"minPartitions": "0"}, "minPartitions: '0' is no whole number above 0"),
    ({"maxRecordsPerPartition": "many"}, "maxRecordsPerPartition: 'many' is no whole number"),
    ({"failOnDataLoss": "no"}, "failOnDataLoss: 'no' is neither"),
    ({"readFrom": "moon"}, "readFrom: 'moon' is none of leader, nearest"),
    ({"startingOffsets": "committed"}, "startingOffsets: 'committed' needs the option groupId"),
    ({"startingOffsets": "committed", "groupId": " "}, "groupId is empty"),
    ({"servers": "a:b"}, "'b' is not a port"),
]


@pytest.mark.parametrize(("given", "refusal"), REFUSED_IN_BOTH)
def test_what_is_unknown_or_contradictory_is_refused_by_name(
    given: dict[str, str], refusal: str
) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        batch(**given)
    with pytest.raises(InvalidArgument, match=refusal):
        stream(**given)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets: a batch read cannot start at 'latest'"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "startingOffsets: .* -1"),
        ({"endingOffsets": "earliest"}, "endingOffsets: a read cannot end at 'earliest'"),
        ({"endingOffsets": '{"orders":{"0":-2}}'}, "endingOffsets: .* -2"),
        ({"endingOffsets": "latest", "endingTimestamp": "1"}, "endingOffsets and endingTimestamp"),
        ({"groupId": "g"}, "groupId means nothing here without startingOffsets=committed"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger is not for a batch read"),
    ],
)
def test_a_batch_refuses_what_only_a_stream_can_do(given: dict[str, str], refusal: str) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        batch(**given)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets is not for a stream"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            r"minOffsetsPerTrigger \(5\) and maxOffsetsPerTrigger \(4\) contradict",
        ),
        ({"maxTriggerDelay": "1m"}, "maxTriggerDelay means nothing without minOffsetsPerTrigger"),
        ({"minOffsetsPerTrigger": "1", "maxTriggerDelay": "soon"}, "maxTriggerDelay: 'soon'"),
        ({"maxBytesPerTrigger": "lots"}, "maxBytesPerTrigger: 'lots' is no size"),
    ],
)
def test_a_stream_refuses_what_only_a_batch_can_do(given: dict[str, str], refusal: str) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        stream(**given)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({}, "give one of the options subscribe, subscribePattern and assign"),
        ({"subscribe": " , "}, "subscribe: ' , ' names no topic"),
        ({"subscribePattern": ""}, "subscribePattern is empty"),
        ({"subscribePattern": "("}, r"subscribePattern: '\(' is no pattern"),
        ({"assign": "{}"}, "assign: '{}' names no partition"),
        ({"assign": '{"a":["x"]}'}, "assign: .* is not of the form"),
    ],
)
def test_topics_must_be_named_somehow(given: dict[str, str], refusal: str) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        read_options(given, is_stream=False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("1.5s", 1.5),
        ("5min", 300),
        ("5 minutes", 300),
        ("1 hour", 3600),
        ("2 days", 172_800),
        ("250 milliseconds", 0.25),
        ("10 Seconds", 10),
    ],
)
def test_durations_are_written_as_in_kafkas_connector_and_as_in_pipelines(
    text: str, seconds: float
) -> None:
    options = stream(minOffsetsPerTrigger="1", maxTriggerDelay=text)
    assert options.trigger_delay_s_max == seconds


@pytest.mark.parametrize("text", ["ms", "5", "5 ss", "5 moons", "-5s", "PT1H", "5mss"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is no duration; write 15m"):
        stream(minOffsetsPerTrigger="1", maxTriggerDelay=text)


def test_tls_is_an_option_or_what_the_drivers_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANGARIUM_TLS_CA", "of-the-driver.crt")
    assert read_options({"subscribe": "t"}, is_stream=False).tls.ca == "of-the-driver.crt"
    given = {"subscribe": "t", "tls.ca": "ca.crt", "tls.server_name": "node"}
    found = read_options(given, is_stream=True).tls
    assert (found.ca, found.cert, found.server_name) == ("ca.crt", "", "node")
    with pytest.raises(InvalidArgument, match="whom to believe"):
        read_options({"subscribe": "t", "tls.cert": "a.crt"}, is_stream=False)
