"""The write-ahead log: the Raft log of every group of a node, under one datasync.

What it guarantees:

- What `synced` has published survives a power cut, with everything that was appended before it.
- After any crash, power cuts included, the log opens and holds every published sync round; of
  one that was being written it holds all or nothing.
- Damage to stored bytes is never passed over: each group says what it has lost, or may have
  (`RecoveredGroup.damage`), and a read verifies what it returns.
- On a full disk appends are refused before anything changes; what is vital still gets through.
- A failed sync is fatal: the log is dead, and says so to every call.

Writing has three phases, so that the part that blocks can run in a thread: `append` and its kin
only buffer, `seal` takes what is buffered as a sync round, `SyncRound.write` puts that on disk,
`synced` publishes it. Rounds are written one at a time, in the order in which they were sealed.
Everything except `SyncRound.write` belongs to one thread, the owner's.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from angarium.errors import AlreadyExists, CorruptData, NotFound, StorageError
from angarium.log.wal import begun
from angarium.log.wal.cache import EntryCache
from angarium.log.wal.clean import forget_clean, load_clean, save_clean
from angarium.log.wal.config import WalConfig
from angarium.log.wal.files import FOLDER, WalFiles, log_sequences
from angarium.log.wal.format import (
    FILE_HEADER_BYTES,
    FRAME_HEADER_BYTES,
    VOTE,
    FrameFlag,
    FrameKind,
    row_bytes,
    small_frame,
)
from angarium.log.wal.group_log import GroupLog
from angarium.log.wal.pins import Pins
from angarium.log.wal.pipeline import Pipeline, SyncRound
from angarium.log.wal.recovery import recover
from angarium.log.wal.writer import FrameBuffer, Touch, table_bytes, table_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Incarnation, Index, RaftGroupId, Term
    from angarium.log.disk import Disk
    from angarium.log.wal.report import Recovered
    from angarium.raft.messages import Entry, HardState


class Wal:
    """One node's write-ahead log. Use `Wal.open`."""

    def __init__(
        self,
        files: WalFiles,
        logs: dict[RaftGroupId, GroupLog],
        *,
        recovered: Recovered,
        config: WalConfig,
    ) -> None:
        self.recovered: Final = recovered
        """What was found at the opening."""
        self._files: Final = files
        self._logs: Final = logs
        self._seed: Final = files.frame_seed
        self._buffer = FrameBuffer(self._seed)
        self._pipeline: Final = Pipeline(files)
        self._cache: Final = EntryCache(config.cache_bytes)
        self._pins: Final = Pins()
        for log in logs.values():
            self._pins.move(log.group, log.oldest_sequence())
        self._is_begun = False
        self._granted = 0
        """The buffer may become so long, by frames of groups that are in it, unasked."""

    @classmethod
    def open(cls, disk: Disk, *, incarnation: Incarnation, config: WalConfig | None = None) -> Self:
        """Open the log on `disk`, or begin one where there is none."""
        config = config or WalConfig()
        disk.make_folder(FOLDER)
        # Asked before anything is made: a folder without log files that was marked as begun has
        # lost its log, and its groups must not be taken for new ones that never voted.
        is_gone = begun.is_marked(disk) and not log_sequences(disk)
        files = WalFiles(disk, incarnation=incarnation, config=config)
        opened = load_clean(files) or recover(files)
        # Before the first write, durably: an index of an older log that survived a crash would
        # hide everything appended since.
        forget_clean(files)
        files.adopt_prepared()
        logs, recovered = opened
        if is_gone:
            recovered = replace(recovered, unknown_groups=True)
            # Addresses of the new log lie above every address of the lost one. Peers compare them
            # to tell a log that went back in time (decision 14).
            files.last_sequence = begun.sequence_after_loss(disk)
        return cls(files, logs, recovered=recovered, config=config)

    # --- groups -----------------------------------------------------------------------------

    @property
    def groups(self) -> list[RaftGroupId]:
        """The groups that have a log here."""
        return list(self._logs)

    def log(self, group: RaftGroupId) -> GroupLog:
        """Return the log of `group`, as Raft reads it; it stays current."""
        log = self._logs.get(group)
        if log is None:
            raise NotFound(f"group {group} has no log here")
        return log

    def add_group(self, group: RaftGroupId) -> GroupLog:
        """Begin the log of a new group; it exists for good once this is synced."""
        self._check_alive()
        if group in self._logs:
            raise AlreadyExists(f"group {group} has a log already")
        # Room first, then changes: `DiskFull` leaves memory and buffer as they were. That holds
        # for every method of this class.
        self._claim(FRAME_HEADER_BYTES, touched=1, is_vital=True)
        log = self._logs[group] = GroupLog(group, self._files)
        touch = self._buffer.touch(log)
        touch.lifecycle += 1
        self._buffer.add_frame(small_frame(self._seed, FrameKind.ADDED, group=group))
        return log

    def remove_group(self, group: RaftGroupId) -> None:
        """End the log of a group, with all that is in it."""
        self._check_alive()
        log = self.log(group)
        self._claim(FRAME_HEADER_BYTES, touched=1, is_vital=True)
        touch = self._touch(log)
        # Entries that are buffered and not sealed yet must not get an address any more.
        touch.take_back(0)
        touch.lifecycle += 1
        touch.repairs = ()
        self._buffer.add_frame(small_frame(self._seed, FrameKind.REMOVED, group=group))
        log.clear()
        del self._logs[group]

    def reset_group(self, group: RaftGroupId) -> GroupLog:
        """Give up a group's log, damage included, and begin an empty one.

        Only for a replica that takes a new identity: the old one's promises go with its log.
        """
        self.remove_group(group)
        return self.add_group(group)

    def take_hurt(self) -> list[RaftGroupId]:
        """Return the groups in which reads have found damage since the last call."""
        hurt = self._files.hurt
        if not hurt:
            return []
        found = sorted(group for group in hurt if group in self._logs)
        hurt.clear()
        return found

    # --- buffering --------------------------------------------------------------------------

    def append(
        self,
        group: RaftGroupId,
        entries: Sequence[Entry] = (),
        hard_state: HardState | None = None,
        *,
        reserve: bool = False,
    ) -> None:
        """Buffer entries, and the hard state that goes with them, of one group.

        The first entry's index is at most one above the last; it supersedes whatever had that
        index and everything after. Entries that a snapshot stands for already are left out.

        Raises `DiskFull` before anything has changed. With `reserve` (membership, trims), and
        for a hard state alone, it draws on the reserve before it does so. A damaged group is
        refused with `CorruptData` until it is repaired or reset.
        """
        # The check is spelled out because this is the hottest call of the log: one per group and
        # turn.
        if self._pipeline.failure is not None:
            self._check_alive()
        log = self._logs.get(group) or self.log(group)
        # A replica that lost part of its log has forgotten promises. It takes no entry, and votes
        # only if its hard state is certain, until peers have repaired it or it begins anew as
        # another replica. Planted as recovering-replica-goes-on.
        if log.damaged is not None:
            self._check_undamaged(log, has_entries=bool(entries))
        if entries and entries[0].index <= log.snapshot_index:
            # A write that was asked for before a snapshot was installed may arrive behind it.
            entries = entries[log.snapshot_index + 1 - entries[0].index :]
        buffer = self._buffer
        # Framed before the room is claimed, because only the frames tell how long they are;
        # nothing is taken over until `add_entries`.
        framed = buffer.framed(group, entries)
        end = framed.end if hard_state is None else framed.end + FRAME_HEADER_BYTES + VOTE.size
        touch = log.touch
        # Most appends fit into what an earlier claim has found to be there, and ask nobody.
        if touch is None or end > self._granted:
            is_vital = reserve or not entries
            self._claim(end - buffer.size, touched=touch is None, is_vital=is_vital)
            touch = self._touch(log)
        if entries:
            self._add_entries(log, touch, entries)
            buffer.add_entries(framed)
            touch.offsets += framed.offsets
            touch.sizes += framed.sizes
        # Behind the entries, in the same sync round. A round counts as a whole or not at all, so a
        # term never becomes durable without the entries that were acknowledged in it, nor the
        # other way round.
        if hard_state is not None:
            self._add_hard_state(log, touch, hard_state)

    def _add_entries(self, log: GroupLog, touch: Touch, entries: Sequence[Entry]) -> None:
        first, last = entries[0], entries[-1]
        index = first.index
        assert index <= log.last + 1, f"a log has no gaps: {index} after {log.last}"
        assert last.index == index + len(entries) - 1, "entries follow one another"
        if index <= log.last:
            # A newer leader's entries supersede ours from here on (Raft §5.3). The hard state
            # stays: a vote is not taken back with the entries. Planted as
            # hard-state-lost-by-truncation.
            log.take_back(index)
        if touch.lowest == 0 or index < touch.lowest:
            touch.lowest = index
        touch.entries += len(entries)
        log.recent += entries
        log.last = last.index
        # Terms never fall along a log, so one comparison speaks for all entries in between.
        if first.term == last.term:
            log.note_term(index, first.term)
        else:
            for entry in entries:
                log.note_term(entry.index, entry.term)

    def _add_hard_state(self, log: GroupLog, touch: Touch, state: HardState) -> None:
        log.hard_state = state
        touch.hard_states += 1
        frame = small_frame(
            self._seed,
            FrameKind.HARD_STATE,
            group=log.group,
            index=state.commit,
            term=state.term,
            payload=VOTE.pack(state.vote),
        )
        self._buffer.add_frame(frame)

    def compact(self, group: RaftGroupId, index: Index, term: Term) -> None:
        """Buffer that a durable snapshot stands for every entry of `group` up to `index`.

        If the log has another entry there, or ends below it, all of its entries go: the snapshot
        came from a leader and replaces them. A snapshot below the last one is ignored.
        """
        self._check_alive()
        log = self.log(group)
        if index <= log.snapshot_index:
            return
        self._claim(FRAME_HEADER_BYTES, touched=log.touch is None, is_vital=True)
        touch = self._touch(log)
        touch.compactions += 1
        # With the same entry at `index` what follows is still good, and stays. With another one
        # our log is of another history, and all of it goes (Raft §7). An unknown term is no
        # contradiction.
        discard = index > log.last or log.term_at(index) not in (term, None)
        if discard:
            touch.is_straight = False
        frame = small_frame(
            self._seed,
            FrameKind.COMPACTION,
            group=group,
            index=index,
            term=term,
            flags=FrameFlag.DISCARD if discard else 0,
        )
        # In memory at once. On disk older entries come back if the power fails before the sync,
        # which is harmless: the snapshot that stands for them was durable before
        # (log-forgets-before-the-snapshot-is-saved).
        log.compact(index, term, discard=discard)
        self._buffer.add_frame(frame)

    def repair(self, group: RaftGroupId, entries: Sequence[Entry]) -> None:
        """Buffer entries, fetched from peers, in the place of damaged ones.

        They must be committed, and lie within the damaged range. What is intact behind them stays.
        `log(group).damaged` becomes None with the last hole.
        """
        self._check_alive()
        log = self.log(group)
        damage = log.damaged
        if damage is None or damage.first_damaged_index is None:
            raise StorageError(f"group {group} has no damaged entries")
        first, last = entries[0].index, entries[-1].index
        assert first > log.snapshot_index, "a snapshot stands for it"
        # Only committed entries may come this way, since they alone are the same on every replica;
        # nothing here could tell a peer's uncommitted entry from ours.
        assert last <= log.last, "a repair fills holes, it does not append"
        assert last == first + len(entries) - 1, "entries follow one another"
        framed = self._buffer.framed(group, entries, FrameFlag.REPAIR)
        more = framed.end - self._buffer.size
        self._claim(more, touched=log.touch is None, is_vital=True)
        touch = self._touch(log)
        touch.entries += len(entries)
        # So that the directory names these indexes, should their frames be damaged in turn.
        touch.lowest = min(touch.lowest or first, first)
        for entry, offset, size in zip(entries, framed.offsets, framed.sizes, strict=True):
            touch.repairs += ((entry.index, entry.term, offset, size),)
            log.repaired[entry.index] = entry
            log.set_term(entry.index, entry.term)
        log.damaged = log.damage()
        self._buffer.add_entries(framed)

    @property
    def durable_end(self) -> int:
        """Up to where this process has made the log durable; 0 as long as it has synced nothing.

        Whenever the log is opened later, it ends there or beyond, unless the disk went back.
        """
        return self._pipeline.durable_end

    @property
    def end(self) -> int:
        """Where the log ends: what was found at the opening, and what was synced since."""
        return max(self._pipeline.opened_end, self._pipeline.durable_end)

    @property
    def buffered_bytes(self) -> int:
        """How many bytes of frames wait for the next `seal`."""
        return self._buffer.size

    # --- the three phases -------------------------------------------------------------------

    def seal(self) -> SyncRound | None:
        """Take what is buffered as the next sync round; None if nothing is."""
        self._check_alive()
        buffer = self._buffer
        if not buffer.touches:
            if self._files.is_full:
                self._files.prepare()
            return None
        # The round and its addresses are fixed here, by the owner. Appends that come while it is
        # written go to the next buffer.
        sync_round = self._pipeline.seal(buffer, self._table)
        self._buffer = FrameBuffer(self._seed)
        self._granted = 0
        return sync_round

    def synced(self, sync_round: SyncRound) -> None:
        """Publish a sync round that was written: it counts as durable from here on."""
        self._check_alive()
        self._pipeline.publish(sync_round)
        for touch in sync_round.touches:
            # Only now: before the sync returned the older entries might have been needed by a
            # recovery.
            self._pins.move(touch.log.group, touch.oldest)
            self._cache.add(touch)
        self._cache.shrink()

    def sync(self) -> None:
        """Make everything that was buffered durable, here and now."""
        sync_round = self.seal()
        if sync_round is not None:
            sync_round.write()
            self.synced(sync_round)

    def mark(self) -> bool:
        """Record that everything so far is synced, without a sync; False if there is no need.

        A sync round is covered by the mark in the next one. Until then damage to it that looks
        like a torn write would pass for one. An owner that has been idle for some ten milliseconds
        calls this once, so that the window does not stay open while nothing is written.
        """
        self._check_alive()
        # Not while frames wait: their round will carry the mark anyway.
        return not self._buffer.touches and self._pipeline.mark()

    @property
    def wants_mark(self) -> bool:
        """True until `mark_begun` has written down that there is something to lose."""
        return not self._is_begun and bool(self._files.files)

    def mark_begun(self) -> None:
        """Note beside the log that it was begun, so that its absence is noticed. Blocks."""
        begun.mark(self._files.disk)
        self._is_begun = True

    # --- space ------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """True while there is no room for another file: normal appends are refused.

        It becomes False again when an append, a `seal` or a `release` finds room.
        """
        return self._files.is_full

    @property
    def is_exhausted(self) -> bool:
        """True while even the reserve has little left, on a disk that is full.

        An owner then asks for nothing any more that would have to be remembered. It becomes False
        as `is_full` does.
        """
        if not self._files.is_full:
            return False
        table = table_bytes(len(self._logs) + 1)
        return self._files.is_exhausted(self._buffer.size, table_bytes=table)

    def release(self) -> int:
        """Delete the oldest files that no group needs any more; return how many were deleted.

        A file goes when no entry in it is live and the sync round that begins the next file,
        which repeats everything else, is durable.
        """
        self._check_alive()
        count = 0
        # The first round of every file repeats how all groups stand. Until that round is durable
        # the file before it is the only one that says so.
        while (oldest := self._files.oldest) < self._pipeline.durable_sequence:
            # From the front only, since a gap in the sequence of files counts as a loss at the
            # next opening.
            if self._pins.at(oldest):
                break
            self._files.drop_oldest()
            count += 1
        if self._files.is_full:
            self._files.prepare()
        return count

    def pinning_groups(self) -> list[RaftGroupId]:
        """Return the groups whose entries keep the oldest file; compact them, and it can go.

        Empty if the oldest file is the one being written.
        """
        oldest = self._files.oldest
        return sorted(self._pins.at(oldest)) if oldest < self._files.last_sequence else []

    @property
    def file_count(self) -> int:
        """How many files the log has."""
        return len(self._files.files)

    def close(self) -> None:
        """Sync what is buffered and close the log, so that the next opening is quick.

        A dead log just closes its files.
        """
        if self._pipeline.failure is None:
            # The index that is saved below describes what is on disk, so nothing may be left in
            # the buffer.
            self.sync()
            self._pipeline.close()
            # Only a shortcut: without it the next start reads the log. So a full disk or a lack
            # of descriptors does not make a clean stop fail.
            with suppress(StorageError, OSError):
                save_clean(self._files, self._logs.values())
        self._files.close()

    # --- inside -----------------------------------------------------------------------------

    def _touch(self, log: GroupLog) -> Touch:
        return log.touch or self._buffer.touch(log)

    def _claim(self, more: int, *, touched: int, is_vital: bool) -> None:
        size = self._buffer.round_bytes(more, touched)
        current = self._files.current
        if current is not None and size <= current.room and not self._files.is_full:
            # What else fits into the current file needs no claim. Headers and directory are in
            # `size`, so the grant is for frames of groups that have a line in the directory
            # already.
            self._granted = self._buffer.size + more + current.room - size
            return
        # The worst case: the round begins a file and brings the table of all groups, with one more
        # than there are, for the group that may be added by this very call.
        in_new_file = FILE_HEADER_BYTES + size + table_bytes(len(self._logs) + 1)
        self._files.claim(size, in_new_file=in_new_file, is_vital=is_vital)
        self._granted = 0

    def _table(self) -> bytes:
        """Return the table of all groups as they stand with what is buffered now."""
        rows = []
        for log in self._logs.values():
            if log.row_bytes is None:
                log.row_bytes = row_bytes(log.row())
            rows.append(log.row_bytes)
        return table_frame(self._seed, rows)

    def _check_alive(self) -> None:
        self._pipeline.check_alive()

    @staticmethod
    def _check_undamaged(log: GroupLog, *, has_entries: bool) -> None:
        assert log.damaged is not None
        # Where only entries are lost the term and the vote are still known, and may go on; a
        # replica that is being repaired still has to enter newer terms.
        if has_entries or not log.damaged.hard_state_intact:
            raise CorruptData(f"group {log.group} is damaged; repair or reset it first")
