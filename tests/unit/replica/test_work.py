"""Work that blocks, handed out step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from angarium.errors import DiskFull
from angarium.replica.work import Work, do_now

if TYPE_CHECKING:
    from collections.abc import Generator


def test_every_piece_is_done_where_it_comes_up() -> None:
    done: list[str] = []

    def steps() -> Generator[Work, None, str]:
        yield lambda: done.append("first")
        done.append("between")
        yield lambda: done.append("second")
        return "result"

    assert do_now(steps()) == "result"
    assert done == ["first", "between", "second"]


def _full() -> None:
    raise DiskFull("no room")


def test_a_failure_reaches_whoever_handed_the_work_out() -> None:
    def steps() -> Generator[Work, None, str]:
        try:
            yield _full
        except DiskFull:
            return "handled"
        return "not reached"

    assert do_now(steps()) == "handled"


def test_a_failure_nobody_handles_is_raised() -> None:
    def steps() -> Generator[Work, None, None]:
        yield _full

    with pytest.raises(DiskFull):
        do_now(steps())
