"""What a subscription remembers of partitions that it leaves out, and forgets with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from angarium.client.reading.absent import Absent
from angarium.client.reading.cursor import Cursor
from angarium.client.reading.starts import LATEST
from angarium.errors import NotLeader


def test_nothing_is_kept_of_a_partition_that_is_no_longer_wanted() -> None:
    now = [100.0]
    waiting: Any = SimpleNamespace(tell=lambda _: None, because=lambda *_, **__: None)
    absent = Absent(waiting, patience_s=1.0, clock=lambda: now[0], wall=lambda: 0.0)
    kept, lost, open_at = (Cursor("t", number, LATEST) for number in range(3))
    for one in (lost, open_at):
        absent.refused(one, NotLeader("gone"))
    link: Any = object()
    open_at.link = link
    now[0] += 2.0
    absent.look([kept, lost, open_at], {})
    assert (absent._told, set(absent._links)) == ({lost}, {open_at})
    absent.look([kept], {})
    assert (absent._told, absent._links, absent._since) == (set(), {}, {})
