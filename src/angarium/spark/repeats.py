"""A number that was committed before comes again: is it the same, or would something be lost?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.errors import PreconditionFailed
from angarium.spark.contents import remembered

if TYPE_CHECKING:
    from angarium.api.transactions import Committed
    from angarium.spark.contents import Contents

_BY_NUMBER: Final = "checkRepeats=false lets the number alone decide, if it is the same after all"


def check_batch(query: str, batch: int, own: Contents, committed: Committed) -> None:
    """Raise `PreconditionFailed` for a micro-batch that is not the one committed before."""
    last = None if committed.last_sequence is None else committed.last_sequence // 2
    before = _before(own, committed, is_older=last is not None and last > batch)
    if before is None:
        return
    then = f"batch {batch} of the query {query} was written before, of something else"
    if last is not None and last > batch:
        then = f"batch {batch} of the query {query} comes after batch {last} was written"
    go_on = f" and startingOffsets={before.ends}" if _is_one_source(before.ends) else ""
    raise PreconditionFailed(
        f"{then}: that was {before}; this is {own}. Nothing was written. The checkpoint is an "
        "older copy, or another query has used it as well. To go on behind what was written, start "
        f"with a new checkpointLocation{go_on or ' behind it'}; {_BY_NUMBER}"
    )


def check_write(write_id: str, version: int, own: Contents, committed: Committed) -> None:
    """Raise `PreconditionFailed` for a write that is not the one committed under its id."""
    last = committed.last_sequence
    before = _before(own, committed, is_older=last is not None and last > version)
    if before is None:
        return
    then = f"under writeId {write_id}, version {version}, something else was written before"
    if last is not None and last > version:
        then = f"version {version} of writeId {write_id} comes after version {last} was written"
    raise PreconditionFailed(
        f"{then}: that was {before}; this is {own}. Nothing was written. Rows that are to be "
        f"written as well need a writeId of their own, or a higher writeVersion; {_BY_NUMBER}"
    )


def _before(own: Contents, committed: Committed, *, is_older: bool) -> Contents | None:
    """Return what was committed instead; None if that is the same, or nobody knows."""
    before = remembered(committed.content)
    if before is None or (not is_older and own.is_same_as(before)):
        return None
    return before


def _is_one_source(ends: str) -> bool:
    return ends.startswith("{") and "\n" not in ends
