"""What a client waits for, told while it waits: who publishes should not wonder for half a minute.

Whatever is refused for the moment is tried again until its time is up, because the missing node may
come back. An election passes meanwhile and nobody need hear of it; what lasts longer is told once,
and again as long as it goes on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.errors import AngariumError

TELL_AFTER_S: Final = 2.0
"""How long something is tried before the user is told: an election is over by then."""

TELL_AGAIN_S: Final = 30.0
"""A reason that has been told is told again after so long, if it is still one."""

REASONS_MAX: Final = 5
"""So many different reasons are told in that time: those of many partitions are much alike."""

_log = logging.getLogger(__name__)


class Waiting:
    """Hears from whatever is tried again why it has to be, and passes on what takes long."""

    def __init__(self, tell: Callable[[AngariumError], None] | None = None) -> None:
        """`tell` may be called in another thread than the caller's; without one it is logged."""
        self._tell = tell or _note
        self._told: dict[str, float] = {}

    def because(self, error: AngariumError, *, since: float, now: float) -> None:
        """Hear why something that was begun at `since` is tried once more."""
        if now - since < TELL_AFTER_S:
            return
        self._told = {why: at for why, at in self._told.items() if now - at < TELL_AGAIN_S}
        reason = str(error)
        if reason in self._told or len(self._told) >= REASONS_MAX:
            return
        self._told[reason] = now
        self.tell(error)

    def tell(self, error: AngariumError) -> None:
        """Report once, and at once, which partitions a subscription leaves out for now."""
        try:
            self._tell(error)
        except Exception:
            _log.exception("the callback for what is waited for failed")


def _note(error: AngariumError) -> None:
    _log.warning("tried for more than %g s, and going on: %s", TELL_AFTER_S, error)
