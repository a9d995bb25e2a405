"""What comes out: a figure of ours per key, with those of the peers beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

MAIN: Final = {"consistent_one_by_one_p50": "nats_synced"}
"""Whom a goal is about; where nothing is said it is NATS as it comes."""


class Beside(msgspec.Struct, frozen=True):
    """A peer's figure, and ours divided by it, both from rounds in which the two took turns."""

    figure: float
    ratio: float


class Figure(msgspec.Struct):
    """One key. Further fields are further figures of the same key."""

    ours: float | None
    peer_or_baseline: float | None = None
    ratio: float | None = None
    further: Mapping[str, float] = {}
    peers: Mapping[str, Beside] = {}

    def as_json(self) -> dict[str, object]:
        """Return it as the object of its key."""
        told = {"ours": self.ours, "peer_or_baseline": self.peer_or_baseline, "ratio": self.ratio}
        peers = {"peers": msgspec.to_builtins(self.peers)} if self.peers else {}
        return {**told, **self.further, **peers}


class Gathered:
    """The rounds of one key, over all peers."""

    def __init__(self) -> None:
        self._ours: list[float] = []
        self._peers: dict[str, Beside] = {}

    def add(self, ours: Sequence[float], peers: Mapping[str, Sequence[float]]) -> None:
        """Take the rounds in which we and the settings of one peer took turns."""
        self._ours += ours
        for setting, figures in peers.items():
            theirs = statistics.median(figures)
            self._peers[setting] = Beside(rounded(theirs), ratio(statistics.median(ours), theirs))

    def figure(self, key: str) -> Figure:
        """Return what all of them say."""
        main = self._peers.get(MAIN.get(key, "nats"))
        own = rounded(statistics.median(self._ours))
        if main is None:
            return Figure(own, peers=self._peers)
        return Figure(own, main.figure, main.ratio, peers=self._peers)


def rounded(figure: float) -> float:
    """Return as many digits as mean something."""
    return round(figure, 3 if figure < 100 else 1)


def ratio(ours: float, other: float) -> float:
    """Return ours divided by the other."""
    return round(ours / other, 3)


def shown(key: str, figure: Figure) -> str:
    """Return the lines of the table in the terminal."""
    lines = [_line(key, figure.ours, figure.peer_or_baseline, figure.ratio, figure.further)]
    lines += [
        _line(f"  {setting}", None, beside.figure, beside.ratio, {})
        for setting, beside in figure.peers.items()
    ]
    return "\n".join(lines)


def _line(
    name: str,
    ours: float | None,
    other: float | None,
    times: float | None,
    further: Mapping[str, float],
) -> str:
    cells = [
        "-" if cell is None else f"{cell:,.3f}".rstrip("0").rstrip(".")
        for cell in (ours, other, times)
    ]
    more = ", ".join(f"{field} {cell:,.3f}" for field, cell in further.items())
    return f"{name:28}{cells[0]:>16}{cells[1]:>16}{cells[2]:>10}   {more}".rstrip()
