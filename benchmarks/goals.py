"""The goals of the figures in docs/peers.json, and whether they are reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.standing import written

if TYPE_CHECKING:
    from benchmarks.standing import Figures

Figure = Mapping[str, Any]

HEADING: Final = """\
| key | what | Angarium | the other | ratio | goal | reached |
|---|---|---|---|---|---|---|"""


class Goal(NamedTuple):
    """What is measured, what the other column is, and when the goal is reached."""

    key: str
    what: str
    other: str
    goal: str
    is_reached: Callable[[Figure], bool]
    further: str = ""
    """What the line's further figures are, as a template over their names."""


def goals_table(figures: Figures) -> str:
    """Return a Markdown table of every goal whose figure was measured."""
    rows = [_row(goal, figures[goal.key]) for goal in GOALS if goal.key in figures]
    return "\n".join([HEADING, *rows]) + "\n"


def _row(goal: Goal, figure: Figure) -> str:
    further = {name: written(value) for name, value in figure.items() if name != "peers"}
    ours = written(figure["ours"])
    if goal.further:
        ours += f"; {goal.further.format(**further)}"
    other = figure.get("peer_or_baseline")
    beside = "-" if other is None else f"{written(other)} ({goal.other})"
    ratio = figure.get("ratio")
    cells = (
        f"`{goal.key}`",
        goal.what,
        ours,
        beside,
        "-" if ratio is None else f"{ratio:.2f}",
        goal.goal,
        "yes" if goal.is_reached(figure) else "**no**",
    )
    return f"| {' | '.join(cells)} |"


def _at_least(name: str, bound: float) -> Callable[[Figure], bool]:
    return lambda figure: (figure[name] or 0) >= bound


def _at_most(name: str, bound: float) -> Callable[[Figure], bool]:
    return lambda figure: (figure[name] or float("inf")) <= bound


def _all(*conditions: Callable[[Figure], bool]) -> Callable[[Figure], bool]:
    return lambda figure: all(condition(figure) for condition in conditions)


GOALS: Final = (
    Goal(
        "consistent_batched",
        "CONSISTENT, 8 workers, 2,000 records a call, records/s",
        "JetStream R3, async publish",
        "≥ 500,000 and ≥ 15 x",
        _all(_at_least("ours", 500_000), _at_least("ratio", 15)),
    ),
    Goal(
        "consistent_60_workers",
        "CONSISTENT, 60 workers in one client, each awaiting its ack, records/s",
        "JetStream R3, the same",
        "≥ 1.5 x",
        _at_least("ratio", 1.5),
    ),
    Goal(
        "consistent_60_connections",
        "the same with a connection each",
        "JetStream R3, the same",
        "≥ 1.5 x",
        _at_least("ratio", 1.5),
    ),
    Goal(
        "consistent_one_by_one_p50",
        "CONSISTENT, one record at a time, p50 in ms",
        "JetStream R3, `sync_interval: always`",
        "≤ 1.0 x",
        _at_most("ratio", 1.0),
    ),
    Goal(
        "eventual_batched",
        "EVENTUAL, batched as above, records/s committed by the end",
        "CONSISTENT in the same rounds",
        "≥ 1.3 x",
        _at_least("ratio", 1.3),
    ),
    Goal(
        "performance_pub_sub",
        "PERFORMANCE, publish to delivery, 500 records a call, records/s",
        "NATS core",
        "≥ 3 x",
        _at_least("ratio", 3),
    ),
    Goal(
        "catch_up_batches",
        "reading a stored topic as batches, records/s",
        "JetStream pull consumer",
        "≥ 1,000,000",
        _at_least("ours", 1_000_000),
    ),
    Goal(
        "catch_up_records",
        "reading it as Python records, records/s",
        "JetStream pull consumer",
        "≥ 300,000",
        _at_least("ours", 300_000),
    ),
    Goal(
        "grpc_unary_60_workers",
        "gRPC unary to the leader, 60 workers, CONSISTENT, calls/s",
        "an empty grpc.aio handler",
        "≥ 0.6 x; through a follower ≥ 0.35 x",
        _all(_at_least("ratio", 0.6), _at_least("ratio_through_follower", 0.35)),
        "through a follower {through_follower}, {ratio_through_follower} x",
    ),
    Goal(
        "end_to_end_p50_ms",
        "publish to delivery at 1,000 records/s over 20 topics, p50 in ms",
        "JetStream R3, push consumers",
        "≤ 4",
        _at_most("ours", 4),
    ),
    Goal(
        "end_to_end_p99_ms",
        "the same, p99 in ms",
        "JetStream R3, push consumers",
        "≤ 25 and ≤ 0.5 x",
        _all(_at_most("ours", 25), _at_most("ratio", 0.5)),
    ),
    Goal(
        "idle_mb",
        "memory of an idle node, MB",
        "nats-server",
        "≤ 55",
        _at_most("ours", 55),
    ),
    Goal(
        "loaded_mb",
        "memory of a node after 10 million records, MB",
        "",
        "< 300",
        _at_most("ours", 299.999),
    ),
)
