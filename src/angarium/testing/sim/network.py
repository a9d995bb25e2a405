"""A network that delays, loses, repeats and reorders, and can be cut one way or both.

In a run with several regions (`wan`) what crosses from one to another takes longer and may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from angarium.testing.sim.clock import Scheduler
    from angarium.testing.sim.wan import Wan


@dataclass(slots=True)
class Weather:
    """How bad the network is right now."""

    delay_min: int = 200
    delay_max: int = 2_000
    """Microseconds one way. Messages overtake each other within this span."""
    loss: float = 0.0
    """The share of messages that never arrive."""
    repetition: float = 0.0
    """The share of messages that arrive twice."""


class Network:
    """Carries payloads between named ends. Knows nothing of what they mean."""

    __slots__ = (
        "_cuts",
        "_deliver",
        "_due",
        "_random",
        "_scheduler",
        "_ways",
        "gate",
        "lost",
        "regions",
        "repeated",
        "weather",
    )

    def __init__(
        self,
        scheduler: Scheduler,
        rng: random.Random,
        deliver: Callable[[str, Any], None],
        wan: Wan | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._random = rng.random
        self._deliver = deliver
        self._cuts: set[tuple[str, str]] = set()
        self._ways = {} if wan is None else wan.ways
        self._due: dict[tuple[str, str], int] = {}
        """When the last message between two ends in different regions arrives."""
        self.regions: dict[str, str] = {}
        """Where each end is, in a run with several regions."""
        self.weather = Weather()
        self.gate: Callable[[str, str], bool] | None = None
        """Tells whether two ends that can reach each other talk to each other."""
        self.lost = 0
        self.repeated = 0

    def send(self, source: str, target: str, payload: Any) -> None:
        """Put `payload` on its way; whether, when and how often it arrives is up to the weather."""
        self.send_once(source, target, payload)
        if self.weather.repetition and self._random() < self.weather.repetition:
            self.repeated += 1
            self.send_once(source, target, payload)

    def send_once(self, source: str, target: str, payload: Any) -> None:
        """Send as over one connection: lost or late perhaps, but never twice.

        Clients need this much to be able to call a refusal definite.
        """
        weather, chance = self.weather, self._random
        if self._cuts and (source, target) in self._cuts:
            self.lost += 1
            return
        if weather.loss and chance() < weather.loss:
            self.lost += 1
            return
        span = weather.delay_max - weather.delay_min
        delay = weather.delay_min + int(span * chance())
        if self._ways:
            way = self._ways.get((self.regions.get(source, ""), self.regions.get(target, "")))
            if way is not None:
                if way.loss and chance() < way.loss:
                    self.lost += 1
                    return
                delay += way.delay + int(way.jitter * chance())
                # As over one connection: late perhaps, but in order. Without this every leader
                # would have to probe followers that are far away, which real ones need not.
                due = max(self._scheduler.now + delay, self._due.get((source, target), 0))
                self._due[source, target] = due
                delay = due - self._scheduler.now
        self._scheduler.after(delay, self._arrive, source, target, payload)

    def cut(self, source: str, target: str) -> None:
        """Let nothing more through from `source` to `target`; the way back stays open."""
        self._cuts.add((source, target))

    def cut_between(self, one: set[str], other: set[str]) -> None:
        """Separate two sets of ends in both directions."""
        for a in one:
            for b in other:
                self._cuts.add((a, b))
                self._cuts.add((b, a))

    def is_open(self, one: str, other: str) -> bool:
        """Tell whether nothing is cut between two ends, in either direction."""
        is_cut = (one, other) in self._cuts or (other, one) in self._cuts
        return not is_cut and (self.gate is None or self.gate(one, other))

    def heal(self) -> None:
        """Remove every cut."""
        self._cuts.clear()

    def _arrive(self, source: str, target: str, payload: Any) -> None:
        # A cut made while the message was under way swallows it as well.
        if self._cuts and (source, target) in self._cuts:
            self.lost += 1
            return
        if self.gate is not None and not self.gate(source, target):
            return
        self._deliver(target, payload)
