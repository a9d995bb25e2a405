"""The pipelines that are built in: replay, mirror, analytics, dead letters and quality."""

from __future__ import annotations

import base64
import json
import struct
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.busy_machine import slowness
from tests.spark.versions import HAS_LIMITS, stream_sink
from tests.unit.spark.shop_messages import an_order, descriptors

from angarium import SyncClient
from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from angarium.pipelines.board import Status

pytest.importorskip("deltalake", reason="the extra angarium[lake] is not installed")
pytest.importorskip("fastavro", reason="the extra angarium[avro] is not installed")

AMOUNT = {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "double"}]}


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[BrokerThread]:
    """Another cluster."""
    with BrokerThread() as running:
        yield running


def publish(client: SyncClient, topic: str, start: int, stop: int) -> None:
    values = [b"%d" % number for number in range(start, stop)]
    # A name twice: headers may have that, and Spark's own functions on maps refuse it.
    headers = [[("n", one), ("n", b"again")] for one in values]
    client.publish_batch(topic, values, keys=[one[-1:] for one in values], headers=headers)


def values(client: SyncClient, topic: str) -> Counter[bytes | None]:
    return Counter(record.value for record in client.read(topic))


def test_a_range_is_replayed_once_in_portions_at_its_rate_with_its_headers(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    from angarium.pipelines.replay import Replay, replay

    topic = new_topic(2)
    publish(client, topic, 0, 1000)
    moment = time.time()
    publish(client, topic, 1000, 1600)
    options = {
        "servers": servers,
        "subscribe": topic,
        "startingTimestamp": str(int(moment * 1000)),
    }
    wanted = Replay(options=options, into=f"{topic}-again", rate=200)
    told: list[Status] = []
    began = time.monotonic()
    # Stopped after the first portion, as `pipeline stop` would.
    first = replay(spark, wanted, on_progress=told.append, is_told_to_stop=lambda: len(told) > 0)
    assert (first.is_done, first.portions, first.written) == (False, 1, 400)
    publish(client, topic, 1600, 1650)  # too late: the plan holds
    rest = replay(spark, wanted, on_progress=told.append)
    assert (rest.is_done, rest.portions, rest.written) == (True, 2, 200)
    assert [one.lag for one in told] == [200, 200, 0, 0]
    again = replay(spark, wanted)
    assert (again.is_done, again.written) == (True, 0)
    assert values(client, f"{topic}-again") == Counter(b"%d" % one for one in range(1000, 1600))
    assert time.monotonic() - began < 60 * slowness()
    (before,) = (one for one in client.read(topic) if one.value == b"1234")
    (after,) = (one for one in client.read(f"{topic}-again") if one.value == b"1234")
    assert after.headers == before.headers == (("n", b"1234"), ("n", b"again"))
    assert (after.key, after.timestamp) == (b"4", before.append_time)
    with pytest.raises(InvalidArgument, match="give this one an id of its own"):
        replay(spark, Replay(options=options, into="other", id=wanted.name))


def test_a_replay_that_dies_between_a_portion_and_its_note_repeats_nothing(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    from angarium.pipelines.replay import Replay, replay

    topic = new_topic(2)
    publish(client, topic, 0, 300)
    options = {"servers": servers, "subscribe": topic}
    wanted = Replay(options=options, into=f"{topic}-again", rate=100)

    def die(_: Status) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(spark, wanted, on_progress=die)
    # The portion is written, and nobody knows.
    assert values(client, f"{topic}-again").total() == 200
    assert replay(spark, wanted).written == 300
    assert values(client, f"{topic}-again") == Counter(b"%d" % one for one in range(300))


def test_an_archived_topic_that_is_gone_is_replayed_into_another_cluster(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    elsewhere: BrokerThread,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    from angarium.pipelines.archive import archive
    from angarium.pipelines.replay import Replay, replay
    from angarium.pipelines.sql import answer
    from angarium.spark.lake import Lake

    topic, lake = new_topic(2), str(tmp_path / "lake")
    for start in (0, 500):
        publish(client, topic, start, start + 500)
        archive(
            spark,
            lake,
            checkpoint=str(tmp_path / "checkpoint"),
            options={"servers": servers, "subscribe": topic},
            once=True,
        ).awaitTermination()
    Lake(lake).compact()  # one file has several partitions then
    middle = next(one.append_time for one in client.read(topic) if one.value == b"500")
    client.delete_topic(topic)
    to = ",".join(elsewhere.addresses)
    options = {"servers": servers, "subscribe": topic}
    done = replay(
        spark, Replay(options=options, lake=lake, into=topic, to=to, keep_partitions=True)
    )
    assert done.is_done
    late = {
        **options,
        "startingTimestamp": str(middle // 1000),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    replay(spark, Replay(options=late, lake=lake, into=f"{topic}-late", to=to))
    question = f"SELECT count(*), sum(int(string(value))), count(headers) FROM `{topic}`"
    asked = answer(spark, question, topics=[], options={"servers": servers, "archive": lake})
    assert tuple(asked.first() or ()) == (1000, 499_500, 1000)
    with SyncClient(to) as there:
        assert values(there, topic) == Counter(b"%d" % one for one in range(1000))
        found = values(there, f"{topic}-late")
        assert found == Counter(b"%d" % one for one in range(500, 1000))


@stream_sink
def test_a_mirror_goes_on_exactly_where_it_was_even_without_its_checkpoint(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    elsewhere: BrokerThread,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    from angarium.pipelines.jobs import Mirror
    from angarium.pipelines.mirror import mirror

    topic = new_topic(3)
    to = ",".join(elsewhere.addresses)
    wanted = Mirror(to=to, prefix="eu.", options={"servers": servers, "subscribe": topic})

    def mirrored(checkpoint: str) -> None:
        mirror(spark, wanted, checkpoint=str(tmp_path / checkpoint), once=True).awaitTermination()

    publish(client, topic, 0, 700)
    mirrored("one")
    publish(client, topic, 700, 900)
    mirrored("one")
    client.alter_topic(topic, partitions=4)
    publish(client, topic, 900, 1000)
    mirrored("another")
    with SyncClient(to) as there:
        here = {(one.partition, int(one.offset or 0)): one for one in client.read(topic)}
        copies = list(there.read(f"eu.{topic}"))
        assert len(copies) == len(here) == 1000
        assert len(there.describe_topic(f"eu.{topic}").partitions) == 4
        cluster = client.cluster_status().cluster_id
        for copy in copies:
            told = dict(copy.headers[2:])
            place = copy.partition, int(told["angarium-mirror-offset"] or b"")
            original = here.pop(place)
            assert (copy.key, copy.value) == (original.key, original.value)
            assert copy.headers[:2] == original.headers
            assert told["angarium-mirror-cluster"] == cluster.encode()
            assert told["angarium-mirror-topic"] == topic.encode()
            assert int(told["angarium-mirror-timestamp"] or b"") == original.append_time
        # What came from there does not go back.
        back = Mirror(
            to=servers, prefix="back.", options={"servers": to, "subscribe": f"eu.{topic}"}
        )
        mirror(spark, back, checkpoint=str(tmp_path / "back"), once=True).awaitTermination()
        assert f"back.eu.{topic}" not in {info.name for info in client.list_topics()}
        # Others write there, too: a mirror that has lost its checkpoint cannot find its place among
        # so many, and one that has it need not.
        there.publish_batch(f"eu.{topic}", [b"foreign"] * 10_001, partition=0)
        with pytest.raises(InvalidArgument, match="say with startingOffsets where to begin"):
            mirrored("third")
        publish(client, topic, 1000, 1010)
        mirrored("another")
        found = values(there, f"eu.{topic}")
        assert (found[b"foreign"], found[b"1009"], found.total()) == (10_001, 1, 11_011)
    with pytest.raises(InvalidArgument, match="of one cluster"):
        mirror(spark, Mirror(to=servers, options=wanted.options), checkpoint="x")


def test_figures_of_a_range_and_of_a_stream_agree(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    from deltalake import DeltaTable

    from angarium.pipelines.analytics import Analytics, analyse, analytics

    topic = new_topic(2)
    keys = [b"%d" % (number % 40) for number in range(400)]
    # Made 50 ms, and in some cases a minute, before they arrive.
    made = [int(time.time() * 1e6) - (60_000_000 if n < 20 else 50_000) for n in range(400)]
    client.publish_batch(topic, [b"12345"] * 400, keys=keys, timestamps=made)
    options = {"servers": servers, "subscribe": topic}
    wanted = Analytics(
        options=options, window="1 hour", topic=f"{topic}-figures", table=str(tmp_path / "t")
    )
    rows = analyse(spark, wanted, writer="mine").to_pylist()
    assert analyse(spark, wanted, writer="mine").to_pylist() == rows  # and nothing is written
    assert sum(row["records"] for row in rows) == 400
    assert sum(row["bytes"] for row in rows) == 400 * 5 + sum(map(len, keys))
    assert sum(row["late"] for row in rows) == 20
    assert all(38 <= row["keys"] <= 42 and 40 < row["latency_ms_p50"] < 9_000 for row in rows)
    # How long a record took to a query that comes whenever it is asked for means nothing.
    assert all(row["end_to_end_ms_p50"] is None for row in rows)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == len(rows)
    (record, *_) = client.read(f"{topic}-figures")
    assert record.key == topic.encode()
    assert json.loads(record.value or b"")["records"] == rows[0]["records"]

    streamed = Analytics(
        options={**options, "startingOffsets": "earliest"},
        window="1 second",
        watermark="1 second",
        table=str(tmp_path / "stream"),
        topic=f"{topic}-streamed",
    )

    def run() -> None:
        analytics(spark, streamed, checkpoint=str(tmp_path / "c"), once=True).awaitTermination()

    run()
    # Before PySpark 4.2 a run is a single batch: that a window is over is known in the next one.
    for _ in range(1 if HAS_LIMITS else 2):
        # Time itself is what is needed: the next record comes a window and a watermark later.
        time.sleep(2.1)
        client.publish_batch(topic, [b"later"], keys=[b"x"])
        run()  # the windows before are over now
    found = DeltaTable(tmp_path / "stream").to_pyarrow_table().to_pylist()
    assert sum(row["records"] for row in found) == 400
    assert sum(row["late"] for row in found) == 20
    told_of = [json.loads(one.value or b"") for one in client.read(f"{topic}-streamed")]
    assert sum(row["records"] for row in told_of) == 400
    # The query came later than the records: by how much is the machine's affair.
    assert all(row["latency_ms_p50"] < row["end_to_end_ms_p50"] < 600_000 for row in found)
    assert max(row["end_to_end_ms_p99"] for row in found) > 60_000

    def refused(wish: Analytics, why: str) -> None:
        with pytest.raises(
            PreconditionFailed, match=f"{why}.*: give a new one, and startingTimestamp"
        ):
            analytics(spark, wish, checkpoint=str(tmp_path / "c"), once=True)

    refused(replace(streamed, window="2 seconds"), "is for windows of 1 s, not for windows of 2 s")
    told = tmp_path / "c" / "angarium-pipeline.json"
    told.unlink()
    refused(streamed, "made by an earlier version of analytics")


def test_dead_letters_are_grouped_by_cause_and_chosen_to_be_sent_back(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    from angarium.pipelines.dead_letters import causes, open_letters, redrive_set

    dead, origin = new_topic(2), new_topic(1)
    reasons = [
        "timed out after 30 s",
        "timed out after 45 s",
        "no dish 'tea'",
        "no dish 'cake'",
        "odd",
    ]
    for number in range(20):
        at = 1_700_000_000_000_000 + number
        told = {
            "topic": origin,
            "partition": "0",
            "offset": str(number),
            "group": "kitchen",
            "attempts": "3",
            "reason": reasons[number % 5],
            "first-at": str(at),
            "last-at": str(at + 5),
        }
        headers = [(f"angarium-dlq-{name}", value) for name, value in told.items()]
        client.publish(dead, b"order %d" % number, key=b"%d" % number, headers=headers)
    client.publish(dead, b"no letter")
    options = {"servers": servers}
    found = open_letters(spark, options=options, topic=dead).cache()
    rows = {row.cause: row for row in causes(found, samples=2).collect()}
    assert {cause: row.letters for cause, row in rows.items()} == {
        "timed out after <n> s": 8,
        "no dish '…'": 8,
        "odd": 4,
    }
    odd = rows["odd"]
    assert (odd.from_topic, odd.group, len(odd.samples), odd.attempts) == (origin, "kitchen", 2, 3)
    assert [bytes(one.value) for one in odd.samples] == [b"order 19", b"order 14"]
    assert (odd.last_seen - odd.first_seen).microseconds == 20
    letters = redrive_set(found.where("cause = 'odd'"))
    assert len(letters) == 4
    found.unpersist()


@stream_sink
def test_records_that_fail_expectations_become_dead_letters_with_the_reason(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    from angarium.pipelines.board import Board
    from angarium.pipelines.definition import definition
    from angarium.pipelines.quality import Quality, check
    from angarium.pipelines.running import run, start

    orders, returns, packed, coded = new_topic(2), new_topic(1), new_topic(1), new_topic(1)
    good = [json.dumps({"id": n, "amount": 10.5, "dish": "tea"}).encode() for n in range(50)]
    bad = [
        b'{"id": 100, "amount": -1, "dish": "tea"}',
        b'{"amount": 2000, "dish": "stone"}',
        b'{"id": "x", "amount": 1, "dish": "tea"}',
        b"not JSON",
    ]
    client.publish_batch(orders, [*good, *bad])
    client.publish(returns, b"anything", key=b"k", headers=[("h", b"1")])
    client.publish(returns, b"keyless")
    # A double in Avro is its eight bytes; three are none.
    client.publish_batch(packed, [struct.pack("<d", 1.5), struct.pack("<d", -1.5), b"bad"])
    # The last one is a message, but for its time: that is some 146 billion years from now.
    endless = b"\x22\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"
    paid, owed = an_order(customer="a", amount=2, paid=True), an_order(customer="b", amount=-2)
    client.publish_batch(coded, [paid, owed, b"\xff", endless])
    content: dict[str, Any] = {
        "checkpoint": str(tmp_path / "checkpoint"),
        "trigger": "once",
        "quality": {
            "startingOffsets": "earliest",
            "dead_letter_topic": f"{orders}-dead",
            "passed_topic": f"{orders}-good",
            "topic": {
                orders: {
                    "schema": "id LONG, amount DOUBLE, dish STRING",
                    "not_null": ["id"],
                    "range": {"amount": {"min": 0, "max": 1000}},
                    "one_of": {"dish": ["tea", "cake"]},
                    "fresh": "1 hour",
                },
                returns: {"not_null": ["record.key"]},
                packed: {
                    "valueFormat": "avro",
                    "valueSchema": json.dumps(AMOUNT),
                    "range": {"amount": {"min": 0}},
                },
                coded: {
                    "valueFormat": "protobuf",
                    "valueSchema": base64.b64encode(descriptors()).decode(),
                    "valueMessage": "shop.Order",
                    "range": {"amount": {"min": 0}},
                    "rule": {"open orders are owed": "status <> 'OPEN' OR at IS NULL"},
                },
            },
        },
    }
    wanted = definition(content, name=f"quality-{orders}")
    assert isinstance(wanted.job, Quality)
    ended = run(
        start(spark, wanted, servers=servers), wanted, Board(client), on_progress=lambda _: None
    )
    letters = {bytes(one.value or b""): dict(one.headers) for one in client.read(f"{orders}-dead")}
    told = {
        value: (headers["angarium-dlq-reason"] or b"").decode()
        for value, headers in letters.items()
    }
    assert told == {
        bad[0]: "amount is at least 0",
        bad[1]: "id is not null; amount is at most 1000; dish is one of tea, cake",
        bad[2]: "the value fits the schema",
        bad[3]: "the value fits the schema",
        b"keyless": "record.key is not null",
        struct.pack("<d", -1.5): "amount is at least 0",
        b"bad": "the value fits the schema",
        owed: "amount is at least 0",
        b"\xff": "the value fits the schema",
        endless: "the value fits the schema",
    }
    assert letters[bad[0]]["angarium-dlq-topic"] == orders.encode()
    assert letters[bad[0]]["angarium-dlq-group"] == wanted.name.encode()
    passed_values = [*good, b"anything", struct.pack("<d", 1.5), paid]
    assert values(client, f"{orders}-good") == Counter(passed_values)
    (passed,) = (one for one in client.read(f"{orders}-good") if one.key == b"k")
    assert passed.headers == (("h", b"1"),)
    report = {name: count for name, count in ended.report.items() if count}
    assert report == {
        f"{orders}: records": 54,
        f"{orders}: not: the value fits the schema": 2,
        f"{orders}: not: id is not null": 1,
        f"{orders}: not: amount is at least 0": 1,
        f"{orders}: not: amount is at most 1000": 1,
        f"{orders}: not: dish is one of tea, cake": 1,
        f"{returns}: records": 2,
        f"{returns}: not: record.key is not null": 1,
        f"{packed}: records": 3,
        f"{packed}: not: the value fits the schema": 1,
        f"{packed}: not: amount is at least 0": 1,
        f"{coded}: records": 4,
        f"{coded}: not: the value fits the schema": 2,
        f"{coded}: not: amount is at least 0": 1,
    }
    met = {
        (one.topic, one.expectation): one.failed
        for one in check(spark, wanted.job, servers=servers)
    }
    assert met[orders, "the value fits the schema"] == 2
    assert met[orders, "the newest record is at most 3600 s old"] == 0
    assert met[returns, "record.key is not null"] == 1
    assert met[packed, "amount is at least 0"] == 1
    assert met[coded, "the value fits the schema"] == 2
