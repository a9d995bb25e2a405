"""Expectations: from what a file says to conditions in SQL, and every mistake by its name."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from angarium.errors import InvalidArgument
from angarium.pipelines.expectations import FITS, quality_in

WHOLE = """
startingOffsets = "earliest"
maxOffsetsPerTrigger = 5
[topic.orders]
schema = "id LONG, amount DOUBLE"
not_null = ["id", "record.key"]
fresh = "2 minutes"
range.amount = { min = 0, max = 9.5 }
range.record.offset = { min = 1 }
one_of.dish = ["tea", "it's", 'a\\\\b']
matches.dish = "^t"
rule."cheap" = "amount < 3"
"""


def parsed(text: str) -> Any:
    return quality_in(tomllib.loads(text))


def test_a_whole_file() -> None:
    found = parsed(WHOLE)
    assert found.options == {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "5"}
    assert (found.dead_letter_topic, found.passed_topic) == ("quality.dlq", None)
    (orders,) = found.topics
    assert (orders.topic, orders.fresh_s) == ("orders", 120)
    assert {one.name: one.condition for one in orders.expectations} == {
        "id is not null": "`id` IS NOT NULL",
        "record.key is not null": "`record`.`key` IS NOT NULL",
        "amount is at least 0": "`amount` >= 0",
        "amount is at most 9.5": "`amount` <= 9.5D",
        "record.offset is at least 1": "`record`.`offset` >= 1",
        "dish is one of tea, it's, a\\\\b": "`dish` IN ('tea', 'it\\'s', 'a\\\\\\\\b')",
        "dish matches ^t": "string(`dish`) RLIKE '^t'",
        "cheap": "(amount < 3)",
    }
    assert orders.names[0] == FITS


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("topic.orders", "other", "at least one .quality.topic.NAME."),
        ("not_null", "notnull", "quality.topic.orders has no notnull; it has schema"),
        ('["id", "record.key"]', '"id"', "not_null is a list"),
        ('["id", "record.key"]', '["i d"]', "'i d' is no column"),
        ('["id", "record.key"]', '["id", "id"]', "expects twice that id is not null"),
        ("{ min = 0, max = 9.5 }", "3", "range.amount is like"),
        ("{ min = 0, max = 9.5 }", "{ least = 3 }", "range.amount is like"),
        ("min = 0", "min = [1]", "is neither a text nor a number"),
        ("min = 0", "min = nan", "is neither a text nor a number"),
        ('"2 minutes"', '"soon"', "fresh: 'soon' is not like"),
        ('"amount < 3"', "7", "is a condition in SQL"),
        ('"^t"', "1", "matches.dish is a regular expression"),
        ('"id LONG, amount DOUBLE"', "1", "schema is like"),
        ("maxOffsetsPerTrigger = 5", 'subscribe = "x"', "the topics are those below"),
        ("maxOffsetsPerTrigger = 5", 'dead_letter_topic = "orders"', "cannot be one that is writ"),
        ("maxOffsetsPerTrigger", "maxOffsets", "there is no option maxOffsets"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, refusal: str) -> None:
    assert old in WHOLE
    with pytest.raises(InvalidArgument, match=refusal):
        parsed(WHOLE.replace(old, new, 1))


def test_a_topic_has_to_be_expected_something_of() -> None:
    with pytest.raises(InvalidArgument, match="expects nothing"):
        parsed("[topic.orders]")


AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "double"}]}'


def test_values_may_be_avro_or_protobuf() -> None:
    (orders,) = parsed(
        f"[topic.orders]\nvalueFormat = 'avro'\nvalueSchema = '{AVRO}'\nrange.amount.min = 0"
    ).topics
    assert orders.names == [FITS, "amount is at least 0"]
    assert orders.values == {"valueFormat": "avro", "valueSchema": AVRO}
    assert orders.schema is None


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("valueFormat = 'avro'\n[topic.orders]\nfresh = '1 hour'", "said of each topic"),
        ("[topic.orders]\nvalueFormat = 'avro'", "needs the option valueSchema"),
        (
            "[topic.orders]\nvalueFormat = 'avro'\nvalueSchema = 'nonsense'",
            "quality.topic.orders: the Avro schema cannot be used",
        ),
        (
            "[topic.orders]\nvalueFormat = 'protobuf'\nvalueSchema = ''\nvalueMessage = 'a.B'",
            "valueSchema is empty",
        ),
        (
            "[topic.orders]\nvalueFormat = 'protobuf'\nvalueSchema = '/w=='\nvalueMessage = 'B'",
            "the descriptor set cannot be used",
        ),
        ("[topic.orders]\nvalueFormat = 'xml'", "'xml' is none of"),
        ("[topic.orders]\nvalueFormat = 7", "valueFormat is no text"),
        ("[topic.orders]\nvalueSchema = 'x'", "means nothing without valueFormat"),
        ("[topic.orders]\nvalueFormat = 'json'\nvalueSchema = 'a int'", "for JSON write schema"),
        (
            "[topic.orders]\nschema = 'a int'\nvalueFormat = 'avro'\nvalueSchema = '{}'",
            "schema and valueFormat contradict each other",
        ),
        ("[topic.orders]\nbadValues = 'drop'", "has no badValues"),
    ],
)
def test_what_is_wrong_about_values_is_named(text: str, refusal: str) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        parsed(text)
