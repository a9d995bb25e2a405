"""A pipeline as a small file: sources, a SQL text or a function, a sink, when, and a checkpoint.

    name = "orders-per-table"
    checkpoint = "checkpoints/orders-per-table"
    trigger = "5 seconds"
    sql = "SELECT key, upper(string(value)) AS value FROM orders"

    [source.orders]
    subscribe = "orders"

    [sink]
    topic = "loud-orders"
    createTopic = true

or, instead of the last three, one of the jobs that are built in: `[archive]`, `[replay]`,
`[mirror]`, `[analytics]`, `[quality]`, with what each of them is told. Whatever is unknown, missing
or contradictory is refused by name before Spark is started.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import InvalidArgument
from angarium.pipelines.intervals import is_interval
from angarium.pipelines.jobs import JOBS, Job, Replay, archive_source
from angarium.spark.lakes.form import LakeForm
from angarium.spark.options import read_options
from angarium.spark.values.codec import refuse_unusable
from angarium.spark.write_options import write_options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ONCE: Final = "once"
"""A trigger: do what is there now, and end."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VIEW: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_FUNCTION: Final = re.compile(r"[\w.]+:\w+")
_MODES: Final = ("append", "update", "complete")
_KEYS: Final = (
    *("name", "checkpoint", "trigger", "sql", "function", "source", "sink", "archive"),
    *JOBS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where rows go: into a topic, into a folder of Parquet files, or onto the terminal."""

    kind: str
    """"topic", "parquet" or "console"."""
    options: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One pipeline."""

    name: str
    checkpoint: str
    trigger: str = "10 seconds"
    sql: str | None = None
    function: str | None = None
    """"module:function", called with the DataFrames by name."""
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sink: Sink | None = None
    archive: Mapping[str, str] | None = None
    """The options of the archive's source, its `path`, and `table`: its form."""
    job: Job | None = None
    """One of the others that are built in."""

    @property
    def kind(self) -> str:
        """What it does, in a word."""
        if self.job is not None:
            return self.job.kind
        return "archive" if self.archive is not None else "sql" if self.sql else "function"


def read_definition(path: Path) -> Definition:
    """Return the pipeline in a file; `InvalidArgument` says what is wrong with it."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path} is no UTF-8 text: {error.reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{path} is no TOML: {error}") from None
    return definition(content, name=path.stem)


def definition(content: Mapping[str, Any], *, name: str) -> Definition:
    """Return the pipeline that `content` describes; `name` is for one that does not say it."""
    if unknown := sorted(set(content) - set(_KEYS)):
        raise InvalidArgument(f"a pipeline has no {unknown[0]}; it has {', '.join(_KEYS)}")
    trigger = _text(content, "trigger") or "10 seconds"
    if trigger != ONCE and not is_interval(trigger):
        raise InvalidArgument(f"trigger: {trigger!r} is neither 'once' nor like '10 seconds'")
    chosen = _text(content, "name") or name
    if not _NAME.fullmatch(chosen):
        raise InvalidArgument(f"name: {chosen!r} has characters other than letters, digits, . _ -")
    checkpoint = _text(content, "checkpoint")
    job = _job(content)
    if isinstance(job, Replay):
        # Its plan is its checkpoint, and the cluster keeps it.
        return Definition(name=chosen, checkpoint=checkpoint or "", trigger=ONCE, job=job)
    if checkpoint is None:
        raise InvalidArgument("a pipeline needs a checkpoint: a folder that is its own")
    if job is not None:
        return Definition(name=chosen, checkpoint=checkpoint, trigger=trigger, job=job)
    if "archive" in content:
        return Definition(
            name=chosen, checkpoint=checkpoint, trigger=trigger, archive=_archive(content)
        )
    sources = {
        view: _source(view, _options(options, f"source.{view}"))
        for view, options in _table(content, "source").items()
    }
    sql, function = _text(content, "sql"), _text(content, "function")
    if (sql is None) == (function is None):
        raise InvalidArgument("a pipeline has either a sql or a function")
    if function is not None and not _FUNCTION.fullmatch(function):
        raise InvalidArgument(f"function: {function!r} is not like module:function")
    if not sources:
        raise InvalidArgument("a pipeline needs at least one [source.NAME]")
    return Definition(
        name=chosen,
        checkpoint=checkpoint,
        trigger=trigger,
        sql=sql,
        function=function,
        sources=sources,
        sink=_sink(_options(_table(content, "sink"), "sink")),
    )


def _job(content: Mapping[str, Any]) -> Job | None:
    given = [name for name in JOBS if name in content]
    if not given:
        return None
    kind = given[0]
    for other in (*given[1:], "archive", "sql", "function", "source", "sink"):
        if other in content:
            raise InvalidArgument(f"{kind} and {other} contradict each other")
    table = _table(content, kind)
    return JOBS[kind](table if kind == "quality" else _options(table, kind))


def _archive(content: Mapping[str, Any]) -> Mapping[str, str]:
    if both := sorted({"sql", "function", "source", "sink"} & content.keys()):
        raise InvalidArgument(f"archive and {both[0]} contradict each other")
    options = _options(_table(content, "archive"), "archive")
    if "path" not in options:
        raise InvalidArgument("archive needs a path: a folder for its table")
    forms = [form.value for form in LakeForm]
    if options.get("table", forms[0]) not in forms:
        raise InvalidArgument(f"archive: table {options['table']!r} is none of {', '.join(forms)}")
    source = {key: value for key, value in options.items() if key not in ("path", "table")}
    archive_source(source)
    return options


def _source(view: str, options: Mapping[str, str]) -> Mapping[str, str]:
    if not _VIEW.fullmatch(view):
        raise InvalidArgument(f"source.{view}: the name of a table has letters, digits and _")
    try:
        refuse_unusable(read_options(options, is_stream=True).values)
    except InvalidArgument as error:
        raise InvalidArgument(f"source.{view}: {error}") from None
    return options


def _sink(options: Mapping[str, str]) -> Sink:
    rest = dict(options)
    mode = rest.pop("mode", "append")
    if mode not in _MODES:
        raise InvalidArgument(f"sink: mode {mode!r} is none of {', '.join(_MODES)}")
    kinds = [kind for kind in ("topic", "parquet", "console") if kind in rest]
    if len(kinds) != 1:
        raise InvalidArgument("a sink is one of topic, parquet (a folder) and console")
    if kinds[0] == "topic":
        if mode != "append":
            raise InvalidArgument(f"sink: a topic is appended to; mode {mode!r} is not for it")
        try:
            refuse_unusable(write_options(rest, is_stream=True).values)
        except InvalidArgument as error:
            raise InvalidArgument(f"sink: {error}") from None
        return Sink(kind="topic", options=rest)
    if extra := sorted(rest.keys() - {kinds[0]}):
        raise InvalidArgument(f"sink: {extra[0]} is not for {kinds[0]}")
    return Sink(kind=kinds[0], options=rest, mode=mode)


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise InvalidArgument(f"{name} is no table; write [{name}]")
    return table


def _options(table: Any, name: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise InvalidArgument(f"{name} is no table; write [{name}]")
    options = {}
    for key, value in table.items():
        if isinstance(value, bool):
            options[key] = str(value).lower()
        elif isinstance(value, str | int):
            options[key] = str(value)
        elif isinstance(value, list) and all(isinstance(one, str) for one in value):
            options[key] = ",".join(value)
        else:
            raise InvalidArgument(f"{name}: {key} is neither a text nor a number nor a list")
    return options


def _text(content: Mapping[str, Any], name: str) -> str | None:
    value = content.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(f"{name} is no text")
    return value
