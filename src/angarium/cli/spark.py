"""Starting Spark for a command: said at once, quietly, and ended with the command."""

from __future__ import annotations

import importlib.util
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from angarium.cli.complaints import Refusal

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

_CHANGED: Final = (
    "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE]",
    "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE]",
    "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA]",
    "sources in the checkpoint offsets and now there are",
)
"""How Spark says that a checkpoint is not this query's."""

_FAILED: Final = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")


@contextmanager
def starting_spark(options: Namespace) -> Iterator[Any]:
    """Start a session (`pyspark.sql.SparkSession`) on `--master`; what Spark refuses is said in a
    sentence."""
    if importlib.util.find_spec("pyspark") is None:
        raise Refusal(
            "this needs Spark, which is not installed: pip install 'angarium[spark]' (about 460 MB)"
            ", or 'angarium[spark,java]' if there is no Java 17 or newer"
        )
    print("starting Spark (about 10 s)", file=sys.stderr, flush=True)
    from angarium.spark.session import log_path, spark_session  # noqa: PLC0415 (an extra)

    spark = spark_session(options.master, config=dict(options.conf), verbose=options.verbose)
    try:
        yield spark
    except Exception as error:
        told = spark_refusal(error)
        if told is None or options.verbose:
            raise
        raise Refusal(f"{told}\n--verbose shows all of it, {log_path()} what Spark said") from None
    finally:
        spark.stop()


def spark_refusal(error: Exception) -> str | None:
    """Return the sentence in what Spark raised; None if it was not Spark."""
    if not type(error).__module__.startswith("pyspark."):
        return None
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(sign in str(error) for sign in _CHANGED):
        return (
            "the query is another one than its checkpoint was made by: give it a new checkpoint "
            f"(and mind where it starts), or go back to the old query. Spark says: {_plain(lines)}"
        )
    # Ours, raised in one of Spark's Python processes, is the one that says what is wrong.
    ours = [line for line in lines if line.startswith("angarium.") and ": " in line]
    if ours:
        return ours[-1].partition(": ")[2]
    return _plain(lines) or type(error).__name__


def _plain(lines: Sequence[str]) -> str:
    """Return the first line, without the ids by which Spark tells queries apart."""
    return _FAILED.sub("", lines[0]) if lines else ""
