"""Reads that wait until their leader has made sure that it still leads.

A read is asked of the core under a number; the core answers with the index that was committed when
it was asked, and the read is done once that index is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from angarium.errors import LimitExceeded, NotLeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.errors import AngariumError
    from angarium.ids import Index, ReplicaId

Done: TypeAlias = "Callable[[AngariumError | None], None]"


class Reads:
    """The reads of one replica that are not answered yet."""

    __slots__ = ("_asked", "_confirmed", "_number")

    def __init__(self) -> None:
        self._asked: dict[bytes, Done] = {}
        self._confirmed: list[tuple[Index, Done]] = []
        self._number = 0

    @property
    def are_waiting(self) -> bool:
        """True while any read has no answer."""
        return bool(self._asked or self._confirmed)

    @property
    def are_confirmed(self) -> bool:
        """True while a read waits for nothing but its index to be applied."""
        return bool(self._confirmed)

    def ask(self, done: Done) -> bytes:
        """Remember a read, and return the name under which to ask the core."""
        self._number += 1
        context = self._number.to_bytes(8, "little")
        self._asked[context] = done
        return context

    def refuse(self, context: bytes) -> None:
        """Hear that the core cannot take a read: nobody would answer it."""
        done = self._asked.pop(context)
        done(LimitExceeded("pending_reads_max", "too many reads wait for this leader; try again"))

    def confirm(self, context: bytes, index: Index) -> None:
        """Hear from the core which index a read has to wait for."""
        done = self._asked.pop(context, None)
        if done is not None:
            self._confirmed.append((index, done))

    def answer(self, applied: Index) -> None:
        """Answer the reads whose index is applied."""
        ready = [done for index, done in self._confirmed if index <= applied]
        self._confirmed = [read for read in self._confirmed if read[0] > applied]
        for done in ready:
            done(None)

    def abandon(self, leader: ReplicaId) -> None:
        """Leadership is gone: say so to everybody who waits, and who leads now, if known."""
        dropped = [*self._asked.values(), *(done for _, done in self._confirmed)]
        self._asked.clear()
        self._confirmed.clear()
        for done in dropped:
            done(NotLeader("leadership was lost while the read waited", leader=leader))
