"""The pace of a replay: when the next portion may go, and what is told about the last."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.pipelines.board import State, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.pipelines.replay.plan import Plan
    from angarium.spark.ranges import OffsetRange

NOTED_EVERY_S: Final = 5.0
"""How often a replay writes down how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How a replay ended."""

    plan: Plan
    portions: int
    """Written by now, by this run or an earlier one."""
    written: int
    """Offsets that this run has gone through."""
    is_done: bool
    """False if it was stopped before."""


class Run:
    """How far one run is, and how fast."""

    def __init__(
        self,
        plan: Plan,
        *,
        rate: int | None,
        on_progress: Callable[[Status], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._rate = rate
        self._on_progress = on_progress
        self._clock = clock
        self._began = self._noted = clock()
        self._left = plan.records
        self._written = 0
        self._portion = -1

    def skip(self, ranges: Sequence[OffsetRange]) -> None:
        """Pass over a portion that an earlier run has written."""
        self._portion += 1
        self._left -= sum(one.records for one in ranges)

    def is_ahead(self) -> bool:
        """Tell whether the next portion would come too early."""
        return self.ahead_s() > 0

    def ahead_s(self) -> float:
        """Return how long to wait for the rate's sake."""
        if self._rate is None:
            return 0.0
        return self._began + self._written / self._rate - self._clock()

    def has_written(self, ranges: Sequence[OffsetRange]) -> bool:
        """Count a portion; return whether it is time to write down how far we are."""
        self.skip(ranges)
        self._written += sum(one.records for one in ranges)
        self._on_progress(self._status(State.RUNNING))
        now = self._clock()
        if now - self._noted < NOTED_EVERY_S:
            return False
        self._noted = now
        return True

    def ended(self, portions: int, *, is_done: bool) -> Replayed:
        """Return how it ended."""
        self._on_progress(self._status(State.STOPPED))
        return Replayed(plan=self._plan, portions=portions, written=self._written, is_done=is_done)

    def _status(self, state: State) -> Status:
        seconds = max(self._clock() - self._began, 1e-3)
        rate = round(self._written / seconds, 1)
        return Status(
            name=self._plan.name,
            kind="replay",
            state=state,
            batch=self._portion,
            input_rows_per_s=rate,
            processed_rows_per_s=rate,
            batch_ms=int(1000 * seconds / max(1, self._portion + 1)),
            lag=self._left,
        )
