"""Frames of a WebSocket as they usually are, read and written without looking at anything else.

A client sends small texts, each whole in one frame. Those are taken out of what comes; every other
frame (parts of a message, pings, goodbyes, and whatever breaks RFC 6455) is left to wsproto, whole.
"""

from __future__ import annotations

from typing import Final

from angarium.wire.flooding.bounds import FRAMES_PER_TURN

_WHOLE_TEXT: Final = 0x81
_MASKED: Final = 0x80
_LAST: Final = 0x80
_OPCODE: Final = 0x0F
_TEXTS: Final = (0x0, 0x1)
"""Opcodes of a text, and of what continues one."""
_CONTROLS: Final = (0x8, 0x9, 0xA)
_CONTROL_BYTES_MAX: Final = 125
_SHORT: Final = 126
"""Lengths from here on have two bytes of their own, and from `1 << 16` on eight."""


class MessageTooBig(Exception):
    """A frame says that it is longer than a message may be."""


class FrameCutter:
    """Cuts what comes from one client into whole texts, and frames for wsproto."""

    __slots__ = ("_is_within", "_left", "bytes_max")

    def __init__(self, *, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        """What a frame may have."""
        self._left = bytearray()
        """What was not cut: frames that wait, and the beginning of one that has not come to its
        end."""
        self._is_within = False
        """Whether a message has begun in parts, and its last part has not come."""

    def keep(self, data: bytes) -> None:
        """Take bytes, and cut them later."""
        self._left += data

    def cut(self, data: bytes = b"", *, frames_max: int = FRAMES_PER_TURN) -> list[str | bytes]:
        """Take bytes; return texts, and frames for wsproto; raises `MessageTooBig`.

        With `frames_max` of them there may be more in what is kept.
        """
        left = self._left
        left += data
        found: list[str | bytes] = []
        at, size = 0, len(left)
        while size - at > 1 and len(found) < frames_max:
            first, second = left[at], left[at + 1]
            opcode, length, body = first & _OPCODE, second & 0x7F, at + 2
            if length >= _SHORT:
                body += 2 if length == _SHORT else 8
                if size < body:
                    break
                length = int.from_bytes(left[at + 2 : body])
            if opcode not in _TEXTS and (opcode not in _CONTROLS or length > _CONTROL_BYTES_MAX):
                # It breaks the rules, or ours: wsproto says which, at once.
                found.append(bytes(left[at:]))
                left.clear()
                return found
            if length > self.bytes_max:
                raise MessageTooBig
            body += 4 if second & _MASKED else 0
            end = body + length
            if size < end:
                break
            text = None
            if first == _WHOLE_TEXT and second & _MASKED and not self._is_within:
                text = _text(left[body:end], left[body - 4 : body])
            elif opcode in _TEXTS:
                self._is_within = not first & _LAST
            found.append(bytes(left[at:end]) if text is None else text)
            at = end
        del left[:at]  # which moves nothing: bytes that dribble in are not copied again and again
        return found


def _text(masked: bytearray, mask: bytearray) -> str | None:
    """Return a text that was masked; None if it is none."""
    size = len(masked)
    key = (mask * (size // 4 + 1))[:size]
    data = (int.from_bytes(masked, "little") ^ int.from_bytes(key, "little")).to_bytes(
        size, "little"
    )
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def text_frame(text: bytes) -> bytes:
    """Return a text as the server's side sends it."""
    size = len(text)
    if size < _SHORT:
        return b"\x81%c%b" % (size, text)
    if size < 1 << 16:
        return b"\x81\x7e%b%b" % (size.to_bytes(2), text)
    return b"\x81\x7f%b%b" % (size.to_bytes(8), text)
