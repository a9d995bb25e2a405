"""Records that a query should have read and no longer can: an error, or a warning if told so.

Records are lost to a query by retention, by a topic that was deleted or made anew, and by an
offset that never was. Whatever the reason, a query never starts over somewhere else on its own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from angarium.errors import AngariumError, OffsetOutOfRange

_log = logging.getLogger(__name__)


class DataLoss(OffsetOutOfRange):
    """Records that a query should have read are not there any more."""

    def __init__(self, what: str) -> None:
        AngariumError.__init__(
            self,
            f"{what}. Records this query should have read are gone; the option "
            "failOnDataLoss=false goes on without them",
        )


@dataclass(frozen=True, slots=True)
class LossPolicy:
    """What to do about lost records."""

    must_fail: bool

    def meet(self, what: str) -> None:
        """Raise `DataLoss`, or say what was lost and go on."""
        if self.must_fail:
            raise DataLoss(what)
        _log.warning("%s; going on without, because failOnDataLoss is false", what)
