"""The bytes of the write-ahead log, all little-endian, every part aligned to 8 bytes.

    file    file header (64) · sync round · sync round · … · zeros up to the preallocated length
    round   round header (40) · directory frame · frames · end mark (8)
    frame   frame header (40) · payload · padding

A sync round is what one write and one datasync cover. Its directory repeats, per Raft group, how
many frames of which kind follow and which indexes they carry; so a frame whose own header became
unreadable is still known by name. The first sync round of a file ends in a table of how all groups
stand after it, twice, because older files may be gone.

Nothing that was written reads as 512 zeros by itself: headers begin and end in bytes that are not
zero, so does every round. Only a payload can hold such a stretch, and the round header counts how
many whole sectors of it do. More zero sectors than that mean sectors that never reached the disk.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import crc32c, crc32c_of_bytes, extend
from angarium.errors import NewerRelease
from angarium.log.disk import SECTOR_BYTES

if TYPE_CHECKING:
    from angarium.ids import Buffer

VERSION: Final = 1

FILE_MAGIC: Final = b"ANGARWAL"
ROUND_MAGIC: Final = b"ANGGROUP"
END_MARK: Final = b"ANGEND::"

FILE_HEADER_BYTES: Final = 64
ROUND_HEADER_BYTES: Final = 40
FRAME_HEADER_BYTES: Final = 40
END_BYTES: Final = len(END_MARK)
BARE_ROUND_BYTES: Final = ROUND_HEADER_BYTES + END_BYTES
"""A sync round without frames: it carries nothing but its mark."""

PAGE_BYTES: Final = 4096
"""What the system writes at once. File lengths are multiples of this, so that most cuts show in
the length alone."""

ZERO_SECTOR: Final = bytes(SECTOR_BYTES)
_STRIDE_BYTES: Final = 64 * 1024
_ZEROS: Final = bytes(_STRIDE_BYTES)
PADDING: Final = tuple(bytes(count) for count in range(8))
"""What follows a payload: `PADDING[-size & 7]`."""
_NO_TERM: Final = (1 << 64) - 1
"""How a term that nobody knows any more is written."""


class FrameKind(IntEnum):
    """What a frame says. None is 0: the kind ends the first 8 bytes of a frame header."""

    ENTRY = 1
    """An entry: it takes the place of whatever had its index, and of everything after that."""
    HARD_STATE = 2
    """Term, vote (the payload) and commit index (in the index field)."""
    COMPACTION = 3
    """A durable snapshot stands for every entry up to this index, of this term."""
    ADDED = 4
    REMOVED = 5
    DIRECTORY = 6
    TABLE = 7


class FrameFlag(IntFlag):
    REPAIR = 1
    """An entry that fills a hole left by damage and leaves what follows it alone."""
    DISCARD = 2
    """A compaction that contradicted the log, so that all entries were dropped."""


class RoundFlag(IntFlag):
    """Properties of a sync round."""

    FIRST = 1
    """First of its file: its mark is a position in the file before."""


class RowFlag(IntFlag):
    """Properties of a group's row in a table. A row is never all zeros."""

    PRESENT = 1
    HARD_STATE_SUSPECT = 2
    """A newer hard state may have been lost to damage."""
    TAIL_UNKNOWN = 4
    """Entries after the last known one may have been lost to damage."""


class FileHeader(NamedTuple):
    """The first bytes of a file."""

    sequence: int
    incarnation: int
    length: int
    """How long the file was made before its first use; a shorter one has been cut."""
    previous_end: int
    """Where the synced part of the file before ends; what lies beyond was cut by a recovery."""


class RoundHeader(NamedTuple):
    """The first bytes of a sync round."""

    flags: int
    length: int
    """From the first byte of this header to the last of the end mark."""
    mark: int
    """Every byte of the file below this position had been synced before this was written."""
    frames: int
    zero_sectors: int
    """How many sectors, aligned in the file, were written as nothing but zeros."""


class Row(NamedTuple):
    """What a table says about one Raft group."""

    group: int
    term: int
    vote: int
    commit: int
    last_index: int
    last_term: int | None
    snapshot_index: int
    snapshot_term: int | None
    flags: int


class Contents(NamedTuple):
    """What a directory says about one Raft group: its frames in this sync round."""

    group: int
    lowest_index: int
    """The lowest index among its entries, 0 without any."""
    last_index: int
    """The group's last entry after this sync round; 0 without any entries in it."""
    entries: int
    hard_states: int
    compactions: int
    lifecycle: int
    """How often it was added or removed."""
    is_straight: int
    """1 if its entries run from the lowest index to the last, and nothing else took any away."""


_FILE: Final = Struct("<8sIIQQQQ12s")
_ROUND: Final = Struct("<8sIQQII")
_ROUND_AND_POSITION: Final = Struct("<8sIQQIIQ")
"""With the position, which is not written but checked."""
FRAME_BODY: Final = Struct("<IHBBQQQI")
FRAME: Final = Struct("<IHBBQQQII")
"""size, flags, entry kind, frame kind, group, index, term, payload crc, header crc"""
CRC: Final = Struct("<I")
_ROW: Final = Struct("<8QII")
CONTENTS: Final = Struct("<QQQIIIII4x")
"""The fields of `Contents`."""
VOTE: Final = Struct("<Q")
_SEED: Final = Struct("<QQ")

ROW_BYTES: Final = _ROW.size


# --- checksums --------------------------------------------------------------------------------


def frame_seed(incarnation: int) -> int:
    """Return where the checksums of frame headers start.

    Mixed with the incarnation, so that no other node's bytes, and nothing that a client could
    have put into a payload, pass for a frame of this log.
    """
    return crc32c_of_bytes(_SEED.pack(incarnation, 0))


def file_seed(incarnation: int, sequence: int) -> int:
    """Return where the checksums of one file's round headers start."""
    return crc32c_of_bytes(_SEED.pack(incarnation, sequence + 1))


# --- writing ----------------------------------------------------------------------------------


def padded(size: int) -> int:
    """Return `size` rounded up to the alignment of frames."""
    return size + 7 & ~7


def frame_header(
    seed: int,
    kind: int,
    *,
    group: int = 0,
    index: int = 0,
    term: int = 0,
    payload: Buffer = b"",
    entry_kind: int = 0,
    flags: int = 0,
) -> bytes:
    """Return the 40 bytes before a payload."""
    body = FRAME_BODY.pack(
        len(payload), flags, entry_kind, kind, group, index, term, crc32c(payload)
    )
    return body + extend(seed, body).to_bytes(4, "little")


def directory_frame(seed: int, payload: bytes) -> bytes:
    """Return the frame that lists what follows."""
    crc = crc32c_of_bytes(payload)
    body = FRAME_BODY.pack(len(payload), 0, 0, FrameKind.DIRECTORY, 0, 0, 0, crc)
    return b"".join((body, CRC.pack(extend(seed, body)), payload))


def small_frame(
    seed: int,
    kind: int,
    *,
    group: int = 0,
    index: int = 0,
    term: int = 0,
    payload: bytes = b"",
    flags: int = 0,
) -> bytes:
    """Return a whole frame in one piece."""
    header = frame_header(
        seed, kind, group=group, index=index, term=term, payload=payload, flags=flags
    )
    return b"".join((header, payload, PADDING[-len(payload) & 7]))


def file_header(header: FileHeader) -> bytes:
    """Return a file's first 64 bytes."""
    body = _FILE.pack(
        FILE_MAGIC,
        VERSION,
        0,
        header.sequence,
        header.incarnation,
        header.length,
        header.previous_end,
        b"",
    )
    return body + CRC.pack(crc32c_of_bytes(body))


def round_header(
    *,
    flags: int,
    length: int,
    mark: int,
    frames: int,
    zero_sectors: int,
    seed: int,
    position: int,
) -> bytes:
    """Return a sync round's first 40 bytes, good only at this `position` of this file."""
    # The checksum covers the position, which is not stored: a round that turns up at another
    # position, as an old copy or within somebody's payload, does not pass there.
    fields = ROUND_MAGIC, flags, length, mark, frames, zero_sectors, position
    covered = _ROUND_AND_POSITION.pack(*fields)
    return covered[:-8] + CRC.pack(extend(seed, covered))


def row_bytes(row: Row) -> bytes:
    """Return one line of a table."""
    last_term = _NO_TERM if row.last_term is None else row.last_term
    snapshot_term = _NO_TERM if row.snapshot_term is None else row.snapshot_term
    return _ROW.pack(
        row.group,
        row.term,
        row.vote,
        row.commit,
        row.last_index,
        last_term,
        row.snapshot_index,
        snapshot_term,
        row.flags,
        0,
    )


def zero_sectors(data: Buffer, position: int) -> int:
    """Count the aligned sectors of a file that `data`, written at `position`, fills with zeros.

    The padding after `data` counts as its part: it is zeros too.
    """
    start = -position % SECTOR_BYTES
    size = padded(len(data))
    if size - start < SECTOR_BYTES:
        return 0
    # One byte of each sector tells nearly always that the sector is not zero.
    firsts = bytes(data[start::SECTOR_BYTES])
    count, found = 0, firsts.find(0)
    # Where zeros are many, yet never so many in a row, no sector needs to be looked at by itself.
    # Up to seven of the last one's may be padding.
    if found >= 0 and bytes(data).find(ZERO_SECTOR[7:]) < 0:
        return 0
    while found >= 0:
        sector = start + found * SECTOR_BYTES
        if sector + SECTOR_BYTES <= size:
            written = data[sector : sector + SECTOR_BYTES]
            count += written == ZERO_SECTOR[: len(written)]
        found = firsts.find(0, found + 1)
    return count


# --- reading ----------------------------------------------------------------------------------


def parse_file_header(content: bytes) -> FileHeader | None:
    """Return the header at the start of a file, or None if it is damaged or absent."""
    body = content[: FILE_HEADER_BYTES - 4]
    if len(content) < FILE_HEADER_BYTES or not body.startswith(FILE_MAGIC):
        return None
    if crc32c_of_bytes(body) != CRC.unpack_from(content, len(body))[0]:
        return None
    _, version, _, sequence, incarnation, length, previous_end, _ = _FILE.unpack(body)
    if version != VERSION:
        raise NewerRelease(
            f"a write-ahead log of version {version}, written by a newer release; this one knows "
            f"{VERSION}"
        )
    return FileHeader(sequence, incarnation, length, previous_end)


def parse_round_header(
    content: bytes, position: int, *, seed: int, origin: int = 0
) -> RoundHeader | None:
    """Return the round header at `position`, or None if there is none that can be trusted.

    `content` begins at position `origin` of its file.
    """
    body = content[position : position + ROUND_HEADER_BYTES - 4]
    if len(content) < position + ROUND_HEADER_BYTES or not body.startswith(ROUND_MAGIC):
        return None
    (crc,) = CRC.unpack_from(content, position + len(body))
    if extend(seed, body + VOTE.pack(origin + position)) != crc:
        return None
    return RoundHeader(*_ROUND.unpack(body)[1:])


def written_end(content: bytes) -> int:
    """Return where the zeros begin that nothing but zeros follows."""
    end = len(content)
    while end and content[max(0, end - _STRIDE_BYTES) : end] == _ZEROS[-end:]:
        end = max(0, end - _STRIDE_BYTES)
    start = max(0, end - _STRIDE_BYTES)
    return start + len(content[start:end].rstrip(b"\0"))


def next_round(content: bytes, position: int, *, end: int, seed: int) -> int | None:
    """Return where the first round header from `position` to `end` lies."""
    found = content.find(ROUND_MAGIC, position, end)
    while found >= 0:
        if found % 8 == 0 and parse_round_header(content, found, seed=seed) is not None:
            return found
        found = content.find(ROUND_MAGIC, found + 1, end)
    return None


def parse_directory(payload: bytes) -> list[Contents]:
    """Return, for each Raft group, which frames a sync round has of it."""
    return [Contents(*fields) for fields in CONTENTS.iter_unpack(payload)]


def parse_table(payload: bytes) -> list[Row]:
    """Return the rows of a table."""
    return [_row(*fields) for fields in _ROW.iter_unpack(payload)]


def count_zero_sectors(content: bytes, start: int, end: int) -> int:
    """Count the sectors that are all zeros, as far as they lie within `start` and `end`."""
    count = 0
    while start < end:
        stop = min(end, start - start % SECTOR_BYTES + SECTOR_BYTES)
        count += is_zero(content, start, stop)
        start = stop
    return count


def is_zero(content: bytes, start: int, stop: int) -> bool:
    """Tell whether the bytes from `start` to `stop` are zeros, as those beyond the end are."""
    return not content[start:stop].strip(b"\0")


def _row(  # one argument per column
    group: int,
    term: int,
    vote: int,
    commit: int,
    last_index: int,
    last_term: int,
    snapshot_index: int,
    snapshot_term: int,
    flags: int,
    _spare: int,
) -> Row:
    return Row(
        group,
        term,
        vote,
        commit,
        last_index,
        None if last_term == _NO_TERM else last_term,
        snapshot_index,
        None if snapshot_term == _NO_TERM else snapshot_term,
        flags,
    )
