"""Puts the figures of `benchmarks.peers` into docs/performance.md, each beside its goal.

    python -m benchmarks.peers --format json > docs/peers.json
    python -m benchmarks.table

The table in the page is what this makes of docs/peers.json, and a test compares the two: a figure
cannot be changed by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
FIGURES: Final = DOCS / "peers.json"
PAGE: Final = DOCS / "performance.md"

BEGIN: Final = "<!-- the table of benchmarks/table.py begins -->\n"
END: Final = "<!-- and ends -->"

HEADING: Final = """\
| key | what | Angarium | the other | ratio | goal | reached |
|---|---|---|---|---|---|---|"""

Figure = Mapping[str, float | None]


class Line(NamedTuple):
    """What is measured, what the other column is, and when the goal is reached."""

    key: str
    what: str
    other: str
    goal: str
    is_reached: Callable[[Figure], bool]
    further: str = ""
    """What the line's further figures are, as a template over their names."""


def _at_least(name: str, bound: float) -> Callable[[Figure], bool]:
    return lambda figure: (figure[name] or 0) >= bound


def _at_most(name: str, bound: float) -> Callable[[Figure], bool]:
    return lambda figure: (figure[name] or float("inf")) <= bound


def _all(*conditions: Callable[[Figure], bool]) -> Callable[[Figure], bool]:
    return lambda figure: all(condition(figure) for condition in conditions)


LINES: Final = (
    Line(
        "consistent_batched",
        "CONSISTENT, 8 workers, 2,000 records a call, records/s",
        "JetStream R3, async publish",
        "≥ 500,000 and ≥ 15 x",
        _all(_at_least("ours", 500_000), _at_least("ratio", 15)),
    ),
    Line(
        "consistent_60_workers",
        "CONSISTENT, 60 workers in one client, each awaiting its ack, records/s",
        "JetStream R3, the same",
        "≥ 1.5 x",
        _at_least("ratio", 1.5),
    ),
    Line(
        "consistent_60_connections",
        "the same with a connection each",
        "JetStream R3, the same",
        "≥ 1.0 x",
        _at_least("ratio", 1.0),
    ),
    Line(
        "consistent_one_by_one_p50",
        "CONSISTENT, one record at a time, p50 in ms",
        "JetStream R3, `sync_interval: always`",
        "≤ 1.2 ms and below",
        _all(_at_most("ours", 1.2), _at_most("ratio", 0.999)),
        "{ratio_unsynced} x JetStream's default, which syncs later ({peer_unsynced} ms)",
    ),
    Line(
        "eventual_batched",
        "EVENTUAL, batched as above, records/s committed by the end",
        "",
        "≥ 700,000",
        _at_least("ours", 700_000),
    ),
    Line(
        "performance_pub_sub",
        "PERFORMANCE, publish to delivery, 500 records a call, records/s",
        "NATS core",
        "≥ 3 x",
        _at_least("ratio", 3),
    ),
    Line(
        "catch_up_batches",
        "reading a stored topic as batches, records/s",
        "JetStream pull consumer",
        "≥ 1,000,000",
        _at_least("ours", 1_000_000),
    ),
    Line(
        "catch_up_records",
        "reading it as Python records, records/s",
        "JetStream pull consumer",
        "≥ 300,000",
        _at_least("ours", 300_000),
    ),
    Line(
        "grpc_unary_60_workers",
        "gRPC unary to the leader, 60 workers, CONSISTENT, calls/s",
        "an empty grpc.aio handler",
        "≥ 0.6 x; through a follower ≥ 0.35 x",
        _all(_at_least("ratio", 0.6), _at_least("ratio_through_follower", 0.35)),
        "through a follower {through_follower}, {ratio_through_follower} x",
    ),
    Line(
        "end_to_end_p99_ms",
        "publish to delivery at 1,000 records/s over 20 topics, p99 in ms",
        "",
        "≤ 25, p50 ≤ 4",
        _all(_at_most("ours", 25), _at_most("p50", 4)),
        "p50 {p50}",
    ),
    Line(
        "idle_mb",
        "memory of an idle node, MB",
        "nats-server",
        "< 120",
        _at_most("ours", 119.999),
    ),
    Line(
        "loaded_mb",
        "memory of a node after 10 million records, MB",
        "",
        "< 300",
        _at_most("ours", 299.999),
    ),
)


def main() -> None:
    """Write the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    PAGE.write_text(with_table(page, figures), encoding="utf-8")


def with_table(page: str, figures: Mapping[str, Figure]) -> str:
    """Return the page with the table of these figures in the place of the one that is there."""
    between = re.compile(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", re.DOTALL)
    replaced, count = between.subn(lambda _: table(figures), page)
    if count != 1:
        raise SystemExit(f"{PAGE.name} has not one place for the table, but {count}")
    return replaced


def table(figures: Mapping[str, Figure]) -> str:
    """Return a Markdown table of every line that was measured."""
    rows = [_row(line, figures[line.key]) for line in LINES if line.key in figures]
    return "\n".join([HEADING, *rows]) + "\n"


def _row(line: Line, figure: Figure) -> str:
    further = {name: _shown(value) for name, value in figure.items()}
    ours = _shown(figure["ours"])
    if line.further:
        ours += f"; {line.further.format(**further)}"
    other = figure.get("peer_or_baseline")
    beside = "-" if other is None else f"{_shown(other)} ({line.other})"
    ratio = figure.get("ratio")
    cells = (
        f"`{line.key}`",
        line.what,
        ours,
        beside,
        "-" if ratio is None else f"{ratio:.2f}",
        line.goal,
        "yes" if line.is_reached(figure) else "**no**",
    )
    return f"| {' | '.join(cells)} |"


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"


if __name__ == "__main__":
    main()
