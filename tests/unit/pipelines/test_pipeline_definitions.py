"""A pipeline's file: what it may say, and that whatever is wrong is named."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from angarium.errors import InvalidArgument
from angarium.pipelines.definition import definition
from angarium.pipelines.sql import tables_in

WHOLE = """
checkpoint = "c"
trigger = "5 seconds"
sql = "SELECT value FROM orders"
[source.orders]
subscribe = ["orders", "returns"]
maxOffsetsPerTrigger = 1000
failOnDataLoss = false
[sink]
topic = "out"
"""


def parsed(text: str) -> Any:
    return definition(tomllib.loads(text), name="demo")


def test_a_whole_file() -> None:
    found = parsed(WHOLE)
    assert (found.name, found.checkpoint, found.trigger) == ("demo", "c", "5 seconds")
    assert found.sources == {
        "orders": {
            "subscribe": "orders,returns",
            "maxOffsetsPerTrigger": "1000",
            "failOnDataLoss": "false",
        }
    }
    assert (found.sink.kind, found.sink.options) == ("topic", {"topic": "out"})


def test_an_archive() -> None:
    found = parsed('checkpoint = "c"\ntrigger = "once"\n[archive]\npath = "lake"\nsubscribe = "a"')
    assert found.archive == {"path": "lake", "subscribe": "a"}


@pytest.mark.parametrize(
    ("job", "refusal"),
    [
        ('[archive]\npath = "l"\nstartingOffsets = "latest"', "the archive decides about"),
        ('[archive]\npath = "l"\nstartingOffsetsByTimestamp = "{}"', "the archive decides about"),
        ('[archive]\npath = "l"\narchive = "x"', "the archive decides about the option archive"),
        ('[archive]\npath = "l"\nvalueFormat = "json"', "archive: values are taken as they are"),
        ('[mirror]\nto = "b"\nvalueFormat = "json"', "mirror: values are taken as they are"),
        ('[analytics]\ntopic = "f"\nrows = "ranges"', "analytics is about records"),
        ('[replay]\ninto = "b"\nvalueFormat = "json"', "replay: values are taken as they are"),
    ],
)
def test_a_job_takes_records_as_they_are(job: str, refusal: str) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        parsed(f'checkpoint = "c"\n{job}\nsubscribe = "orders"')


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ('checkpoint = "c"', "", "needs a checkpoint"),
        ('checkpoint = "c"', 'checkpoint = "c"\nspeed = 3', "a pipeline has no speed"),
        ('"5 seconds"', '"often"', "trigger: 'often' is neither"),
        ('sql = "SELECT value FROM orders"', "", "either a sql or a function"),
        ('sql = "SELECT value FROM orders"', 'function = "x"', "function: 'x' is not like"),
        ("source.orders", '"source"."or-ders"', "source.or-ders: the name of a table"),
        ('["orders", "returns"]', '"a"\nassign = "b"', "source.orders: .*contradict each other"),
        ("maxOffsetsPerTrigger", "maxOffsetPerTrigger", "did you mean maxOffsetsPerTrigger"),
        (
            "failOnDataLoss = false",
            'valueFormat = "avro"\nvalueSchema = "{}"',
            "source.orders: the Avro schema cannot be used",
        ),
        ('topic = "out"', "", "a sink is one of topic, parquet"),
        (
            'topic = "out"',
            'topic = "out"\nvalueFormat = "protobuf"\nvalueSchema = "/w=="\nvalueMessage = "B"',
            "sink: the descriptor set cannot be used",
        ),
        ('topic = "out"', 'topic = "out"\nmode = "update"', "a topic is appended to"),
        ('topic = "out"', 'console = true\nmode = "now"', "mode 'now' is none of append"),
        ('topic = "out"', 'topic = "out"\nwriteId = "x"', "writeId is not for a stream's sink"),
        (
            'topic = "out"',
            'topic = "out"\n[archive]\npath = "x"',
            "archive and sink contradict|archive and source contradict|archive and sql contradict",
        ),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, refusal: str) -> None:
    assert old in WHOLE
    with pytest.raises(InvalidArgument, match=refusal):
        parsed(WHOLE.replace(old, new))


@pytest.mark.parametrize(
    ("text", "plain", "tables"),
    [
        ("SELECT * FROM orders", "SELECT * FROM orders", {"orders": "orders"}),
        ("SELECT * FROM Orders o", "SELECT * FROM Orders o", {"orders": "orders"}),
        ("SELECT * FROM `a.b-c`", "SELECT * FROM a_b_c", {"a_b_c": "a.b-c"}),
        ("SELECT * FROM a_b_c", "SELECT * FROM a_b_c", {"a_b_c": "a.b-c"}),
        ("SELECT 1", "SELECT 1", {}),
    ],
)
def test_topics_in_a_query_are_found(text: str, plain: str, tables: dict[str, str]) -> None:
    assert tables_in(text, ["orders", "a.b-c", "other"]) == (plain, tables)


@pytest.mark.parametrize(
    ("text", "plain", "tables"),
    [
        # A topic of that very name goes before one that is only called so as a table.
        ("SELECT * FROM a_b", "SELECT * FROM a_b", {"a_b": "a_b"}),
        ("SELECT * FROM `a.b`", "SELECT * FROM a_b", {"a_b": "a.b"}),
        (
            "SELECT * FROM `a.b` JOIN `a-b` JOIN a_b",
            "SELECT * FROM a_b JOIN a_b_2 JOIN a_b_3",
            {"a_b": "a.b", "a_b_2": "a-b", "a_b_3": "a_b"},
        ),
        (
            "FROM Orders, orders",
            "FROM Orders, orders_2",
            {"Orders": "Orders", "orders_2": "orders"},
        ),
        ("SELECT '`a.b`' -- orders\nFROM x", "SELECT '`a.b`' -- orders\nFROM x", {}),
        ('SELECT "it\\"s orders" /* a_b */', 'SELECT "it\\"s orders" /* a_b */', {}),
        ("SELECT 2024 FROM `2024`", "SELECT 2024 FROM topic_2024", {"topic_2024": "2024"}),
    ],
)
def test_topics_of_similar_names_are_not_taken_for_each_other(
    text: str, plain: str, tables: dict[str, str]
) -> None:
    topics = ["orders", "Orders", "a.b", "a-b", "a_b", "2024"]
    assert tables_in(text, topics) == (plain, tables)


def test_a_name_that_could_be_two_topics_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"a_b could be a-b or a\.b: write .* backticks"):
        tables_in("SELECT * FROM a_b", ["a.b", "a-b"])
