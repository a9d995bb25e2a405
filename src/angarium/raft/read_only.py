"""Reads that see everything committed before they began, without writing to the log.

A read may be answered from the machine's state at or after the commit index that the leader had
when the read arrived, once it is known that it still was the leader then (thesis, section 6.4).
The leader numbers its reads; each heartbeat carries the number of the newest one, and its echo
from a majority confirms that read and all before it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from angarium.ids import Index, ReplicaId

if TYPE_CHECKING:
    from angarium.raft.messages import Message
    from angarium.raft.tracker import Tracker

_NUMBER_BYTES = 8


class ReadState(msgspec.Struct, frozen=True, gc=False):
    """A read that may be answered as soon as the machine has applied `index`."""

    index: Index
    context: bytes
    """As it was given to `read_index`."""


class PendingReads:
    """The reads a leader has not confirmed yet, in their order of arrival."""

    __slots__ = ("_acked", "_confirmed", "_lease_void_until", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[tuple[Message, Index]] = deque()
        self._confirmed = 0
        """How many reads were confirmed; the next one waiting has this number plus one."""
        self._acked: dict[ReplicaId, Index] = {}
        """The highest read number each voter has echoed."""
        self._lease_void_until = 0
        """No lease is trusted until a read with at least this number is confirmed."""

    def __len__(self) -> int:
        """Return how many reads wait."""
        return len(self._waiting)

    @property
    def lease_is_void(self) -> bool:
        """Whether reads need confirming although leases are enabled."""
        return self._confirmed < self._lease_void_until

    def void_lease(self) -> None:
        """Trust no lease before a round of heartbeats sent from now on is answered."""
        # Reads that wait already do not do: their heartbeats may have been sent before the pause.
        self._lease_void_until = self._confirmed + len(self._waiting) + 1

    def add(self, request: Message, commit: Index) -> None:
        """Queue a read that arrived when `commit` was the commit index."""
        self._waiting.append((request, commit))

    def heartbeat_context(self) -> bytes:
        """Return what a heartbeat must carry so that its echoes confirm every waiting read."""
        if not self._waiting:
            return b""
        return (self._confirmed + len(self._waiting)).to_bytes(_NUMBER_BYTES, "little")

    def acknowledge(self, voter: ReplicaId, context: bytes) -> None:
        """Note that `voter` echoed a heartbeat; anything but our own numbers is ignored."""
        if len(context) != _NUMBER_BYTES:
            return
        number = Index(int.from_bytes(context, "little"))
        # One that was never sent would confirm reads that are still to come.
        if number <= self._confirmed + len(self._waiting):
            self._acked[voter] = max(self._acked.get(voter, Index(0)), number)

    def confirmed(self, tracker: Tracker) -> list[tuple[Message, Index]]:
        """Return the reads that enough voters have confirmed by now, and forget them."""
        # Bounded, since a group without voters agrees with everything.
        number = min(tracker.agreed(self._acked), self._confirmed + len(self._waiting))
        ready = [self._waiting.popleft() for _ in range(number - self._confirmed)]
        # A change of membership can lower what is agreed on; reads that were answered stay
        # answered.
        self._confirmed = max(self._confirmed, number)
        return ready
