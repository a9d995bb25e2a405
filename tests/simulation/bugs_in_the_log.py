"""Bugs planted where things are kept: syncs, recovery, damage, snapshots, segments, identity."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import dark, moving, rotten, rotten_later, scripted, usual

from angarium.errors import CorruptData, SyncFailed
from angarium.ids import Incarnation, node_of, replica_id
from angarium.log.memory_disk import MemoryDisk, MemoryLock
from angarium.log.segments import PartitionLog
from angarium.log.segments import reader as segment_reader
from angarium.log.segments.reader import SegmentReader
from angarium.log.snapshots import SnapshotStore, SnapshotWriter
from angarium.log.wal.group_log import GroupLog
from angarium.log.wal.pipeline import SyncRound
from angarium.log.wal.replay import Replay
from angarium.log.wal.scan import FileScan
from angarium.node.recollections import Recollections
from angarium.raft import leading
from angarium.raft import log as raft_log
from angarium.raft import replication as raft_replication
from angarium.raft.messages import HardState
from angarium.raft.storage import within_bytes
from angarium.replica import opening, roster, scrutiny
from angarium.replica.catching_up import CatchingUp
from angarium.replica.host import Host
from angarium.replica.own_ids import OwnReplicaIds
from angarium.replica.partition import Partition
from angarium.replica.repair import IdentityLost, entries_to_refetch
from angarium.replica.replica import Replica
from angarium.replica.snapshots import Snapshots
from angarium.testing.disk import SimulatedDisk
from angarium.testing.sim.node import SimNode
from angarium.testing.sim.operator import Operator

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from angarium.ids import Index, Offset, RaftGroupId, ReplicaId
    from angarium.log.disk import File
    from angarium.log.segments.segment import Segment
    from angarium.log.wal import Damage, Wal
    from angarium.log.wal.scan import Frame, ScannedRound
    from angarium.raft.messages import Entry, Message, Snapshot
    from angarium.replica.work import Work


# --- whose folder it is ---------------------------------------------------------------------


@bug(seeds_max=5, run=scripted("served-twice"))
def folder_is_not_locked() -> Iterator[Replaced]:
    """A process opens a data folder that another one works with."""

    def lock(self: MemoryDisk) -> MemoryLock:
        return MemoryLock()

    yield Replaced(MemoryDisk, "lock", lock)


# --- syncs ----------------------------------------------------------------------------------


@bug(seeds_max=20, run=dark)
def ack_before_fsync() -> Iterator[Replaced]:
    """Answers leave before the sync that makes them true."""
    original = Replica._append

    def append(self: Replica, message: Message) -> None:
        original(self, msgspec.structs.replace(message, responses=()))
        self.persisted(message.responses)

    yield Replaced(Replica, "_append", append)


@bug(seeds_max=20, run=scripted("lying-disk"))
def fsync_error_ignored() -> Iterator[Replaced]:
    """A node goes on after a failed sync, as if the disk had what it was given."""
    original = SyncRound.write

    def write(self: SyncRound) -> None:
        try:
            original(self)
        except SyncFailed:
            self._pipeline.failure = None
            self.is_written = True

    yield Replaced(SyncRound, "write", write)


# --- recovery -------------------------------------------------------------------------------


@bug(seeds_max=20, run=scripted("truncated-vote"))
def hard_state_lost_by_truncation() -> Iterator[Replaced]:
    """Recovery drops entries that were superseded together with the votes written after them."""
    original_entry, original_other = Replay._apply_entry, Replay._apply_other
    written: dict[tuple[Replay, int], list[tuple[int, HardState]]] = {}

    def apply_entry(self: Replay, frame: Frame, base: int) -> None:
        log = self.logs.get(frame.group)  # type: ignore[call-overload]
        if log is not None and frame.entry_index <= log.last:
            votes = written.get((self, frame.group), [])
            while votes and votes[-1][0] >= frame.entry_index:
                votes.pop()
            log.hard_state = votes[-1][1] if votes else HardState()
        original_entry(self, frame, base)

    def apply_other(self: Replay, frame: Frame, content: bytes) -> None:
        original_other(self, frame, content)
        log = self.logs.get(frame.group)  # type: ignore[call-overload]
        if log is not None:
            votes = written.setdefault((self, frame.group), [])
            votes.append((log.last, log.hard_state))

    yield Replaced(Replay, "_apply_entry", apply_entry)
    yield Replaced(Replay, "_apply_other", apply_other)


@bug(seeds_max=60, run=usual)
def superseded_entries_come_back() -> Iterator[Replaced]:
    """Recovery keeps the first entry it meets at an index, not the last."""
    original = Replay._apply_entry

    def apply_entry(self: Replay, frame: Frame, base: int) -> None:
        log = self.logs.get(frame.group)  # type: ignore[call-overload]
        if log is None or frame.entry_index > log.last:
            original(self, frame, base)

    yield Replaced(Replay, "_apply_entry", apply_entry)


@bug(seeds_max=60, run=rotten_later)
def damage_cut_silently() -> Iterator[Replaced]:
    """A damaged place in the log is taken for its end, and the replica votes on."""
    original = FileScan.rounds

    def rounds(self: FileScan) -> Iterator[ScannedRound]:
        start = self.end
        for one in original(self):
            if one.is_damaged or one.header is None:
                self._cut(start)
                return
            start = self.end
            yield one

    yield Replaced(FileScan, "rounds", rounds)
    yield from _others_believe_whoever_comes_back()


@bug(seeds_max=60, run=rotten)
def recovering_replica_goes_on() -> Iterator[Replaced]:
    """A replica that has lost part of its log goes on at once, without it, as the voter it was."""
    original = entries_to_refetch

    def refetched(damage: Damage | None, *, known_commit: Index) -> tuple[Index, Index] | None:
        if damage is not None:
            raise IdentityLost("planted: what is left is given up")
        return original(damage, known_commit=known_commit)

    yield Replaced(roster, "entries_to_refetch", refetched)
    yield from _lost_begin_anew_as_they_were()
    yield from _others_believe_whoever_comes_back()


# --- identity -------------------------------------------------------------------------------


@bug(seeds_max=20, run=scripted("quick-wipe"))
def wiped_node_keeps_its_identity() -> Iterator[Replaced]:
    """A node with an empty disk comes back as the voter it was, and is taken for it."""

    def wipe(self: SimNode) -> None:
        if self.host is not None:
            self._die()
        self.disk = SimulatedDisk(self.rng)

    yield Replaced(SimNode, "wipe", wipe)
    yield from _others_believe_whoever_comes_back()


@bug(seeds_max=20, run=scripted("lost-replica"))
def lost_replica_begins_anew_as_itself() -> Iterator[Replaced]:
    """A replica whose snapshot is damaged begins anew at once, as the voter it was."""
    yield from _lost_begin_anew_as_they_were()


@bug(seeds_max=20, run=scripted("quick-wipe"))
def messages_to_an_older_incarnation_accepted() -> Iterator[Replaced]:
    """A wiped node acts upon messages that were meant for the one it was before, and nothing is
    objected to in them."""
    original = Host.deliver

    def deliver(self: Host, group: RaftGroupId, message: Message, *, via: ReplicaId) -> None:
        mine = self.own_ids.usual
        try:
            self.own_ids.usual = message.to
            original(self, group, message, via=via)
        finally:
            self.own_ids.usual = mine

    yield Replaced(Host, "deliver", deliver)
    # Alone, it does no harm any more: a heartbeat that commits what is not there is not believed.
    yield Replaced(scrutiny, "_objection_to_indexes", lambda *_: None)


# --- snapshots ------------------------------------------------------------------------------


@bug(seeds_max=60, run=dark)
def segments_not_synced_before_the_log_is_freed() -> Iterator[Replaced]:
    """A snapshot is saved, and the log before it freed, while segments are not on disk yet."""
    original = Partition.save

    def save(self: Partition) -> Generator[Work, None, bytes]:
        state = yield from _undone(original(self))
        return state

    yield Replaced(Partition, "save", save)


@bug(seeds_max=20, run=scripted("interrupted-snapshot"))
def log_forgets_before_the_snapshot_is_saved() -> Iterator[Replaced]:
    """Entries leave the log before the snapshot that stands for them is durable."""
    original = Snapshots.take

    def take(self: Snapshots) -> Generator[Work, None, None]:
        applied = self._replica.applied
        if applied > self.newest_index:
            self.forget_entries(applied, keep=self._config.snapshot_keep_entries)
        yield from original(self)

    yield Replaced(Snapshots, "take", take)
    yield Replaced(opening, "_agreed_hard_state", older_snapshot_agreed_with)
    yield from _others_believe_whoever_comes_back()


@bug(seeds_max=60, run=dark)
def snapshot_not_synced() -> Iterator[Replaced]:
    """A snapshot counts as saved when it has been written, not when it has been synced."""
    original = SnapshotWriter._write_head

    class Unsynced:
        def __init__(self, file: File) -> None:
            self._file = file

        def datasync(self) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    def write_head(self: SnapshotWriter, file: File) -> None:
        original(self, Unsynced(file))

    def publish(self: SnapshotStore, group: RaftGroupId, index: Index) -> None:
        self._disk.rename(self._draft_name(group), self._name(group, index))
        self._remove_below(group, index)

    yield Replaced(SnapshotWriter, "_write_head", write_head)
    yield Replaced(SnapshotStore, "publish", publish)


@bug(seeds_max=60, run=moving)
def state_installed_without_its_segments() -> Iterator[Replaced]:
    """A replica that catches up installs the leader's state without its segments, missing none."""

    def consider(self: CatchingUp, offer: Message, snapshot: Snapshot) -> None:
        self._receiver.step(offer)

    original = PartitionLog.open.__func__  # type: ignore[attr-defined]

    def unsuspecting(cls: type[PartitionLog], *files: Any, **places: Any) -> Any:
        places["durable_until"] = places["start_offset"]
        return original(cls, *files, **places)

    yield Replaced(CatchingUp, "consider", consider)
    yield Replaced(PartitionLog, "open", classmethod(unsuspecting))


def _lost_begin_anew_as_they_were() -> Iterator[Replaced]:
    """Let a replica that is lost come back empty at once, under the identity that voted."""

    def adopt(self: OwnReplicaIds, group: RaftGroupId, incarnation: Incarnation) -> None:
        assert replica_id(node_of(self.usual), incarnation) != self.usual
        self.renewed[group] = Incarnation(self.usual & ((1 << 48) - 1))

    yield Replaced(Operator, "may_renew", lambda *_: True)
    yield Replaced(OwnReplicaIds, "save", lambda *_: None)
    yield Replaced(OwnReplicaIds, "adopt", adopt)


def _others_believe_whoever_comes_back() -> Iterator[Replaced]:
    """Take down what stands behind a log that has lost something, so that the loss can show.

    Others would let such a replica in no more, for its log ended later; or have it confirm what it
    has; or it would not believe them that so much is committed.
    """
    yield Replaced(Recollections, "objection", lambda *_: None)
    yield Replaced(Replica, "doubt", lambda *_: None)
    yield Replaced(scrutiny, "_objection_to_indexes", lambda *_: None)


def older_snapshot_agreed_with(wal: Wal, group: RaftGroupId, snapshot: Snapshot) -> HardState:
    """Return the hard state of a log, whatever it has forgotten that its snapshot lacks."""
    log = wal.log(group)
    if not log.first_index() - 1 <= snapshot.index <= log.last_index():
        wal.compact(group, snapshot.index, snapshot.term)
    state = log.hard_state
    return HardState(max(state.term, snapshot.term), state.vote, max(state.commit, snapshot.index))


def _undone(steps: Generator[Work, None, bytes]) -> Generator[Work, None, bytes]:
    """Hand out no work at all, and go on as if it had been done."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return bytes(finished.value)
        yield _nothing


def _nothing() -> None:
    """Where a write should be."""


# --- segments -------------------------------------------------------------------------------


@bug(seeds_max=5, run=scripted("damaged-follower"))
def corrupt_segment_served() -> Iterator[Replaced]:
    """Readers get bytes from a segment without a look at their checksum."""

    def read(
        self: SegmentReader, segment: Segment, offset: Offset, bytes_max: int, *, gaps: bool = False
    ) -> list[memoryview]:
        index = self.index(segment)
        row = index.row_of_offset(offset)
        start = index[row].position
        chunk = self.raw(segment, start, segment.written.position - start)
        batches: list[memoryview] = []
        segment_reader._cut(chunk, index.offset(row), offset, bytes_max, gaps, batches)
        return batches

    yield Replaced(SegmentReader, "read", read)


@bug(seeds_max=5, run=scripted("damaged-at-rest"))
def damage_left_alone_at_rest() -> Iterator[Replaced]:
    """A replica that is at rest does not ask its peers for what it finds damaged."""

    def mend_resting(self: Host) -> None:
        pass

    yield Replaced(Host, "_mend_resting", mend_resting)


@bug(seeds_max=5, run=scripted("damaged-leader"))
def damaged_segment_sent_for_ever() -> Iterator[Replaced]:
    """A leader that is told of its damaged segment sends it again without a look."""

    def verify_segment(self: PartitionLog, segment: Offset) -> None:
        pass

    yield Replaced(PartitionLog, "verify_segment", verify_segment)


# --- damage inside a log --------------------------------------------------------------------


@bug(seeds_max=20, run=scripted("holes-in-two-logs"))
def hole_in_the_log_passed_over() -> Iterator[Replaced]:
    """A read of the log joins what lies behind damage to what lies before it."""

    def older(self: GroupLog, lo: int, hi: int, bytes_max: int) -> Sequence[Entry]:
        found: list[Entry] = []
        for index in range(lo, self._affordable(lo, hi, bytes_max)):
            with suppress(CorruptData):
                found += self._read(index, index + 1)
        if hi > self.recent_first:
            found += self.recent[: hi - self.recent_first]
        # As it was: nothing is known to be damaged, and nothing is repaired.
        self.damaged = None
        self._source.hurt.clear()
        return within_bytes(found, bytes_max)

    yield Replaced(GroupLog, "_older", older)
    yield Replaced(raft_log, "check_continuous", _believe)
    yield Replaced(Replica, "_check_continuous", _believe)
    yield Replaced(Partition, "_compare_with_leader", _believe)


@bug(seeds_max=20, run=scripted("hole-before-a-follower"))
def damage_for_a_follower_kept_quiet() -> Iterator[Replaced]:
    """A leader that cannot read what a follower lacks goes on as if it had sent it."""
    original = raft_replication.send_append

    def send_append(*args: Any, **kwargs: Any) -> bool:
        with suppress(CorruptData):
            return original(*args, **kwargs)
        return False

    yield Replaced(raft_replication, "send_append", send_append)
    yield Replaced(leading, "send_append", send_append)
    yield Replaced(Host, "_stop_damaged", _believe)


def _believe(*_: object, **__: object) -> None:
    """Find nothing wrong."""
