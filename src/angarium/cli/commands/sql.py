"""`angarium sql`: a question over topics, answered as a table, in JSON or in Parquet."""

from __future__ import annotations

import base64
import sys
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from angarium.cli.output import print_json_line, print_table, readable
from angarium.cli.profiles import choices
from angarium.cli.spark import starting_spark
from angarium.client import SyncClient

if TYPE_CHECKING:
    from argparse import Namespace


def run(options: Namespace) -> int:
    """Print the answer."""
    chosen = choices(options)
    servers = ",".join(map(str, chosen.servers))
    # Before Spark is started: whether there is a cluster is known at once.
    with SyncClient(servers) as client:
        topics = [info.name for info in client.list_topics()]
    with starting_spark(options) as spark:
        from angarium.pipelines.sql import answer  # noqa: PLC0415 (an extra)

        source = {"servers": servers}
        if options.archive is not None:
            source["archive"] = options.archive
        rows = answer(spark, options.query, topics=topics, options=source)
        if options.parquet is not None:
            rows.write.parquet(options.parquet)
            print(f"The answer is in {options.parquet}.")
            return 0
        # One more than is shown tells whether there are more.
        found = rows.limit(options.max + 1).collect()
        is_cut, found = len(found) > options.max, found[: options.max]
        if chosen.is_json:
            for row in found:
                print_json_line(_plain(row.asDict(recursive=True)))
        else:
            shown = [[_shown(cell) for cell in row] for row in found]
            print_table(rows.columns, shown, none="The answer is empty.")
        if is_cut:
            print(
                f"these are the first {options.max:,} rows; --max shows more, --parquet writes all",
                file=sys.stderr,
            )
    return 0


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as text, or in base64 where they are none."""
    match value:
        case bytes() | bytearray():
            return _text(bytes(value))
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
    return value


def _text(content: bytes) -> Any:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _shown(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return readable(bytes(value))
        case dict() | list() | tuple():
            return str(_plain(value))
    return value
