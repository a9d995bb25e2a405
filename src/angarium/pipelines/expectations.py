"""Expectations: what records of a topic have to be like, as a file says it and as SQL asks it.

    [quality.topic.orders]
    schema = "id LONG, amount DOUBLE, dish STRING"
    not_null = ["id", "record.key"]
    fresh = "10 minutes"
    range.amount = { min = 0, max = 1000 }
    one_of.dish = ["tea", "cake"]
    rule."a cake costs something" = "dish <> 'cake' OR amount > 0"

With a schema, values are JSON and their fields columns; `valueFormat`, `valueSchema` and so on, as
the source has them, say the same of Avro and Protobuf. What a record has besides is below `record`:
record.key, record.value, record.partition, record.offset, record.timestamp, record.headers. A
condition that is null, because a field is missing, is not failed: `not_null` asks for that.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from angarium.errors import InvalidArgument
from angarium.pipelines.intervals import interval_s
from angarium.spark.options import Given, read_options
from angarium.spark.values.codec import refuse_unusable
from angarium.spark.values.options import READ_NAMES, ValueFormat, value_options

if TYPE_CHECKING:
    from collections.abc import Mapping

DEAD_LETTERS: Final = "quality.dlq"
"""Where records go that failed, unless a file says otherwise. The groups' own, angarium.dlq, will
do as well once a group has given something up: only the cluster makes topics of such names."""

FITS: Final = "the value fits the schema"
CORRUPT: Final = "_corrupt_record"
"""The column that Spark fills where a value does not fit."""

EXPECTATIONS_MAX: Final = 100
"""For one topic. More are refused: each is counted apart."""

_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_VALUES: Final = ("valueFormat", "valueSchema", "valueSchemaFile", "valueMessage")
_KEYS: Final = ("schema", *_VALUES, "not_null", "range", "one_of", "matches", "rule", "fresh")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One thing that records have to be."""

    name: str
    condition: str
    """In SQL. Only what is false has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicQuality:
    """What is expected of one topic."""

    topic: str
    schema: str | None = None
    """The fields of JSON values, in DDL."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Options of the source that decode Avro or Protobuf values; empty if they are neither."""
    expectations: tuple[Expectation, ...] = ()
    fresh_s: int | None = None
    """How old its newest record may be."""

    @property
    def names(self) -> list[str]:
        """All expectations of records, the schema first."""
        return [FITS] * self.has_fields + [one.name for one in self.expectations]

    @property
    def has_fields(self) -> bool:
        """Whether values are decoded, and so can be what they should not be."""
        return self.schema is not None or bool(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What is expected of topics, and where records go."""

    kind: ClassVar[str] = "quality"

    topics: tuple[TopicQuality, ...]
    dead_letter_topic: str = DEAD_LETTERS
    """Where records go that failed, with the reason."""
    passed_topic: str | None = None
    """Where all others go; None: nowhere, they are where they were."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Those of the source but for the topics."""


def quality_in(table: Mapping[str, Any]) -> Quality:
    """Return what a pipeline's file expects; `InvalidArgument` names what is wrong."""
    rest = dict(table)
    topics = rest.pop("topic", None)
    if not isinstance(topics, dict) or not topics:
        raise InvalidArgument("quality needs at least one [quality.topic.NAME]")
    dead, passed = rest.pop("dead_letter_topic", DEAD_LETTERS), rest.pop("passed_topic", None)
    for name, value in (("dead_letter_topic", dead), ("passed_topic", passed or "x")):
        if not isinstance(value, str) or not value:
            raise InvalidArgument(f"quality: {name} is no topic")
    if dead in topics or passed in topics:
        raise InvalidArgument("quality: a topic that is checked cannot be one that is written")
    for name in rest:
        if name.lower() in {"subscribe", "subscribepattern", "assign", "path"}:
            raise InvalidArgument(f"quality: the topics are those below quality.topic, not {name}")
        if name.lower() in {one.lower() for one in READ_NAMES}:
            raise InvalidArgument(f"quality: {name} is said of each topic, below quality.topic")
    options = {name: _option(name, value) for name, value in rest.items()}
    read_options({**options, "subscribe": ",".join(topics)}, is_stream=True)
    return Quality(
        topics=tuple(topic_quality(name, content) for name, content in topics.items()),
        dead_letter_topic=dead,
        passed_topic=passed,
        options=options,
    )


def topic_quality(topic: str, table: Any) -> TopicQuality:
    """Return what is expected of a topic."""
    where = f"quality.topic.{topic}"
    if not isinstance(table, dict):
        raise InvalidArgument(f"{where} is no table; write [{where}]")
    if unknown := sorted(set(table) - set(_KEYS)):
        raise InvalidArgument(f"{where} has no {unknown[0]}; it has {', '.join(_KEYS)}")
    schema = table.get("schema")
    if schema is not None and (not isinstance(schema, str) or not schema.strip()):
        raise InvalidArgument(f'{where}: schema is like "id LONG, name STRING"')
    values = _values(table, where)
    found = [
        *_not_null(table.get("not_null", []), where),
        *_ranges(_below(table, "range", where), where),
        *_one_of(_below(table, "one_of", where), where),
        *_matches(_below(table, "matches", where), where),
        *_rules(_below(table, "rule", where), where),
    ]
    fresh = table.get("fresh")
    if not found and schema is None and not values and fresh is None:
        raise InvalidArgument(f"{where} expects nothing; it may have {', '.join(_KEYS)}")
    if len(found) > EXPECTATIONS_MAX:
        raise InvalidArgument(f"{where} has more than {EXPECTATIONS_MAX} expectations")
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidArgument(f"{where} expects twice that {twice[0]}")
    return TopicQuality(
        topic=topic,
        schema=schema,
        values=values,
        expectations=tuple(found),
        fresh_s=None if fresh is None else math.ceil(interval_s(f"{where}: fresh", fresh)),
    )


def _values(table: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the options that a topic's values are decoded by."""
    given = {name: table[name] for name in _VALUES if name in table}
    if given and "schema" in table:
        raise InvalidArgument(f"{where}: schema and {next(iter(given))} contradict each other")
    for name, text in given.items():
        if not isinstance(text, str):
            raise InvalidArgument(f"{where}: {name} is no text")
    try:
        asked = value_options(Given(given, known=_VALUES, kind="topic"))
        refuse_unusable(asked)
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error}") from None
    if asked is not None and asked.format is ValueFormat.JSON:
        raise InvalidArgument(f'{where}: for JSON write schema = "id LONG, name STRING"')
    return given


def _not_null(columns: Any, where: str) -> list[Expectation]:
    if not isinstance(columns, list):
        raise InvalidArgument(f'{where}: not_null is a list of columns: ["id"]')
    return [
        Expectation(f"{_column(one, where)} is not null", f"{_quoted(one)} IS NOT NULL")
        for one in columns
    ]


def _ranges(table: Mapping[str, Any], where: str) -> list[Expectation]:
    found = []
    for column, bounds in _columns(table, where).items():
        if not isinstance(bounds, dict) or not bounds or set(bounds) - {"min", "max"}:
            raise InvalidArgument(f"{where}: range.{column} is like {{ min = 0, max = 1000 }}")
        for side, sign, said in (("min", ">=", "at least"), ("max", "<=", "at most")):
            if side in bounds:
                bound = _literal(bounds[side], f"{where}: range.{column}.{side}")
                found.append(
                    Expectation(
                        f"{column} is {said} {bounds[side]}", f"{_quoted(column)} {sign} {bound}"
                    )
                )
    return found


def _one_of(table: Mapping[str, Any], where: str) -> list[Expectation]:
    found = []
    for column, values in _columns(table, where).items():
        if not isinstance(values, list) or not values:
            raise InvalidArgument(f'{where}: one_of.{column} is a list: ["tea", "cake"]')
        said = ", ".join(map(str, values))
        among = ", ".join(_literal(one, f"{where}: one_of.{column}") for one in values)
        found.append(Expectation(f"{column} is one of {said}", f"{_quoted(column)} IN ({among})"))
    return found


def _matches(table: Mapping[str, Any], where: str) -> list[Expectation]:
    found = []
    for column, pattern in _columns(table, where).items():
        if not isinstance(pattern, str):
            raise InvalidArgument(f"{where}: matches.{column} is a regular expression")
        literal = _literal(pattern, where)
        found.append(
            Expectation(f"{column} matches {pattern}", f"string({_quoted(column)}) RLIKE {literal}")
        )
    return found


def _rules(table: Mapping[str, Any], where: str) -> list[Expectation]:
    for name, text in table.items():
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"{where}: rule.{name!r} is a condition in SQL")
    return [Expectation(name, f"({text})") for name, text in table.items()]


def _below(table: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise InvalidArgument(f"{where}: {name} is a table: {name}.COLUMN = …")
    return found


def _columns(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a table by columns: `record.offset` is written as a table in a table."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name == "record" and isinstance(value, dict):
            found |= {f"record.{inner}": one for inner, one in value.items()}
        else:
            found[name] = value
    return {_column(name, where): value for name, value in found.items()}


def _column(name: Any, where: str) -> str:
    if not isinstance(name, str) or not _FIELD.fullmatch(name):
        raise InvalidArgument(f"{where}: {name!r} is no column")
    return name


def _quoted(column: str) -> str:
    return ".".join(f"`{part}`" for part in column.split("."))


def _literal(value: Any, where: str) -> str:
    """Return a value as SQL has it."""
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return f"{value!r}D"
        case str():
            # A text without escapes: whatever is in it means itself.
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    raise InvalidArgument(f"{where}: {value!r} is neither a text nor a number")


def _option(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    raise InvalidArgument(f"quality: {name} is neither a text nor a number")
