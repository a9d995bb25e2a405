"""The live table: an overview laid out for a terminal, or told in lines where there is none."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Final

from angarium.cli.grammar.quantities import shown_size
from angarium.cli.output import table_lines
from angarium.cli.overview import Overview, changes, leaders_text
from angarium.cli.screen import Line, Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

RATE_LINE_SECONDS: Final = 10.0
"""Without a terminal, growing topics are told no more often than this."""

REASONS_MAX: Final = 4
"""So many reasons why a node is not ready are shown; the topics and what to do need room."""


class Dashboard:
    """Shows one overview after the other."""

    def __init__(self, *, footer: Sequence[str] = (), title: str = "Angarium") -> None:
        self.footer = list(footer)
        """Lines below the table; on a terminal they stay, otherwise they are written once."""
        self._title = title
        self._screen = Screen(sys.stdout) if sys.stdout.isatty() else None
        self._last: Overview | None = None
        self._rates_told_at = 0.0
        self._started_at = time.monotonic()

    def say(self, sentence: str) -> None:
        """Tell something that happened."""
        line = f"{time.strftime('%H:%M:%S')} {sentence}"
        if self._screen is not None:
            self._screen.say(line)
        else:
            print(line, flush=True)

    def show(self, now: Overview) -> None:
        """Show how things are: draw them, or tell what has changed."""
        if self._screen is not None:
            up = int(time.monotonic() - self._started_at)
            rows = shutil.get_terminal_size().lines
            block = lines(
                now, title=self._title, up_seconds=up, footer=self.footer, lines_max=rows - 1
            )
            self._screen.draw(block)
        else:
            for sentence in changes(self._last, now):
                self.say(sentence)
            self._tell_rates(now)
        self._last = now

    def tell_footer(self) -> None:
        """Without a terminal: write the footer, once."""
        if self._screen is None:
            print("\n".join(["", *self.footer, ""]), flush=True)

    def _tell_rates(self, now: Overview) -> None:
        growing = [topic for topic in now.topics if topic.rate]
        if growing and now.at - self._rates_told_at >= RATE_LINE_SECONDS:
            self._rates_told_at = now.at
            for topic in growing:
                self.say(f"topic {topic.name}: {topic.records:,} records, {topic.rate:,.0f}/s")


def lines(
    now: Overview, *, title: str, up_seconds: int, footer: Sequence[str], lines_max: int = 40
) -> list[Line]:
    """Return the whole block. Topics that do not fit are left out, resting ones first."""
    hours, rest = divmod(up_seconds, 3600)
    clock = f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
    alive = f"{now.alive} of {len(now.nodes)} nodes alive"
    head = f"{title}  cluster {now.cluster_id[:12] or '?'}  {alive}  {clock}"
    block = [Line(""), Line(head, "bold"), Line("")]
    nodes = table_lines(
        ("node", "state", "wire", "pid", "leads", "replicas", "lag", "memory"),
        [
            (
                node.node,
                node.state,
                node.address,
                node.pid,
                node.leads,
                node.replicas,
                node.lag,
                shown_size(node.memory_bytes) if node.memory_bytes else None,
            )
            for node in now.nodes
        ],
    )
    block += [Line(nodes[0], "dim")]
    block += [
        Line(text, "" if node.is_alive else "red")
        for text, node in zip(nodes[1:], now.nodes, strict=True)
    ]
    for node in now.nodes:
        block += [Line(f"  node {node.node}: {one}", "red") for one in node.unready[:REASONS_MAX]]
        if len(node.unready) > REASONS_MAX:
            more = len(node.unready) - REASONS_MAX
            block.append(Line(f"  node {node.node}: {more} more: angarium cluster status", "red"))
    topics_max = max(1, lines_max - len(block) - len(footer) - 4)
    shown = list(now.topics)
    if len(shown) > topics_max:
        shown = sorted(shown, key=lambda one: (one.rate == 0, one.name))[:topics_max]
    topics = table_lines(
        ("topic", "partitions", "led by", "records", "records/s"),
        [
            (one.name, one.partitions, leaders_text(one), f"{one.records:,}", f"{one.rate:,.0f}")
            for one in shown
        ],
    )
    block += [Line(""), Line(topics[0], "dim"), *map(Line, topics[1:])]
    if len(now.topics) > len(shown):
        block.append(Line(f"… and {len(now.topics) - len(shown)} more: angarium topic list"))
    return [*block, Line(""), *(Line(text) for text in footer)]
