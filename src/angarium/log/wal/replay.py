"""Rebuilding every group's log from sync rounds, in the order in which they were written.

Frames of a whole sync round are simply applied. Where one is damaged, its directory tells which
Raft groups lost which frames, and only those are affected; where the directory is unreadable too,
every group may be. Whatever comes later puts things right again where it can: an entry that
supersedes a lost one, a newer hard state, a compaction, the table at the start of the next file.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.log.wal.format import (
    FRAME_HEADER_BYTES,
    VOTE,
    Contents,
    FrameFlag,
    FrameKind,
    Row,
    RowFlag,
    parse_directory,
    parse_table,
)
from angarium.log.wal.index import address
from angarium.raft.messages import HardState

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.log.wal.group_log import GroupLog
    from angarium.log.wal.scan import Frame, ScannedRound

# As plain numbers: these are compared once per entry of a whole log.
_ENTRY: Final = int(FrameKind.ENTRY)
_REPAIR: Final = int(FrameFlag.REPAIR)


class Replay:
    """The state of all groups, sync round by sync round."""

    def __init__(self, new_log: Callable[[RaftGroupId], GroupLog]) -> None:
        self._new_log: Final = new_log
        self.logs: dict[RaftGroupId, GroupLog] = {}
        self.unknown_groups = False
        """Groups may have been added in a part that cannot be read."""
        self._is_begun = False

    def apply(self, scanned: ScannedRound, content: bytes, sequence: int) -> None:
        """Apply one sync round of the file `sequence`."""
        # Before the frames are applied, since what was there before decides what a loss can have
        # changed.
        lost = self._lost(scanned, content) if scanned.is_damaged else []
        for contents, seen in lost:
            self._before_loss(contents, seen)
        base = address(sequence, 0)
        has_table = False
        for frame in scanned.frames:
            if frame.kind == _ENTRY:
                self._apply_entry(frame, base)
            elif frame.kind == FrameKind.TABLE:
                has_table = has_table or self._apply_table(frame, content)
            else:
                self._apply_other(frame, content)
        if not has_table:  # which says how every group stands, whatever was lost before it
            for contents, seen in lost:
                self._after_loss(contents, seen)
            # The first round of the oldest file must have a table. Without it what the deleted
            # files said is lost.
            if not self._is_begun:
                self.suspect_all()  # older files are gone, and nothing else says what they said
        self._is_begun = True

    def suspect_all(self) -> None:
        """Something of unknown content is missing here."""
        self.unknown_groups = True
        for log in self.logs.values():
            log.suspect()

    # --- frames -----------------------------------------------------------------------------

    def _apply_entry(self, frame: Frame, base: int) -> None:
        log = self.logs.get(RaftGroupId(frame.group)) or self._unheard_of(frame.group)
        index = frame.entry_index
        # A snapshot stands for it. Frames of compacted entries stay in their file until all of it
        # can go.
        if index <= log.snapshot_index:
            return
        where = base + frame.position
        # A repair fills its own index and leaves what follows alone, unlike a new entry.
        if frame.flags & _REPAIR and index <= log.last:
            if frame.is_intact:
                log.fill(index, frame.term, where, frame.size)
            return
        # The last frame of an index wins, and cuts what lies behind it: the order in the file is
        # the order in which leaders replaced entries. Planted as superseded-entries-come-back.
        log.add(index, frame.term, where, frame.size)
        if not frame.is_intact:
            # The header is whole, so index and term are known; only the data is lost and can be
            # asked for.
            log.spoil(index)

    def _apply_other(self, frame: Frame, content: bytes) -> None:
        group = RaftGroupId(frame.group)
        match frame.kind:
            case FrameKind.HARD_STATE:
                log = self.logs.get(group) or self._unheard_of(frame.group)
                if frame.is_intact:
                    log.hard_state = _hard_state(frame, content)
                # A newer vote may be what is lost. A later hard state that can be read clears this
                # again, since it repeats term and vote.
                log.hard_state_suspect = not frame.is_intact
            case FrameKind.COMPACTION:
                log = self.logs.get(group) or self._unheard_of(frame.group)
                discard = bool(frame.flags & FrameFlag.DISCARD)
                log.compact(frame.entry_index, frame.term, discard=discard)
            case FrameKind.ADDED:
                self.logs[group] = self._new_log(group)
            case FrameKind.REMOVED:
                self.logs.pop(group, None)

    def _unheard_of(self, group: int) -> GroupLog:
        """Return a log for a group whose beginning is lost; nothing about it is certain."""
        log = self.logs[RaftGroupId(group)] = self._new_log(RaftGroupId(group))
        log.suspect()
        return log

    # --- tables -----------------------------------------------------------------------------

    def _apply_table(self, frame: Frame, content: bytes) -> bool:
        """Take over what a table says; False if it cannot be read."""
        if not frame.is_intact:
            return False
        rows = parse_table(_payload(frame, content))
        listed = {row.group for row in rows}
        # Removed for certain: the table is written by the owner, who knows all groups.
        for group in [group for group in self.logs if group not in listed]:
            del self.logs[group]
        for row in rows:
            log = self.logs.get(RaftGroupId(row.group))
            if log is None:
                log = self.logs[RaftGroupId(row.group)] = self._new_log(RaftGroupId(row.group))
            _reconcile(log, row)
        self.unknown_groups = False
        return True

    # --- losses -----------------------------------------------------------------------------

    def _lost(self, scanned: ScannedRound, content: bytes) -> list[tuple[Contents, _Seen]]:
        """Return for each group that misses frames what it should have, and what was found."""
        missing = scanned.header.frames - len(scanned.frames) if scanned.header else None
        if missing == 0:
            return []  # every frame is there, and names what is wrong with its payload
        seen: dict[int, _Seen] = {}
        directory: list[Contents] | None = None
        has_directory = False
        for frame in scanned.frames:
            if frame.kind == FrameKind.DIRECTORY:
                has_directory = True
                if frame.is_intact:
                    directory = parse_directory(_payload(frame, content))
            elif frame.kind != FrameKind.TABLE:
                seen.setdefault(frame.group, Counter())[_FAMILIES[FrameKind(frame.kind)]] += 1
        # Exactly one frame is missing and it is the directory: all others are here, and nothing is
        # lost.
        if missing == 1 and not has_directory:
            return []  # it is the directory itself that is missing
        # Nobody says which groups had frames in what cannot be read. Every group is suspected
        # rather than one of them believed: a lost vote must never be taken for no vote.
        if directory is None:
            self.suspect_all()
            return []
        return [
            (contents, found)
            for contents in directory
            if (found := seen.get(contents.group, Counter())) != _expected(contents)
        ]

    def _before_loss(self, contents: Contents, seen: _Seen) -> None:
        log = self.logs.get(RaftGroupId(contents.group)) or self._unheard_of(contents.group)
        if seen["lifecycle"] != contents.lifecycle:
            log.suspect()
        # Entries were taken back within the round. Which of the known ones were superseded by a
        # lost frame cannot be told; committed ones were not, since those are never superseded
        # (Raft §5.4.3).
        elif not contents.is_straight:
            log.forget_above(log.hard_state.commit)
        elif seen["entry"] != contents.entries:
            # The lost entries begin here, and the frames that follow put back what is intact.
            log.rewind(max(contents.lowest_index, log.snapshot_index + 1))

    def _after_loss(self, contents: Contents, seen: _Seen) -> None:
        log = self.logs.get(RaftGroupId(contents.group)) or self._unheard_of(contents.group)
        if seen["lifecycle"] != contents.lifecycle:
            log.suspect()
        if seen["hard_state"] != contents.hard_states:
            log.hard_state_suspect = True
        if not contents.is_straight:
            log.forget_above(log.hard_state.commit)
        if seen["entry"] != contents.entries:
            # They existed and may have been acknowledged, so the log must not appear to end before
            # them: a replica that forgot them silently could vote for a leader without them (Raft
            # §5.4.1).
            log.extend_with_holes(contents.last_index)


_Seen = Counter[str]


_FAMILIES: Final = {
    FrameKind.ENTRY: "entry",
    FrameKind.HARD_STATE: "hard_state",
    FrameKind.COMPACTION: "compaction",
    FrameKind.ADDED: "lifecycle",
    FrameKind.REMOVED: "lifecycle",
}


def _expected(contents: Contents) -> _Seen:
    return Counter(
        entry=contents.entries,
        hard_state=contents.hard_states,
        compaction=contents.compactions,
        lifecycle=contents.lifecycle,
    )


def _payload(frame: Frame, content: bytes) -> bytes:
    start = frame.position + FRAME_HEADER_BYTES
    return content[start : start + frame.size]


def _hard_state(frame: Frame, content: bytes) -> HardState:
    (vote,) = VOTE.unpack(_payload(frame, content))
    return HardState(Term(frame.term), ReplicaId(vote), Index(frame.entry_index))


def _reconcile(log: GroupLog, row: Row) -> None:
    """Make a log agree with what was known for certain when the table was written.

    Without damage it agrees already. Where it does not, frames are missing: entries that the
    table counts are holes, and those above the commit index may have been superseded.
    """
    log.hard_state = HardState(Term(row.term), ReplicaId(row.vote), Index(row.commit))
    log.hard_state_suspect = bool(row.flags & RowFlag.HARD_STATE_SUSPECT)
    log.compact(row.snapshot_index, row.snapshot_term, discard=False)
    if log.last < row.last_index:
        log.extend_with_holes(row.last_index)
        if row.last_term is not None:
            log.set_term(row.last_index, row.last_term)
    elif log.last > row.last_index or row.last_term not in (log.term_at(log.last), None):
        # Above the commit index entries may have been superseded by frames that are lost.
        log.forget_above(row.commit)
        log.cut(row.last_index)
    log.tail_unknown = bool(row.flags & RowFlag.TAIL_UNKNOWN)
