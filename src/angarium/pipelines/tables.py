"""Small Delta tables for the results of jobs: rows are added once, even if a job is repeated.

Needs the extra `angarium[lake]`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import FilesChanged, InvalidArgument, PreconditionFailed
from angarium.spark.lake import folder
from angarium.spark.lakes.delta import opened
from angarium.spark.lakes.marks import until_committed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ROWS_MAX: Final = 1_000_000
"""Rows that a job hands over at once. More are refused: a result is for people to look at."""

COMMITS_MAX: Final = 1_000
"""How far back in a table's history a writer's last commit is looked for."""


def add_rows(
    path: str, rows: pa.Table, *, writer: str, version: int, of: str | None = None
) -> bool:
    """Add rows to the table at `path`, unless `writer` has added this or a later version before.

    Returns whether anything was added. The table is made if there is none. `of` says what the rows
    were made from: `PreconditionFailed` if that version was made from something else.
    """
    _delta()
    where = str(folder(path))
    return until_committed(lambda: _added(where, rows, writer, version, of))


def _added(where: str, rows: pa.Table, writer: str, version: int, of: str | None) -> bool:
    delta = _delta()
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 (an extra)

    if not rows.num_rows and not delta.DeltaTable.is_deltatable(where):
        return False
    # The rows are committed from the state that was looked at: another driver of the same writer
    # that comes between fails the commit, which begins again.
    table = opened(where, schema=rows.schema)
    last = table.transaction_version(writer)
    if last is not None and last >= version:
        _refuse_other(table, writer, version, last, of)
        return False
    if not rows.num_rows:
        return False
    mark = delta.Transaction(app_id=writer, version=version)
    properties = delta.CommitProperties(
        app_transactions=[mark],
        custom_metadata=None if of is None else {writer: f"{version} {_digest(of)}"},
    )
    try:
        delta.write_deltalake(table, rows, mode="append", commit_properties=properties)
    except CommitFailedError as error:
        raise FilesChanged(f"{where} changed during a commit: {error}") from None
    return True


def _refuse_other(table: Any, writer: str, version: int, last: int, of: str | None) -> None:
    """Raise `PreconditionFailed` unless the newest version that was added is this one."""
    said = (commit.get(writer) for commit in table.history(COMMITS_MAX))
    before = next((one for one in said if one is not None), None)
    if of is None or before is None or before == f"{version} {_digest(of)}":
        return
    raise PreconditionFailed(
        f"batch {version} of {writer} is not what was added to the table before (up to batch "
        f"{last}): its checkpoint is an older copy, or another query has used it as well. Nothing "
        "was added; start with a new checkpoint behind what the table has"
    )


def _digest(of: str) -> str:
    return hashlib.blake2b(of.encode(), digest_size=16).hexdigest()


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
