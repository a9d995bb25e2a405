"""Records on their way to the reader: a line each, in the form that was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from angarium.cli.grammar.quantities import shown_time
from angarium.cli.output import print_json_line, readable, text_or_base64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.client import Record


class RecordPrinter:
    """Prints records, with headings in front of the first one if they are for a person."""

    def __init__(self, style: str) -> None:
        self._style = style
        self._has_headings = False
        self.count = 0
        """How many were printed."""

    def print_all(self, records: Iterable[Record]) -> None:
        """Print some records, and let them out at once."""
        for record in records:
            self._print(record)
            self.count += 1
        sys.stdout.flush()

    def _print(self, record: Record) -> None:
        if self._style == "json":
            print_json_line(record_json(record))
        elif self._style == "raw":
            sys.stdout.buffer.write((record.value or b"") + b"\n")
        else:
            if not self._has_headings and sys.stdout.isatty():
                print(f"{'RECORD':<20} {'APPENDED (UTC)':<23} {'KEY':<12} VALUE")
            self._has_headings = True
            print(record_line(record))


def record_json(record: Record) -> dict[str, Any]:
    """Return a record for JSON; times in µs since 1970, absent ones left out."""
    found: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        **text_or_base64("key", record.key),
        **text_or_base64("value", record.value),
    }
    if record.headers:
        found["headers"] = [
            {"name": name, **text_or_base64("value", content)} for name, content in record.headers
        ]
    if attempt := attempt_of(record):
        found["attempt"] = attempt
    times = {"timestamp": record.timestamp, "append_time": record.append_time}
    return found | {name: time for name, time in times.items() if time}


def record_line(record: Record) -> str:
    """Return a record for a person."""
    offset = "live" if record.offset is None else record.offset
    name = f"{record.topic}/{record.partition}@{offset}"
    when = shown_time(record.append_time) if record.append_time else "-"
    headers = "".join(
        f" [{readable(name.encode())}={readable(content)}]" for name, content in record.headers
    )
    key, value = readable(record.key), readable(record.value)
    attempt = attempt_of(record)
    again = f" (attempt {attempt})" if attempt > 1 else ""
    return f"{name:<20} {when:<23} {key:<12} {value}{headers}{again}"


def attempt_of(record: Record) -> int:
    """Return which attempt at a group's record this is; 0 for one that belongs to no group."""
    return getattr(record, "attempt", 0)
