"""Where a publish that was passed on had better been sent, told beside its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.doors.grpc.refusals import HINT_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Ack
    from angarium.wire.grpc.metadata import Pairs


class LeaderHints:
    """Says who leads, asked once for all records of a batch, which are answered together."""

    def __init__(self, leader_hint: Callable[[str, int], str | None] | None) -> None:
        """Prepare; `leader_hint` returns where a partition's leader is, None if that is here."""
        self._leader_hint = leader_hint
        self._ack: Ack | None = None
        self._pairs: Pairs = ()

    def about(self, ack: Ack) -> Pairs:
        """Return what is told beside this acknowledgement; nothing if it came to the leader."""
        if ack is not self._ack and self._leader_hint is not None:
            hint = self._leader_hint(ack.topic, ack.partition)
            self._ack, self._pairs = ack, ((HINT_KEY, hint),) if hint else ()
        return self._pairs
