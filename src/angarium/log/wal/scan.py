"""Reading one file of the log back: which sync rounds are whole, damaged, or never arrived.

The decision this module exists for: bytes below a mark had been synced, so whatever is wrong with
them is damage. Above the highest mark lies at most what one unfinished sync was writing. Sectors
of it that never reached the disk read as zeros; if there are more of those than were written, the
sync never returned, nobody was answered, and the round is cut. Anything else is damage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import crc32c_of_bytes, extend
from angarium.log.disk import SECTOR_BYTES
from angarium.log.wal.format import (
    BARE_ROUND_BYTES,
    END_BYTES,
    END_MARK,
    FILE_HEADER_BYTES,
    FRAME,
    FRAME_HEADER_BYTES,
    ROUND_HEADER_BYTES,
    RoundFlag,
    RoundHeader,
    count_zero_sectors,
    is_zero,
    next_round,
    parse_round_header,
    written_end,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS: Final = range(1, 8)
_FIRST: Final = int(RoundFlag.FIRST)
_HEADER_NONZERO_MIN: Final = 8
"""A round header that was written has more bytes than this that are not zero: 8 in its magic, at
least one each in its length and its mark or flags. A flipped byte in unwritten space is one."""


class Frame(NamedTuple):
    """A frame whose header is whole."""

    size: int
    flags: int
    entry_kind: int
    kind: int
    group: int
    entry_index: int
    term: int
    position: int
    is_intact: bool
    """The payload passes its checksum."""


@dataclass(slots=True)
class ScannedRound:
    """A sync round, as far as it can be read."""

    header: RoundHeader | None
    frames: list[Frame] = field(default_factory=list)
    is_damaged: bool = False
    """Some frame is unreadable, or its payload is."""
    end: int = 0


class FileScan:
    """Walks over the sync rounds of one file."""

    def __init__(
        self, content: bytes, *, file_seed: int, frame_seed: int, known_end: int | None
    ) -> None:
        self.content: Final = content
        self._file_seed: Final = file_seed
        self._frame_seed: Final = frame_seed
        self._known_end: Final = known_end
        """Where the next file says that this one ends; everything below is marked."""
        self.end = FILE_HEADER_BYTES
        """The end of the last round that counts, once the walk is over."""
        self.cut_bytes = 0
        self.written_end: Final = written_end(content)
        """Behind it there is nothing but zeros."""

    def rounds(self) -> Iterator[ScannedRound]:
        """Yield the sync rounds in order, damaged ones too, up to where nothing was written."""
        # Up to the end that the next file names, or to the first thing that was never written.
        while self._known_end is None or self.end < self._known_end:
            start = self.end
            header = parse_round_header(self.content, start, seed=self._file_seed)
            if header is None:
                if self._is_absent(start):
                    self._cut(start)
                    return
                scanned = self._headless(start)
            else:
                end = start + header.length
                scanned = self._read_frames(start + ROUND_HEADER_BYTES, end - END_BYTES, header)
                # The end as the header says it and not where reading stopped: a damaged frame must
                # not move the rounds behind it.
                scanned.end = end
                scanned.is_damaged |= len(scanned.frames) != header.frames
                # Only a round that no later mark covers can be torn, and it is the last one:
                # rounds are written in order. Cutting anything else would drop what was
                # acknowledged. Planted as damage-cut-silently.
                if scanned.is_damaged and self._is_torn(start, header):
                    self._cut(start)
                    return
            self.end = scanned.end
            yield scanned
            if scanned.end <= start:
                return

    # --- torn or damaged? -------------------------------------------------------------------

    def _is_marked(self, position: int) -> bool:
        """Tell whether somebody recorded that the byte at `position` had been synced."""
        # The next file was begun only after everything before it had been synced.
        if self._known_end is not None:
            return position < self._known_end
        found = self._next_round(position)
        while found is not None:
            header = parse_round_header(self.content, found, seed=self._file_seed)
            assert header is not None
            # A mark in the first round of a file speaks of the file before.
            if header.mark > position and not header.flags & _FIRST:
                return True
            found = self._next_round(found + 8)
        return False

    def _next_round(self, position: int) -> int | None:
        return next_round(self.content, position, end=self.written_end, seed=self._file_seed)

    def _is_torn(self, start: int, header: RoundHeader) -> bool:
        """Tell whether part of a round with a good header never reached the disk."""
        if self._is_marked(start):
            return False
        end = start + header.length
        # A sector of 512 bytes is on disk whole or not at all, and the file was all zeros before,
        # so a sector that never arrived reads as zeros. The header has counted those that payloads
        # filled with zeros.
        missing = count_zero_sectors(self.content, start, end) > header.zero_sectors
        # The end mark is 8 bytes, none of them zero: no single fault makes them all vanish.
        return missing or is_zero(self.content, end - END_BYTES, end)

    def _is_absent(self, start: int) -> bool:
        """Tell whether no round header was ever completely on disk at `start`."""
        if self._is_marked(start):
            return False
        end = start + ROUND_HEADER_BYTES
        header = self.content[start:end]
        # One flipped bit in space that was never written must not look like a damaged round, or an
        # opening would report a loss where nothing was.
        if len(header.replace(b"\0", b"")) < _HEADER_NONZERO_MIN:
            return True
        # A whole round has at least its end mark after the header.
        if end >= self.written_end:
            return True
        # A header may lie across two sectors, and one of them may be missing.
        second = end - end % SECTOR_BYTES
        return start < second < end and (
            is_zero(self.content, start, second)
            or is_zero(self.content, second, second + SECTOR_BYTES)
        )

    def _cut(self, start: int) -> None:
        self.end = start
        self.cut_bytes = max(0, self.written_end - start)

    # --- frames -----------------------------------------------------------------------------

    def _headless(self, start: int) -> ScannedRound:
        """Read what follows an unreadable round header; frames can be told without it."""
        # Everything is aligned to 8 bytes, so the search begins at the next multiple.
        following = self._next_round(start + 8)
        limits = [limit for limit in (following, self._known_end) if limit is not None]
        limit = min(limits) if limits else self.written_end + 7 & ~7
        scanned = self._read_frames(start + ROUND_HEADER_BYTES, limit, None)
        # Between a bare mark's header and its end there is no room for anything to be lost.
        scanned.is_damaged = limit - start >= BARE_ROUND_BYTES + FRAME_HEADER_BYTES
        # Without a following header the end can only be guessed from the frames that were found.
        scanned.end = limit if following is not None else min(limit, scanned.end)
        return scanned

    def _read_frames(self, start: int, limit: int, header: RoundHeader | None) -> ScannedRound:
        content, seed = self.content, self._frame_seed
        unpack, frames = FRAME.unpack_from, []
        scanned = ScannedRound(header)
        position = start
        stop = min(limit, len(content))
        while position + FRAME_HEADER_BYTES <= stop:
            payload_at = position + FRAME_HEADER_BYTES
            size, flags, entry_kind, kind, raft_group, index, term, crc, header_crc = unpack(
                content, position
            )
            end = payload_at + size
            if (
                extend(seed, content[position : payload_at - 4]) != header_crc
                or kind not in _KINDS
                # A size that is damaged would send the walk out of the round.
                or end > stop
            ):
                if header is None and content[position : position + END_BYTES] == END_MARK:
                    break
                scanned.is_damaged = True
                # Not given up: frames are found again by their own checksums, at the next multiple
                # of 8 bytes.
                position += 8
                continue
            is_intact = crc32c_of_bytes(content[payload_at:end]) == crc
            if not is_intact:
                scanned.is_damaged = True
            frames.append(
                Frame(size, flags, entry_kind, kind, raft_group, index, term, position, is_intact)
            )
            position = end + 7 & ~7
        scanned.frames = frames
        scanned.end = position + END_BYTES
        return scanned
