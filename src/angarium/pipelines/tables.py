"""Small Delta tables that jobs write their results to: rows are added once, whoever repeats it.

Needs the extra `angarium[lake]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from angarium.errors import InvalidArgument
from angarium.spark.lake import folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ROWS_MAX: Final = 1_000_000
"""Rows that a job hands over at once. More are refused: a result is for people to look at."""


def add_rows(path: str, rows: pa.Table, *, writer: str, version: int) -> bool:
    """Add rows to the table at `path`, unless `writer` has added this or a later version before.

    Returns whether anything was added. The table is made if there is none.
    """
    delta = _delta()
    where = str(folder(path))
    if delta.DeltaTable.is_deltatable(where):
        last = delta.DeltaTable(where).transaction_version(writer)
        if last is not None and last >= version:
            return False
    mark = delta.Transaction(app_id=writer, version=version)
    delta.write_deltalake(
        where,
        rows,
        mode="append",
        commit_properties=delta.CommitProperties(app_transactions=[mark]),
    )
    return True


def collected(rows: DataFrame) -> pa.Table:
    """Return rows on the driver; `InvalidArgument` if there are too many for that."""
    found = rows.limit(ROWS_MAX + 1).toArrow()
    if found.num_rows > ROWS_MAX:
        raise InvalidArgument(
            f"these are more than {ROWS_MAX:,} rows: take a larger window, or a shorter range"
        )
    return found


def _delta() -> Any:
    try:
        import deltalake  # noqa: PLC0415 (an extra)
    except ImportError:
        raise InvalidArgument("tables need the extra: pip install 'angarium[lake]'") from None
    return deltalake
