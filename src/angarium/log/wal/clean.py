"""The index of a log that was closed, saved so that the next opening need not read the log.

Nothing depends on it: it is used only if it is whole and describes exactly the files that are
there, up to the last byte; otherwise the log is read as after a crash. It is removed before the
log is written to again. Payloads are then verified when they are read.

    head    magic · checksum of the rest · incarnation · number of files · of groups · checksum
    file    sequence · length · end
    group   row · base · number of entries · of runs · addresses · sizes · run starts · run terms
"""

from __future__ import annotations

import sys
from array import array
from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c
from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.log.disk import read_file, replace_file
from angarium.log.wal.files import FOLDER, WalFile, WalFiles, log_name, log_sequences
from angarium.log.wal.format import (
    BARE_ROUND_BYTES,
    ROW_BYTES,
    Row,
    RowFlag,
    parse_round_header,
    parse_table,
    row_bytes,
    written_end,
)
from angarium.log.wal.group_log import GroupLog
from angarium.log.wal.index import HOLE
from angarium.log.wal.recovery import recovered_groups, settle
from angarium.log.wal.report import Recovered
from angarium.raft.messages import HardState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import Buffer

_NAME: Final = f"{FOLDER}/clean"
_MAGIC: Final = b"ANGCLEA1"
_HEAD: Final = Struct("<8sQQQQ")
_FILE: Final = Struct("<QQQ")
_GROUP: Final = Struct("<QQQ")
_NO_TERM: Final = (1 << 64) - 1
_READ_BYTES: Final = 1024 * 1024


def save_clean(files: WalFiles, logs: Iterable[GroupLog]) -> None:
    """Write down where everything lies."""
    # The arrays are written as they lie in memory. Without this file the next opening reads the
    # log.
    if sys.byteorder != "little" or files.current is None:
        return
    parts: list[Buffer] = []
    count = 0
    for log in logs:
        count += 1
        parts.append(row_bytes(log.row()))
        parts.append(_GROUP.pack(log.base, len(log.addresses), len(log.run_starts)))
        parts += (log.addresses.tobytes(), log.sizes.tobytes(), bytes(-len(log.sizes) % 2 * 4))
        terms = [_NO_TERM if term is None else term for term in log.run_terms]
        parts += (array("Q", log.run_starts).tobytes(), array("Q", terms).tobytes())
    listed = [_FILE.pack(one.sequence, one.length, one.end) for one in files.files.values()]
    body = b"".join((*listed, *parts))
    head = _HEAD.pack(_MAGIC, crc32c(body), files.incarnation, len(listed), count)
    replace_file(files.disk, _NAME, head + crc32c(head).to_bytes(8, "little") + body)


def load_clean(files: WalFiles) -> tuple[dict[RaftGroupId, GroupLog], Recovered] | None:
    """Return the logs of a cleanly closed log; None if it has to be read after all."""
    content = read_file(files.disk, _NAME)
    if content is None:
        return None
    head = content[: _HEAD.size]
    if len(content) < _HEAD.size + 8:
        return None
    magic, crc, incarnation, file_count, group_count = _HEAD.unpack(head)
    body = content[_HEAD.size + 8 :]
    if (
        magic != _MAGIC
        or incarnation != files.incarnation
        or crc32c(head).to_bytes(8, "little") != content[_HEAD.size : _HEAD.size + 8]
        or crc32c(body) != crc
    ):
        return None
    described = [_FILE.unpack_from(body, row * _FILE.size) for row in range(file_count)]
    if not _adopt(files, described):
        return None
    logs = _load_logs(files, body, file_count * _FILE.size, group_count)
    return logs, Recovered(
        groups=recovered_groups(logs.values()), unknown_groups=False, was_clean=True, cut_bytes=0
    )


def forget_clean(files: WalFiles) -> None:
    """Remove what is about to become untrue."""
    if files.disk.exists(_NAME):
        files.disk.remove(_NAME)
        files.disk.sync_directory(FOLDER)


def _adopt(files: WalFiles, described: list[tuple[int, ...]]) -> bool:
    """Open the files that were described, if they are just those that are there."""
    # Any difference makes the index worthless: it is a shortcut, and the log itself is what
    # counts.
    if [sequence for sequence, *_ in described] != log_sequences(files.disk):
        return False
    opened = []
    for sequence, length, end in described:
        file = files.disk.open(log_name(sequence))
        opened.append(
            WalFile(
                sequence=sequence,
                file=file,
                length=length,
                end=end,
                incarnation=files.incarnation,
            )
        )
    # Also where the log ends: an index that was put back beside a newer log would hide what was
    # appended since.
    if any(one.file.size() != one.length for one in opened) or not _ends_here(opened[-1]):
        for one in opened:
            one.file.close()
        return False
    files.files = {one.sequence: one for one in opened}
    files.current = opened[-1]
    files.last_sequence, files.last_end = files.current.sequence, files.current.end
    return True


def _ends_here(last: WalFile) -> bool:
    """Tell whether the log ends in the bare mark of its close, and only zeros follow."""
    mark = last.end - BARE_ROUND_BYTES
    header = last.file.pread(BARE_ROUND_BYTES, mark)
    if parse_round_header(header, 0, seed=last.seed, origin=mark) is None:
        return False
    return all(
        written_end(last.file.pread(_READ_BYTES, position)) == 0
        for position in range(last.end, last.length, _READ_BYTES)
    )


def _load_logs(
    files: WalFiles, body: bytes, position: int, count: int
) -> dict[RaftGroupId, GroupLog]:
    logs: dict[RaftGroupId, GroupLog] = {}
    for _ in range(count):
        (row,) = parse_table(body[position : position + ROW_BYTES])
        log = logs[RaftGroupId(row.group)] = GroupLog(RaftGroupId(row.group), files)
        position = _load_arrays(log, body, position + ROW_BYTES)
        _load_row(log, row)
        settle(log)
    return logs


def _load_arrays(log: GroupLog, body: bytes, position: int) -> int:
    log.base, entries, runs = _GROUP.unpack_from(body, position)
    position += _GROUP.size

    def taken(target: array[int], count: int) -> array[int]:
        nonlocal position
        size = count * target.itemsize
        target.frombytes(body[position : position + size])
        position += size + 7 & ~7
        return target

    log.addresses = taken(array("Q"), entries)
    log.sizes = taken(array("I"), entries)
    log.run_starts = taken(array("Q"), runs).tolist()
    terms = taken(array("Q"), runs).tolist()
    log.run_terms = [None if term == _NO_TERM else term for term in terms]
    return position


def _load_row(log: GroupLog, row: Row) -> None:
    log.hard_state = HardState(Term(row.term), ReplicaId(row.vote), Index(row.commit))
    log.snapshot_index, log.snapshot_term = row.snapshot_index, row.snapshot_term
    log.last = row.last_index
    log.hard_state_suspect = bool(row.flags & RowFlag.HARD_STATE_SUSPECT)
    log.tail_unknown = bool(row.flags & RowFlag.TAIL_UNKNOWN)
    # A hole, or a repaired entry that lies after its successors: addresses do not only grow.
    addresses = log.addresses
    log.is_patchy = HOLE in addresses or list(addresses) != sorted(addresses)
