"""An archive's marks at a commit: they are what the commit began from, or it is refused.

A mark says up to which offset a partition is archived. A driver reads the marks, has files written
behind them, and commits both. Another driver may have committed in between, and the first one may
have been suspended for as long as that took: without the comparison the same records would be in
the table twice.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from angarium.errors import ArchiveAdvanced, FilesChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from angarium.spark.lakes.contents import Stretch

_Result = TypeVar("_Result")

COMMITS_TRIED: Final = 20
"""How often a commit is tried while others change the table's files; then it fails."""

_WAIT_S: Final = 0.02
"""The wait before the second try; each one after that is longer by as much."""


def check_marks(
    path: Path,
    stretches: Iterable[Stretch],
    *,
    since: Mapping[Stretch, int],
    now: Mapping[Stretch, int],
) -> None:
    """Raise `ArchiveAdvanced` unless the marks of `stretches` are those of `since`."""
    for one in sorted(stretches):
        before, found = since.get(one, 0), now.get(one, 0)
        if before != found:
            raise ArchiveAdvanced(
                f"{one.topic} partition {one.partition} is archived up to {found} in {path}, and "
                f"this commit began from {before}: another query archives the topic into the same "
                "table. Nothing of this commit was added. Read the marks again and archive what "
                "lies behind them, and end one of the queries: both fetch every record"
            )


def until_committed(commit: Callable[[], _Result]) -> _Result:
    """Return what `commit` does; it is repeated while files change: `FilesChanged` if that goes on.

    Each try has to begin with the newest state of the table, and to compare its marks.
    """
    for attempt in range(1, COMMITS_TRIED):
        try:
            return commit()
        except FilesChanged:
            time.sleep(_WAIT_S * attempt)
    return commit()
