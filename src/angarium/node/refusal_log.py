"""What was not believed, in the log: enough to be noticed, and no more than that."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.replica.scrutiny import Objection

AGAIN_S: Final = 10.0
"""How often a line is written about each kind of objection, at the most."""

_log = logging.getLogger(__name__)


class RefusalLog:
    """Writes a line about the first of a kind, and one about the others after a while."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[Objection, float] = {}
        self._untold: dict[Objection, int] = {}

    def tell(self, objection: Objection, what: str) -> None:
        """Hear of something that was not believed."""
        now = self._clock()
        if now - self._told.get(objection, -AGAIN_S) < AGAIN_S:
            self._untold[objection] = self._untold.get(objection, 0) + 1
            return
        self._told[objection] = now
        _log.warning(
            "something from another node was not believed and is dropped",
            extra={
                "objection": str(objection),
                "what": what,
                "unsaid": self._untold.pop(objection, 0),
            },
        )
