"""What copies may take of a node: the bytes that it asks for and gives away, all of them together.

Segments travel beside everything else that a node does. Whoever drives the host says how much may
pass in a tick (`Pace.bytes_per_tick`), and the host lets it pass in turn: a copy that found nothing
left waits behind those that came before, so none is starved however many there are. What is on its
way cannot be called back, so a piece may take more than is left; the ticks that follow pay for it.

A copy that takes longer than its leader keeps the log for it is outrun: it needs a later snapshot,
and copies what was written meanwhile. Both ends count that (`Outrun`), each by itself, and tell it
here, so that whoever says how much may pass can let it go faster before it is outrun for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Index, RaftGroupId, ReplicaId
    from angarium.replica.peers import ChunkRequest

PIECE_BYTES_MIN: Final = 128 << 10
"""The least that a bounded copy moves at a time, but for the end of a segment."""

PIECES_PER_TICK: Final = 2
"""Into how many pieces the bytes of a tick are cut, if these are not too small: what comes behind a
piece, on the loop and on the disk, waits for so much and not for more."""

OUTRUN_FACTOR: Final = 4
"""How many times as fast the least pace of a copy becomes with each time that it was outrun."""

OUTRUN_TIMES_MAX: Final = 8
"""Times that count. Even of the lowest pace that can be set, 64 KiB/s, they make gigabytes."""


class Outrun:
    """How often a replica began to copy a later snapshot before it had come to follow the log."""

    __slots__ = ("_index", "times")

    def __init__(self) -> None:
        self._index: Index | None = None
        """What it copies or has copied last; None: nothing since it has followed."""
        self.times = 0

    def copies(self, index: Index) -> None:
        """Hear which snapshot it copies; the same one again changes nothing."""
        # Otherwise a newcomer whose publishers write faster than the least pace never arrives.
        # Planted as outrun-newcomer-goes-no-faster.
        if self._index is not None and index > self._index:
            self.times = min(self.times + 1, OUTRUN_TIMES_MAX)
        self._index = index if self._index is None else max(index, self._index)

    def has_log_to(self, index: Index, *, of: Index) -> bool:
        """Hear how far it has the log, `of` all there is; return whether it follows by now.

        What it has by the snapshot alone says nothing: it may be outrun in the next moment.
        """
        if self._index is None or (index > self._index and index >= of):
            self._index, self.times = None, 0
            return True
        return False


class Pace:
    """One node's bound for all copies, and who waits for it."""

    def __init__(self) -> None:
        self.bytes_per_tick: int | None = None
        """What may pass in a tick; None: whatever comes."""
        self.passed_bytes = 0
        """What has passed since the start."""
        self.outrun_times = 0
        """How often that copy was outrun which was most often, of those under way in the last
        tick."""
        self._outrun_times = 0
        """The same of the tick that goes on."""
        self._left = 0
        self._waiting: dict[tuple[RaftGroupId, ReplicaId | None], ChunkRequest | None] = {}
        """Who waits, in the order in which they came: replicas that want to ask for more, and
        requests of others. At most one for each group and peer."""
        self._is_turn = False

    @property
    def is_used(self) -> bool:
        """True while copies wait, or more has passed than what the last ticks allowed."""
        return bool(self._waiting) or self._left < 0

    def granted(
        self,
        length: int,
        *,
        group: RaftGroupId,
        peer: ReplicaId | None = None,
        request: ChunkRequest | None = None,
    ) -> int:
        """Return how many of `length` bytes may pass now, and count them as passed.

        0: it has to wait, and is one of `due` when it is its turn. `request` is what `peer` asked
        for; without it the replica of `group` itself wants to ask.
        """
        if self.bytes_per_tick is None:
            self.passed_bytes += length
            return length
        # Nobody overtakes those who wait.
        if self._left <= 0 or (self._waiting and not self._is_turn):
            self._waiting[group, peer] = request
            return 0
        length = min(length, max(self.bytes_per_tick // PIECES_PER_TICK, PIECE_BYTES_MIN))
        self._is_turn = False
        self.spend(length)
        return length

    def spend(self, length: int) -> None:
        """Count what has passed without having been granted."""
        self.passed_bytes += length
        if self.bytes_per_tick is not None:
            self._left -= length

    def hear_outrun(self, times: int) -> None:
        """Hear, once in every tick of a copy that is under way, how often it was outrun."""
        self._outrun_times = max(self._outrun_times, times)

    def due(self) -> Iterator[tuple[RaftGroupId, ChunkRequest | None]]:
        """Let one tick pass; yield whose turn it is, one by one, as long as something is left."""
        # Told anew with every tick, so nothing has to be taken back when a copy ends or is gone.
        self.outrun_times, self._outrun_times = self._outrun_times, 0
        allowed = self.bytes_per_tick
        if allowed is None:
            self._left = 0
        else:
            # What was not used does not add up: nobody makes up for a time without copies.
            self._left = min(self._left + allowed, allowed)
        for key in list(self._waiting):
            if allowed is not None and self._left <= 0:
                return
            request = self._waiting.pop(key, None)
            self._is_turn = True
            try:
                yield key[0], request
            finally:
                self._is_turn = False
