"""What a leader knows about one follower's log, and how much it may send.

A follower is in one of three states. *Probe*: where its log ends is a guess, so one append at a
time goes out until an answer tells. *Replicate*: the guess was right, so appends follow each other
without waiting, as many as the window allows. *Snapshot*: what it needs is no longer in the
leader's log, so nothing goes out until the snapshot has arrived.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from angarium.ids import Index


class ProgressState(Enum):
    """How the leader sends to a follower."""

    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


# Looking a member up in its enum costs as much as a dozen comparisons with it.
PROBE: Final = ProgressState.PROBE
REPLICATE: Final = ProgressState.REPLICATE
SNAPSHOT: Final = ProgressState.SNAPSHOT


class Window:
    """The appends on their way to a follower that it has not acknowledged yet."""

    __slots__ = ("_bytes_max", "_messages_max", "_sent", "bytes")

    def __init__(self, *, messages_max: int, bytes_max: int) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._sent: deque[tuple[Index, int]] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        """Return how many appends are in flight."""
        return len(self._sent)

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be sent before an acknowledgement."""
        return len(self._sent) >= self._messages_max or self.bytes >= self._bytes_max

    def add(self, last: Index, size: int) -> None:
        """Note an append whose last entry is `last`; these come in ascending order."""
        assert not self.is_full, "a full window takes no append"
        self._sent.append((last, size))
        self.bytes += size

    def free_to(self, acknowledged: Index) -> None:
        """Forget the appends that are covered by an acknowledgement."""
        sent = self._sent
        while sent and sent[0][0] <= acknowledged:
            self.bytes -= sent.popleft()[1]

    def clear(self) -> None:
        """Forget everything in flight."""
        self._sent.clear()
        self.bytes = 0


class Progress:
    """One follower, as its leader sees it. Always: match < next_index."""

    __slots__ = (
        "flow_paused",
        "is_learner",
        "match",
        "next_index",
        "pending_snapshot",
        "recently_active",
        "sent_commit",
        "state",
        "window",
    )

    def __init__(self, *, next_index: Index, window: Window, is_learner: bool = False) -> None:
        self.match = Index(0)
        """Up to here the follower's log is known to equal the leader's. Never goes back, unless it
        is doubted as a whole (`doubt`)."""
        self.next_index = next_index
        """What is sent next. Everything between `match` and here is in flight."""
        self.sent_commit = Index(0)
        """The commit index last told to the follower."""
        self.state = PROBE
        self.pending_snapshot = Index(0)
        """In the snapshot state: the index of the snapshot that is on its way."""
        self.recently_active = False
        """Whether anything was heard of it since the last check of the quorum."""
        self.flow_paused = False
        """Whether appends wait for an answer; a heartbeat's answer lets one through again."""
        self.window = window
        self.is_learner = is_learner

    @property
    def is_paused(self) -> bool:
        """Whether no append may go out now."""
        return self.flow_paused or self.state is SNAPSHOT

    def become_probe(self) -> None:
        """Guess again: from what is known to match, or behind the snapshot just delivered."""
        after_snapshot = self.pending_snapshot + 1 if self.state is SNAPSHOT else 0
        self._enter(PROBE)
        # Never at or below `match`: what a follower has acknowledged it has, so trying again below
        # it can only waste a round trip.
        self.next_index = Index(max(self.match + 1, after_snapshot))
        self._forget_commits_in_flight()

    def become_replicate(self) -> None:
        """Stream from what is known to match."""
        self._enter(REPLICATE)
        self.next_index = Index(self.match + 1)

    def doubt(self) -> None:
        """Forget what it has confirmed, but guess that it still has it."""
        if self.state is not SNAPSHOT:
            # If the follower still has everything, the next probe restores `match` at once. Where
            # nothing was confirmed yet the guess stays: from the beginning on it would need what
            # the log has forgotten, and a witness that leads has no snapshot to give (seed 620985).
            guess = Index(self.match + 1) if self.match else self.next_index
            self.become_probe()
            self.next_index = guess
            self.match = Index(0)

    def become_snapshot(self, index: Index) -> None:
        """Wait for the snapshot at `index` to arrive."""
        self._enter(SNAPSHOT)
        self.pending_snapshot = index
        self.next_index = Index(index + 1)
        self.sent_commit = index

    def sent_entries(self, count: int, size: int) -> None:
        """Note an append of `count` entries from `next_index` on, with `size` bytes of data."""
        if self.state is REPLICATE:
            if count:
                self.next_index = Index(self.next_index + count)
                self.window.add(Index(self.next_index - 1), size)
            # An append that fills the window, or goes out although it is full, is the last one
            # until somebody answers.
            self.flow_paused = self.window.is_full
        elif count:
            assert self.state is PROBE, "nothing is appended while a snapshot is under way"
            # One probe at a time. While the end of its log is a guess, more appends would all be
            # rejected for the same reason.
            self.flow_paused = True

    def can_bump_commit(self, commit: Index) -> bool:
        """Tell whether hearing of `commit` now could let the follower commit more."""
        return commit > self.sent_commit and self.sent_commit < self.next_index - 1

    def acknowledge(self, index: Index) -> bool:
        """Note that the log matches up to `index`; return whether that was news."""
        if index <= self.match:
            return False
        self.match = index
        if self.next_index <= index:
            self.next_index = Index(index + 1)
        self.flow_paused = False
        return True

    def reject(self, rejected: Index, hint: Index) -> bool:
        """Step back after the append at `rejected` did not fit; return False if that is stale.

        `hint` is the highest index at which the logs may agree.
        """
        if self.state is REPLICATE:
            # Stale: an append that overtook others was rejected before its predecessors arrived.
            if rejected <= self.match:
                return False
            # Back to what is known, and stream again from there. The hint is for probes: here
            # `match` is a better guess, since everything up to it was acknowledged.
            self.next_index = Index(self.match + 1)
            self._forget_commits_in_flight()
            return True
        # A probe is answered before the next one leaves, so only the latest can be meant.
        if rejected != self.next_index - 1:
            return False
        # At least one step back, or the same probe would be rejected for ever, and as far as the
        # hint allows.
        self.next_index = Index(max(min(rejected, hint + 1), self.match + 1))
        self._forget_commits_in_flight()
        self.flow_paused = False
        return True

    def _enter(self, state: ProgressState) -> None:
        self.state = state
        self.flow_paused = False
        self.pending_snapshot = Index(0)
        self.window.clear()

    def _forget_commits_in_flight(self) -> None:
        # What went out beyond the new starting point has most likely been lost with it.
        self.sent_commit = min(self.sent_commit, Index(self.next_index - 1))
