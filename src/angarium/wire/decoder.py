"""Bytes in, frames out: incremental and pure, so that it is tested without a socket.

However the stream is cut into pieces, the same frames come out. Nothing a peer announces is
believed before it is checked against the limits, and memory follows the bytes that have come, not
the bytes announced.

The bytes of many small frames arrive in one read: they land in a scratch buffer that all
connections of an event loop share (`writable` is filled and `advance` is called before anybody else
gets a turn), and each whole frame is copied out of it once, in one piece, so that a small frame
that is kept does not keep a large buffer. What is left of a frame longer than the scratch is read
straight into a buffer of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c, crc32c_of_bytes
from angarium.wire.errors import FrameTooLarge, InvalidFrame
from angarium.wire.frames import PREFIX, PREFIX_BYTES, UNCHECKED_BYTES, Frame, payload_start

if TYPE_CHECKING:
    from angarium.ids import Buffer

SCRATCH_BYTES: Final = 256 * 1024
"""The size of a scratch buffer: what one read takes from the kernel at most."""

_GROWTH_BYTES: Final = 1024 * 1024
"""A long frame's buffer starts with at most this much and doubles as its bytes come."""

_HEADER_AT: Final = PREFIX_BYTES - UNCHECKED_BYTES
"""Where the header begins in what is under the checksum."""

_unpack_prefix: Final = PREFIX.unpack_from


class FrameDecoder:
    """The receiving end of one connection's stream of bytes."""

    __slots__ = (
        "_filled",
        "_frame_bytes_max",
        "_header_bytes_max",
        "_into_partial",
        "_needed",
        "_partial",
        "_scratch",
        "error",
    )

    def __init__(
        self, *, frame_bytes_max: int, header_bytes_max: int, scratch: bytearray | None = None
    ) -> None:
        self.error: InvalidFrame | None = None
        """Why decoding stopped; whatever comes after it is not looked at."""
        self._frame_bytes_max = frame_bytes_max
        self._header_bytes_max = header_bytes_max
        self._scratch = memoryview(bytearray(SCRATCH_BYTES) if scratch is None else scratch)
        # A frame of which only a part has come: its bytes, how many of them are there, and how
        # many are needed before something can be said (the prefix first, then the whole).
        self._partial = bytearray()
        self._filled = 0
        self._needed = 0
        self._into_partial = False

    def set_limits(self, *, frame_bytes_max: int, header_bytes_max: int) -> None:
        """Take larger or smaller frames from now on."""
        self._frame_bytes_max = frame_bytes_max
        self._header_bytes_max = header_bytes_max

    def begun(self) -> bytes:
        """Return the first bytes of a frame of which only a part has come."""
        return bytes(self._partial[: min(self._filled, PREFIX_BYTES)])

    def writable(self, bytes_max: int = SCRATCH_BYTES) -> memoryview:
        """Return where the next bytes belong; tell `advance` how many were put there.

        Of frames that are decoded in one go there are no more than `bytes_max`.
        """
        self._into_partial = self._needed - self._filled >= len(self._scratch)
        if self._into_partial:
            return memoryview(self._partial)[self._filled :]
        return self._scratch if bytes_max >= len(self._scratch) else self._scratch[:bytes_max]

    def advance(self, count: int) -> list[Frame]:
        """Take `count` bytes that were put into `writable`; return the frames now complete."""
        frames: list[Frame] = []
        if self.error is not None:
            return frames
        try:
            if self._into_partial:
                self._filled += count
                self._finish_or_grow(frames)
            else:
                self._read_scratch(count, frames)
        except InvalidFrame as error:
            self.error = error
            self._drop_partial()
        return frames

    def feed(self, data: Buffer) -> list[Frame]:
        """Take `data`, however long; for whoever has bytes at hand instead of a socket."""
        frames: list[Frame] = []
        view = memoryview(data)
        while view and self.error is None:
            target = self.writable()
            count = min(len(target), len(view))
            target[:count] = view[:count]
            frames += self.advance(count)
            view = view[count:]
        return frames

    def _read_scratch(self, end: int, frames: list[Frame]) -> None:
        scratch = self._scratch
        frame_bytes_max, header_bytes_max = self._frame_bytes_max, self._header_bytes_max
        start = self._complete_partial(scratch[:end], frames) if self._needed else 0
        while end - start >= PREFIX_BYTES:
            length, checksum, kind, flags, operation, header_bytes, frame_id = _unpack_prefix(
                scratch, start
            )
            payload_at = _HEADER_AT + (header_bytes + 7 & ~7)
            body_bytes = length - UNCHECKED_BYTES
            if (
                length > frame_bytes_max
                or header_bytes > header_bytes_max
                or payload_at > body_bytes
            ):
                self._check_lengths(length, header_bytes)
            if end - start < length:
                break
            # From the checked bytes on: 16 bytes of prefix, then header and payload.
            body = bytes(scratch[start + UNCHECKED_BYTES : start + length])
            if crc32c_of_bytes(body) != checksum:
                raise InvalidFrame("a frame's checksum does not match its bytes")
            start += length
            header = body[_HEADER_AT : _HEADER_AT + header_bytes]
            if payload_at < body_bytes:
                payload = memoryview(body)[payload_at:]
                frames.append(Frame(kind, flags, operation, frame_id, header, payload))
            else:
                frames.append(Frame(kind, flags, operation, frame_id, header))
        if start < end:
            self._partial = bytearray(PREFIX_BYTES)
            self._needed = PREFIX_BYTES
            self._complete_partial(scratch[start:end], frames)

    def _complete_partial(self, data: memoryview, frames: list[Frame]) -> int:
        """Put the front of `data` where it is missing; return how much of it was taken."""
        taken = 0
        while self._needed and taken < len(data):
            count = min(len(self._partial) - self._filled, len(data) - taken)
            self._partial[self._filled : self._filled + count] = data[taken : taken + count]
            self._filled += count
            taken += count
            self._finish_or_grow(frames)
        return taken

    def _finish_or_grow(self, frames: list[Frame]) -> None:
        """Act upon a full `_partial`: read the length, make more room, or take the frame out."""
        if self._filled < len(self._partial):
            return
        if self._needed == PREFIX_BYTES:
            length, _, _, _, _, header_bytes, _ = PREFIX.unpack(self._partial)
            self._check_lengths(length, header_bytes)
            self._needed = length
        if self._filled < self._needed:
            room = min(self._needed, max(_GROWTH_BYTES, 2 * self._filled))
            # A new one, because views of the old one may still be around.
            self._partial = self._partial + bytes(room - self._filled)
            return
        frames.append(_whole_frame(self._partial))
        self._drop_partial()

    def _check_lengths(self, length: int, header_bytes: int) -> None:
        if length > self._frame_bytes_max:
            raise FrameTooLarge(
                f"a frame of {length} bytes was announced, frame_bytes_max is "
                f"{self._frame_bytes_max}; is the other side an Angarium node or client?"
            )
        if header_bytes > self._header_bytes_max:
            raise FrameTooLarge(
                f"a header of {header_bytes} bytes was announced, header_bytes_max is "
                f"{self._header_bytes_max}"
            )
        if payload_start(header_bytes) > length:
            raise InvalidFrame(f"a header of {header_bytes} bytes in a frame of {length} bytes")

    def _drop_partial(self) -> None:
        self._partial = bytearray()
        self._filled = self._needed = 0


def _whole_frame(data: bytearray) -> Frame:
    view = memoryview(data).toreadonly()
    _, checksum, kind, flags, operation, header_bytes, frame_id = PREFIX.unpack_from(view)
    if crc32c(view[UNCHECKED_BYTES:]) != checksum:
        raise InvalidFrame("a frame's checksum does not match its bytes")
    header = bytes(view[PREFIX_BYTES : PREFIX_BYTES + header_bytes])
    return Frame(kind, flags, operation, frame_id, header, view[payload_start(header_bytes) :])
