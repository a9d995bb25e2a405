"""How replicas behave. Each node may choose its own values; none has to agree with another's."""

from __future__ import annotations

from dataclasses import dataclass, field

from angarium.log.segments import SegmentConfig
from angarium.log.wal import WalConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    """Settings of every replica on a host."""

    election_ticks: int = 10
    """Ticks without a word from the leader before a follower thinks of campaigning."""

    heartbeat_ticks: int = 2
    """Ticks between two heartbeats of a leader. Each costs every awake group a message to each
    follower and an answer; five fit into the shortest election timeout."""

    inflight_messages_max: int = 256
    """Unacknowledged appends per follower. At the limit the leader waits for acknowledgements."""

    message_bytes_max: int = 1 << 20
    """Entry bytes in one append message; a single larger entry still goes, alone."""

    uncommitted_bytes_max: int = 64 << 20
    """Entry bytes a leader holds uncommitted. At the limit publishes are refused, retriably."""

    eventual_bound_micros: int = 100_000
    """How old the oldest uncommitted entry may be while EVENTUAL is still answered at append.

    Beyond it an EVENTUAL publish waits for its commit like a CONSISTENT one."""

    snapshot_entries: int = 10_000
    """Applied entries after which the machine's state is saved and the log shortened."""

    snapshot_bytes: int = 64 << 20
    """Applied bytes after which the same happens, so that few large entries do not fill the disk
    with a log that nobody needs."""

    snapshot_keep_entries: int = 1_000
    """Entries kept before a snapshot, so that a follower slightly behind needs none."""

    snapshot_wait_entries: int = 100_000
    """Entries kept at most for a member that is still copying what a snapshot lists, or catching
    up behind it. One that is further behind has to start over with a newer snapshot."""

    commit_step_bytes: int = 4 << 20
    """Bytes of stages that a commit brings into the segments at a time, and that wait in memory
    before they are written to files. Nothing else is applied until a commit is through."""

    transfer_chunk_bytes: int = 1 << 20
    """Segment bytes a catching-up replica asks for at a time."""

    transfer_chunks_per_tick: int = 4
    """Chunks asked for in a tick: 80 MiB a second with the defaults. Live traffic goes on."""

    transfer_patience_ticks: int = 20
    """Ticks without progress after which a segment copy is given up and may start anew."""

    rest_after_ticks: int = 20
    """Ticks without anything to do after which a group goes quiet."""

    vouch_ticks: int = 4
    """Ticks between two words that vouch for all the groups resting under a node."""

    vouch_patience_ticks: int = 16
    """Ticks of silence after which the groups resting under a node wake up and look for another
    leader. Well above `vouch_ticks`, so that one lost word wakes nobody."""

    def __post_init__(self) -> None:
        if self.vouch_patience_ticks <= 2 * self.vouch_ticks:
            raise ValueError("vouch_patience_ticks is more than twice vouch_ticks")
        if self.heartbeat_ticks < 1 or self.election_ticks <= self.heartbeat_ticks:
            raise ValueError("an election takes longer than a heartbeat, and both at least a tick")
        if self.snapshot_keep_entries < 0 or min(self.snapshot_entries, self.snapshot_bytes) < 1:
            raise ValueError("a snapshot replaces at least one entry and keeps none or more")
        if self.snapshot_wait_entries < self.snapshot_keep_entries:
            raise ValueError("snapshot_wait_entries is at least snapshot_keep_entries")
        if self.commit_step_bytes < 0:
            raise ValueError("a step of a commit is not negative")
        if (
            min(self.transfer_chunk_bytes, self.transfer_chunks_per_tick) < 1
            or self.transfer_patience_ticks < 1
        ):
            raise ValueError("each transfer setting is at least 1")

    @property
    def conf_heard_ticks(self) -> int:
        """Ticks after which everybody has heard that a change of membership is done: a heartbeat
        says it, and three of four may be lost."""
        return 4 * self.heartbeat_ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """Settings of a host and of the files under it."""

    replica: ReplicaConfig = field(default_factory=ReplicaConfig)
    wal: WalConfig = field(default_factory=WalConfig)
    segments: SegmentConfig = field(default_factory=SegmentConfig)
