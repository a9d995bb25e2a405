"""Metrics in the text form that Prometheus reads.

Names keep its rules: base units (seconds, bytes), `_total` for what only grows, `_info` for facts.
Labels have few, known values: a topic's or a client's name is never one, because the number of
series would then depend on who creates topics.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram", "summary"]

REQUEST_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of the buckets in which requests are counted by how long they took."""


class Sample(NamedTuple):
    """One number, with what tells it from others of its name."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name."""

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


def gauge(name: str, text: str, value: float) -> Family:
    """Return a number that goes up and down."""
    return Family(name, "gauge", text, (Sample(value),))


def counter(name: str, text: str, value: float) -> Family:
    """Return a number that only grows."""
    assert name.endswith("_total"), "counters are called so"
    return Family(name, "counter", text, (Sample(value),))


@dataclass(slots=True)
class Histogram:
    """How often something took how long."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def samples(self, labels: tuple[tuple[str, str], ...] = ()) -> Iterable[Sample]:
        """Yield the samples that Prometheus wants of a histogram."""
        seen = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            seen += count
            yield Sample(seen, (*labels, ("le", f"{bound:g}")), "_bucket")
        seen += self.counts[-1]
        yield Sample(seen, (*labels, ("le", "+Inf")), "_bucket")
        yield Sample(self.total, labels, "_sum")
        yield Sample(seen, labels, "_count")


def exposition(families: Iterable[Family]) -> bytes:
    """Return the page."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for sample in family.samples:
            labels = ",".join(f'{name}="{_quoted(value)}"' for name, value in sample.labels)
            braces = f"{{{labels}}}" if labels else ""
            lines.append(f"{family.name}{sample.suffix}{braces} {sample.value:.17g}")
    return ("\n".join(lines) + "\n").encode()


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
