"""From entries to a sync round: the buffer that appends fill and `seal` empties.

Entry data is never copied, unless it is so short that naming it to the system would cost more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch.checksum import crc32c, crc32c_of_bytes, extend
from angarium.log.disk import SECTOR_BYTES
from angarium.log.wal.format import (
    CONTENTS,
    CRC,
    END_BYTES,
    END_MARK,
    FRAME_BODY,
    FRAME_HEADER_BYTES,
    PADDING,
    ROUND_HEADER_BYTES,
    ROW_BYTES,
    FrameKind,
    directory_frame,
    round_header,
    small_frame,
    zero_sectors,
)
from angarium.log.wal.index import address
from angarium.raft.config import ENTRY_OVERHEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.ids import Buffer, RaftGroupId
    from angarium.log.wal.files import WalFile
    from angarium.log.wal.group_log import GroupLog
    from angarium.raft.messages import Entry

COPIED_BYTES_MAX: Final = 1024
"""Data up to this length is copied into one piece with its header."""

_ENTRY: Final = int(FrameKind.ENTRY)


class Touch:
    """What one Raft group has in the buffer, and then in a sync round."""

    # Defaults of the class, because one is made for every group in every sync round, and most
    # of them never change.
    lowest = 0
    entries = 0
    hard_states = 0
    compactions = 0
    lifecycle = 0
    is_straight = True
    repairs: tuple[tuple[int, int, int, int], ...] = ()
    """Index, term, offset and size of entries that fill holes."""

    def __init__(self, log: GroupLog) -> None:
        self.log = log
        self.offsets: list[int] = []
        """Where the frames of the group's last entries begin, from the start of the buffer."""
        self.sizes: list[int] = []

    # Set by the seal:
    oldest: int | None = None
    """The oldest file the group needs once this is durable."""
    last = 0
    rewinds = 0
    cost = 0
    """How many bytes of memory its entries take; they may leave it once this is durable."""

    def take_back(self, keep: int) -> None:
        """Forget all but the first `keep` buffered entries."""
        keep = max(keep, 0)
        # The indexes in the buffer do not run straight any more. The directory says so, because
        # recovery could otherwise conclude from the lowest and the last index which entries are
        # missing.
        if self.entries:
            self.is_straight = False
        del self.offsets[keep:], self.sizes[keep:]

    def compact(self, count: int) -> None:
        """Forget the first `count` buffered entries."""
        if count > 0:
            del self.offsets[:count], self.sizes[:count]

    def contents(self) -> bytes:
        """Return this group's line of the directory."""
        return CONTENTS.pack(
            self.log.group,
            self.lowest,
            self.log.last if self.entries else 0,
            self.entries,
            self.hard_states,
            self.compactions,
            self.lifecycle,
            self.is_straight and not self.repairs and self.lifecycle == 0,
        )


class FramedEntries(NamedTuple):
    """Entries made into frames, on their way into the buffer."""

    pieces: list[Buffer]
    offsets: list[int]
    sizes: list[int]
    long: list[tuple[int, Buffer]]
    """Payloads that could fill a sector with zeros, and where they begin."""
    end: int


class FrameBuffer:
    """Frames that wait for the next sync round."""

    def __init__(self, seed: int) -> None:
        self._seed: Final = seed
        self.touches: dict[RaftGroupId, Touch] = {}
        self.pieces: list[Buffer] = []
        self.size = 0
        self.frames = 0
        self.long: list[tuple[int, Buffer]] = []
        """Payloads that could fill a sector with zeros, and where they begin."""

    def touch(self, log: GroupLog) -> Touch:
        """Return the group's share of this buffer, made now if need be."""
        touch = self.touches.get(log.group)
        if touch is None:
            touch = self.touches[log.group] = Touch(log)
        # One line of the directory per group and round, also if the group was removed and added
        # again within it.
        touch.log = log  # another one than before, if the group was removed and added again
        log.touch = touch
        # The group is about to change, so its line of the table has to be made anew.
        log.row_bytes = None
        return touch

    def framed(self, group: RaftGroupId, entries: Sequence[Entry], flags: int = 0) -> FramedEntries:
        """Return `entries` as frames that would follow the buffer's last; nothing changes yet."""
        seed, pack = self._seed, FRAME_BODY.pack
        pieces: list[Buffer] = []
        offsets, sizes, long = [], [], []
        offset = self.size
        for entry in entries:
            data = entry.data
            size = len(data)
            crc = crc32c_of_bytes(data) if type(data) is bytes else crc32c(data)
            body = pack(size, flags, entry.kind, _ENTRY, group, entry.index, entry.term, crc)
            # The header has a checksum of its own, begun with the incarnation: a payload that
            # imitates a frame does not know those 48 bits, and a header that is whole names a
            # group and an index even if the payload is damaged.
            crc = extend(seed, body)
            offsets.append(offset)
            sizes.append(size)
            if size <= COPIED_BYTES_MAX:
                pieces.append(b"".join((body, CRC.pack(crc), data, PADDING[-size & 7])))
            else:
                pieces += (body + CRC.pack(crc), data, PADDING[-size & 7])
            # A shorter payload cannot fill a sector with zeros, not even with its padding of up to
            # 7 bytes.
            if size > SECTOR_BYTES - 8:
                long.append((offset + FRAME_HEADER_BYTES, data))
            offset += FRAME_HEADER_BYTES + size + 7 & ~7
        return FramedEntries(pieces, offsets, sizes, long, offset)

    def add_entries(self, framed: FramedEntries) -> None:
        """Take frames in that were made for just this position."""
        pieces, offsets, _, long, self.size = framed
        self.pieces += pieces
        self.frames += len(offsets)
        if long:
            self.long += long

    def add_frame(self, frame: bytes) -> None:
        """Take in a frame of another kind."""
        self.pieces.append(frame)
        self.frames += 1
        self.size += len(frame)

    def round_bytes(self, more: int, touched: int) -> int:
        """Return how long the sync round becomes with `more` bytes of frames."""
        directory = FRAME_HEADER_BYTES + CONTENTS.size * (len(self.touches) + touched)
        return ROUND_HEADER_BYTES + directory + self.size + more + END_BYTES

    def sealed(
        self, *, file: WalFile, position: int, mark: int, flags: int, table: bytes
    ) -> tuple[list[Buffer], int]:
        """Return the bytes of the sync round at `position`, and give every entry its address."""
        contents = [touch.contents() for touch in self.touches.values()]
        directory = directory_frame(self._seed, b"".join(contents))
        base = position + ROUND_HEADER_BYTES + len(directory)
        # The table comes twice: nothing else says what it says once the older files are gone.
        last, frames = (table + table, self.frames + 3) if table else (b"", self.frames + 1)
        end = base + self.size + len(last) + END_BYTES
        zeros = 0
        # Counted now, because which sectors a payload fills depends on where the round lies in the
        # file.
        for offset, data in self.long:
            zeros += zero_sectors(data, base + offset)
        header = round_header(
            flags=flags,
            length=end - position,
            mark=mark,
            frames=frames,
            zero_sectors=zeros,
            seed=file.seed,
            position=position,
        )
        self._settle(address(file.sequence, base))
        return [header + directory, *self.pieces, last + END_MARK], end

    def _settle(self, base: int) -> None:
        """Give entries their addresses, now that the sync round has a position."""
        for touch in self.touches.values():
            log = touch.log
            # The buffer is gone; the next append of this group starts a new touch, in the next
            # round.
            log.touch = None
            if touch.repairs:
                self._settle_repairs(touch, base)
            sizes = touch.sizes
            if sizes:
                for offset in touch.offsets:
                    log.addresses.append(base + offset)
                log.sizes.extend(sizes)
                touch.cost = sum(sizes) + ENTRY_OVERHEAD_BYTES * len(sizes)
            touch.last = log.last
            # Remembered for `EntryCache.add`: if entries are taken back while this round is being
            # written, its sync must not let their successors leave memory.
            touch.rewinds = log.rewinds
            touch.oldest = log.oldest_sequence()

    @staticmethod
    def _settle_repairs(touch: Touch, base: int) -> None:
        log = touch.log
        for index, term, offset, size in touch.repairs:
            # A compaction or a newer leader may have taken the entry away between the repair and
            # the seal.
            if log.snapshot_index < index <= log.last:
                log.fill(index, term, base + offset, size)
        log.damaged = log.damage()


def table_frame(seed: int, rows: Iterable[bytes]) -> bytes:
    """Return the frame that says how every group stands."""
    return small_frame(seed, FrameKind.TABLE, payload=b"".join(rows))


def table_bytes(groups: int) -> int:
    """Return how many bytes the two copies of a table of `groups` groups take."""
    return 2 * (FRAME_HEADER_BYTES + ROW_BYTES * groups)
