"""Makes docs/rounds.md of what `benchmarks.rounds` found; a test compares page and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
FIGURES: Final = DOCS / "rounds.json"
PAGE: Final = DOCS / "rounds.md"

OPENING: Final = """\
# What a record alone costs

Made by `make bench ONLY=rounds` from [rounds.json](rounds.json); a test holds the two together.
Records of 100 bytes, one a call, each acknowledged before its worker sends the next. Three nodes on
this one machine, three replicas, so client, leader and followers share its cores: rates and times
are good beside each other, processor time and wake-ups say more.

- **µs** is processor time, user and system together, and **wakes** how often a thread that waited
  was given something to do, both per record. *Leader* is the busiest process: with one topic that
  is its leader, with 20 topics all three lead some. *Follower* is the mean of the others.
- In *performance* mode nothing is stored, and the client also receives every record.
- The *bare quorum* is a leader and two followers in Python that only frame, append, `fdatasync`
  and count (`benchmarks/bare_quorum.py`); an *empty handler* is the door's server with nothing
  behind it.
"""

HEADING: Final = """\
| what | records/s | p50 | p99 ms | client µs | wakes | leader µs | wakes | follower µs | wakes |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


class Row(NamedTuple):
    """One load on one thing; everything but rate and times is per record."""

    shape: str
    what: str
    records_per_s: float
    p50_ms: float
    p99_ms: float
    client_us: float
    client_wakeups: float
    leader_us: float
    leader_wakeups: float
    follower_us: float | None
    follower_wakeups: float | None

    @classmethod
    def of(
        cls,
        shape: str,
        what: str,
        *,
        records: int,
        seconds: float,
        p50_ms: float,
        p99_ms: float,
        client: tuple[float, int],
        servers: Sequence[tuple[float, int]],
    ) -> Self:
        """Divide what each process used, in seconds and wake-ups, by the records."""
        count = max(1, records)
        leader, *followers = sorted(servers, reverse=True)
        each = max(1, len(followers)) * count
        return cls(
            shape=shape,
            what=what,
            records_per_s=round(records / seconds, 1),
            p50_ms=round(p50_ms, 3),
            p99_ms=round(p99_ms, 3),
            client_us=round(client[0] / count * 1e6, 1),
            client_wakeups=round(client[1] / count, 2),
            leader_us=round(leader[0] / count * 1e6, 1),
            leader_wakeups=round(leader[1] / count, 2),
            follower_us=round(sum(one[0] for one in followers) / each * 1e6, 1)
            if followers
            else None,
            follower_wakeups=round(sum(one[1] for one in followers) / each, 2)
            if followers
            else None,
        )


def shown(row: Row) -> str:
    """Return a row for a terminal."""
    cells = [f"{_number(cell):>8}" for cell in row[2:]]
    return f"{row.shape:18}{row.what:24}{' '.join(cells)}"


def page(figures: Mapping[str, Any]) -> str:
    """Return the page of these figures: a table for each shape of load."""
    rows = [Row(**row) for row in figures["rows"]]
    parts = [OPENING, f"Measured on {figures['machine']}; load before: {figures['load_before']}.\n"]
    for shape in dict.fromkeys(row.shape for row in rows):
        lines = [
            f"| {row.what} | {' | '.join(map(_number, row[2:]))} |"
            for row in rows
            if row.shape == shape
        ]
        parts.append("\n".join([f"## {shape[0].upper()}{shape[1:]}\n", HEADING, *lines]) + "\n")
    return "\n".join(parts)


def written(figures: Mapping[str, Any]) -> None:
    """Write figures and page."""
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(figures), encoding="utf-8")


def _number(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:,.0f}" if cell >= 100 else f"{cell:,.2f}"


if __name__ == "__main__":
    written(json.loads(FIGURES.read_text(encoding="utf-8")))
