"""How one replica of a Raft group behaves.

Timeouts are counted in ticks; how long a tick is, the driver decides. Two of these settings must
be alike on every replica of a group: `check_quorum` with `lease_reads`, for a lease holds only if
the others honour it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.errors import InvalidArgument
from angarium.ids import Index

if TYPE_CHECKING:
    from angarium.ids import ReplicaId

NO_LIMIT: Final = 2**63 - 1
"""For a bound that should never be met."""

ENTRY_OVERHEAD_BYTES: Final = 16
"""What an entry counts beside its data wherever bytes of entries are bounded, so that a flood of
empty entries meets the bound too. Uncommitted and in-flight bytes count data only."""


NOTHING_APPLIED: Final = Index(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of one replica in one group."""

    id: ReplicaId
    """Who this replica is. Positive; a wiped disk makes another replica of a node."""

    election_ticks: int = 10
    """A follower that hears nothing for this many ticks, plus a jitter of up to as many again,
    campaigns. Also how long a lease, a leadership transfer and a check of the quorum take."""

    heartbeat_ticks: int = 1
    """Ticks between two heartbeats of a leader."""

    applied: Index = NOTHING_APPLIED
    """The last index the machine has applied before this start; nothing at or below it is handed
    out again. 0: what the storage's snapshot covers."""

    async_storage_writes: bool = True
    """Ready carries messages for the append and apply threads, answered by their `responses`,
    so that writes overlap; otherwise the driver writes and then calls `advance`."""

    message_bytes_max: int = 1 << 20
    """Bytes of entries in one append. The rest goes into the next one; a single larger entry
    still travels, alone."""

    applying_bytes_max: int = 64 << 20
    """Bytes of committed entries that are handed out but not yet applied. At the limit no more
    are handed out until some are reported applied; a single larger entry goes alone."""

    uncommitted_bytes_max: int = 64 << 20
    """Bytes of data in a leader's uncommitted tail. At the limit proposals are refused with
    `UncommittedLimit`; one proposal of any size is accepted when the tail is empty."""

    inflight_messages_max: int = 256
    """Unacknowledged appends per follower. At the limit the leader waits for acknowledgements."""

    inflight_bytes_max: int = 64 << 20
    """Bytes of data in unacknowledged appends per follower. At the limit, the same."""

    pending_reads_max: int = 4096
    """Read-index requests that wait for confirmation. At the limit a new one is refused here, or
    dropped when it comes from a follower, whose client asks again."""

    check_quorum: bool = True
    """A leader that has not heard from a majority for an election timeout steps down, and a
    replica that has heard from its leader within one ignores candidates."""

    pre_vote: bool = True
    """A candidate first asks whether it could win, so that a replica coming back from a partition
    does not depose a working leader (thesis, section 9.6)."""

    lease_reads: bool = False
    """Answer read-index requests without asking the others, trusting that no tick of theirs is
    shorter than ours. Needs `check_quorum`; call `void_lease` after a pause."""

    forward_proposals: bool = True
    """A follower passes proposals on to its leader instead of refusing them."""

    validate_conf_changes: bool = True
    """Replace a membership change that cannot be right now by an empty entry when it is proposed.
    Off only where somebody above serialises and checks them."""

    step_down_on_removal: bool = True
    """A leader that applies its own removal or demotion becomes a follower."""

    votes_tell_commit: bool = True
    """An answer to a candidate says how far the voter knows the log to be committed. Without it
    a group may stay without a leader for good after a change of membership of which some heard."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        _require(self.id > 0, "id must be positive")
        _require(self.heartbeat_ticks > 0, "heartbeat_ticks must be positive")
        _require(
            self.election_ticks > self.heartbeat_ticks,
            "election_ticks must exceed heartbeat_ticks, or followers campaign between heartbeats",
        )
        _require(self.applied >= 0, "applied must not be negative")
        _require(self.message_bytes_max >= 0, "message_bytes_max must not be negative")
        _require(self.applying_bytes_max > 0, "applying_bytes_max must be positive")
        _require(self.uncommitted_bytes_max > 0, "uncommitted_bytes_max must be positive")
        _require(self.inflight_messages_max > 0, "inflight_messages_max must be positive")
        _require(
            self.inflight_bytes_max >= self.message_bytes_max,
            "inflight_bytes_max must hold at least one message of message_bytes_max",
        )
        _require(self.pending_reads_max > 0, "pending_reads_max must be positive")
        _require(
            self.check_quorum or not self.lease_reads,
            "lease_reads needs check_quorum, without which nobody honours the lease",
        )


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise InvalidArgument(sentence)
