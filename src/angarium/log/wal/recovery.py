"""Opening a log that was not closed: every file is read, verified and replayed in order.

Nothing here raises because of damage; what was found is said group by group, in `Recovered`.
Errors are left for what is no damage at all: files of another node, or of a newer version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.errors import StorageError
from angarium.ids import Index, RaftGroupId, Term
from angarium.log.disk import SECTOR_BYTES
from angarium.log.wal.files import FOLDER, WalFile, WalFiles, log_name, log_sequences
from angarium.log.wal.format import (
    FILE_HEADER_BYTES,
    PAGE_BYTES,
    FileHeader,
    RoundFlag,
    file_seed,
    parse_file_header,
    parse_round_header,
)
from angarium.log.wal.group_log import GroupLog
from angarium.log.wal.replay import Replay
from angarium.log.wal.report import Recovered, RecoveredGroup
from angarium.log.wal.scan import FileScan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.log.disk import File

_PEEK_BYTES: Final = SECTOR_BYTES


@dataclass(slots=True)
class _Found:
    """A file of the sequence, before its rounds are read."""

    sequence: int
    file: File
    size: int
    header: FileHeader | None
    previous_end: int | None
    """Where it says that the file before ends, if it says anything."""
    is_misplaced: bool
    """It bears the name of another file; what it says is true, but not here."""

    @property
    def is_cut(self) -> bool:
        """Tell whether the file is shorter than it was made before its first use."""
        made = self.header.length if self.header is not None else PAGE_BYTES
        return self.size < made or self.size % PAGE_BYTES != 0


def recover(files: WalFiles) -> tuple[dict[RaftGroupId, GroupLog], Recovered]:
    """Read everything, and leave `files` ready to be appended to."""
    found = _find(files)
    replay = Replay(lambda group: GroupLog(group, files))
    scan: FileScan | None = None
    for at, one in enumerate(found):
        following = found[at + 1] if at + 1 < len(found) else None
        # A file in the middle is gone. Whatever it held, entries, votes, whole groups, may be
        # missing.
        if at and one.sequence != found[at - 1].sequence + 1:
            replay.suspect_all()
        scan = _replay_file(files, replay, one, following)
    if found:
        _continue_after(files, found[-1], scan)
    for log in replay.logs.values():
        settle(log)
    return replay.logs, Recovered(
        groups=recovered_groups(replay.logs.values()),
        unknown_groups=replay.unknown_groups,
        was_clean=False,
        cut_bytes=scan.cut_bytes if scan is not None else 0,
    )


def settle(log: GroupLog) -> None:
    """Finish a log that was filled from disk: nothing of it is in memory."""
    log.recent_first = log.last + 1
    log.synced_last = log.last
    log.damaged = log.damage()


def recovered_groups(logs: Iterable[GroupLog]) -> dict[RaftGroupId, RecoveredGroup]:
    """Return what there is to say about each group."""
    return {log.group: _recovered_group(log) for log in logs}


def _recovered_group(log: GroupLog) -> RecoveredGroup:
    last_term = log.term_at(log.last)
    return RecoveredGroup(
        hard_state=log.hard_state,
        first_index=log.first_index(),
        last_index=log.last_index(),
        last_term=None if last_term is None else Term(last_term),
        snapshot_index=Index(log.snapshot_index),
        snapshot_term=None if log.snapshot_term is None else Term(log.snapshot_term),
        damage=log.damaged,
    )


def _find(files: WalFiles) -> list[_Found]:
    """Return the files of the sequence, without a last one that was never really begun."""
    found = [_peek(files, sequence) for sequence in log_sequences(files.disk)]
    if found and not _is_begun(files, found[-1]):
        # The first sync into this file never returned. It has no table, so it could not stand for
        # the files before it; it goes, and its name is free again.
        last = found.pop()
        last.file.close()
        files.disk.remove(log_name(last.sequence))
        files.disk.sync_directory(FOLDER)
    return found


def _is_begun(files: WalFiles, last: _Found) -> bool:
    """Tell whether the last file has, or may have lost, a first sync round."""
    if last.is_cut or last.is_misplaced:
        return True
    scan = _scan(files, last, known_end=None)
    return next(scan.rounds(), None) is not None


def _scan(files: WalFiles, one: _Found, *, known_end: int | None) -> FileScan:
    return FileScan(
        one.file.pread(one.size, 0),
        file_seed=file_seed(files.incarnation, one.sequence),
        frame_seed=files.frame_seed,
        known_end=known_end,
    )


def _peek(files: WalFiles, sequence: int) -> _Found:
    file = files.disk.open(log_name(sequence))
    content = file.pread(_PEEK_BYTES, 0)
    header = parse_file_header(content)
    if header is not None and header.incarnation != files.incarnation:
        raise StorageError(
            f"{log_name(sequence)} belongs to incarnation {header.incarnation:012x}, "
            f"not to {files.incarnation:012x}"
        )
    # Somebody renamed or copied it. Its rounds are true, but not at this position of the history,
    # so none of them is applied, and the file itself counts as lost.
    is_misplaced = header is not None and header.sequence != sequence
    if is_misplaced:
        header = None
    seed = file_seed(files.incarnation, sequence)
    first = parse_round_header(content, FILE_HEADER_BYTES, seed=seed)
    previous_end = None
    if header is not None:
        previous_end = header.previous_end
    # The file header is damaged. The first round repeats where the file before ends.
    elif first is not None and first.flags & RoundFlag.FIRST:
        previous_end = first.mark
    return _Found(sequence, file, file.size(), header, previous_end, is_misplaced)


def _replay_file(
    files: WalFiles, replay: Replay, one: _Found, following: _Found | None
) -> FileScan:
    is_followed = following is not None and following.sequence == one.sequence + 1
    known_end = following.previous_end if following is not None and is_followed else None
    scan = _scan(files, one, known_end=known_end)
    begun = False
    for scanned in () if one.is_misplaced else scan.rounds():
        replay.apply(scanned, scan.content, one.sequence)
        begun = True
    # A cut file in the middle has `known_end`, and what is missing shows as damage below it. At
    # the end nobody knows how far it went.
    if (one.is_cut and following is None) or (one.header is None and not begun):
        replay.suspect_all()  # nobody can say what it held, or what lay beyond its end
    files.files[one.sequence] = WalFile(
        sequence=one.sequence,
        file=one.file,
        length=one.size,
        end=scan.end,
        incarnation=files.incarnation,
    )
    return scan


def _continue_after(files: WalFiles, last: _Found, scan: FileScan | None) -> None:
    """Decide where the next sync round goes: after the last one, if only zeros follow it."""
    assert scan is not None
    # What an earlier process wrote may still be on its way to the disk. From here on it counts as
    # synced, so it has to be. The page cache of a process that was killed is intact, so these
    # bytes can be read although no sync ever covered them. Building on them without a sync would
    # acknowledge what a power cut takes away.
    last.file.datasync()
    files.last_sequence, files.last_end = last.sequence, scan.end
    # Behind a torn round lie bytes that are not zero. Appending over them could leave a mixture
    # that reads as a whole frame of the past, so a new file is begun, whose header says where this
    # one ends.
    if not last.is_cut and scan.end >= scan.written_end:
        files.current = files.files[last.sequence]
