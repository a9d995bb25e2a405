"""msgpack values that follow each other without lengths, as Serf's agent sends them.

Texts and binaries are bytes here: agents built with an older library write both alike, and what
somebody has put into a tag need not be UTF-8. Whatever the bytes are, nothing is allocated beyond
what has arrived, and what arrives is bounded.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

DEPTH_MAX: Final = 16
"""Values that lie deeper inside each other are refused; Serf's lie four deep."""

PARTS_MAX: Final = 100_000
"""Values inside one value, with those inside them. Reading as many takes a tenth of a second."""


class _Shape(NamedTuple):
    """What follows a value's first byte."""

    width: int = 0
    """Bytes that hold a count."""
    body: int = 0
    """Bytes behind that; those that are counted come on top."""
    inside: int = 0
    """Values inside it."""
    each: int = 0
    """Values inside it for each that is counted; 0: bytes are counted."""


_MAPS: Final = frozenset((*range(0x80, 0x90), 0xDE, 0xDF))
_CONTAINERS: Final = _MAPS | {*range(0x90, 0xA0), 0xDC, 0xDD}

_CONSTANTS: Final[dict[int, object]] = {
    **{tag: tag for tag in range(0x80)},
    **{tag: tag - 0x100 for tag in range(0xE0, 0x100)},
    0xC0: None,
    0xC2: False,
    0xC3: True,
}

_NUMBERS: Final = dict(zip(range(0xCA, 0xD4), "fdBHIQbhiq", strict=True))
"""Numbers, by how the standard library unpacks them."""

_SHAPES: Final = {
    **dict.fromkeys(_CONSTANTS, _Shape()),
    **{0x80 + count: _Shape(inside=2 * count) for count in range(16)},
    **{0x90 + count: _Shape(inside=count) for count in range(16)},
    **{0xA0 + count: _Shape(body=count) for count in range(32)},
    **{tag: _Shape(body=struct.calcsize(f">{kind}")) for tag, kind in _NUMBERS.items()},
    **{0xD4 + power: _Shape(body=1 + (1 << power)) for power in range(5)},  # extensions
    **{0xC4 + power: _Shape(width=1 << power) for power in range(3)},  # binaries
    **{0xC7 + power: _Shape(width=1 << power, body=1) for power in range(3)},  # extensions
    **{0xD9 + power: _Shape(width=1 << power) for power in range(3)},  # texts
    **{0xDC + power: _Shape(width=2 << power, each=1) for power in range(2)},
    **{0xDE + power: _Shape(width=2 << power, each=2) for power in range(2)},
}
"""By the first byte. There is one that no value begins with: 0xC1."""


class UnreadableValue(ValueError):
    """These bytes are no msgpack, or more than was allowed."""


class Unpacker:
    """Takes bytes as they come, gives values once they are whole."""

    def __init__(self, *, value_bytes_max: int) -> None:
        self._bytes_max = value_bytes_max
        self._buffer = bytearray()
        self._scanned = 0
        """How far the first value was looked at: each byte is looked at once, however it comes."""
        self._pending = 1
        """How many values, inside each other, are missing from there on."""
        self._parts = 0

    def feed(self, data: bytes) -> None:
        """Take bytes; raises `UnreadableValue` if more wait than one value may have."""
        self._buffer += data
        if len(self._buffer) > self._bytes_max:
            raise UnreadableValue(f"a value longer than {self._bytes_max} bytes")

    def take(self) -> tuple[object] | None:
        """Return the next value, alone in a tuple; None until there is a whole one."""
        while self._pending:
            head = _head(self._buffer, self._scanned)
            if head is None or head.end > len(self._buffer):
                return None
            self._scanned = head.end
            self._pending += head.inside - 1
            self._parts += 1
            if self._parts + self._pending > PARTS_MAX:
                raise UnreadableValue(f"a value of more than {PARTS_MAX} parts")
        whole = bytes(self._buffer[: self._scanned])
        del self._buffer[: self._scanned]
        self._scanned, self._pending, self._parts = 0, 1, 0
        return (_value(whole, 0, DEPTH_MAX)[0],)


class _Head(NamedTuple):
    """A value without those inside it."""

    body: int
    """Where its content begins."""
    end: int
    inside: int


def _head(data: bytes | bytearray, at: int) -> _Head | None:
    """Return what begins at `at`; None if too little is there to tell."""
    if at >= len(data):
        return None
    shape = _SHAPES.get(data[at])
    if shape is None:
        raise UnreadableValue("what is no msgpack")
    body = at + 1 + shape.width
    if body > len(data):
        return None
    count = int.from_bytes(data[at + 1 : body], "big")
    if shape.each:
        return _Head(body, body, shape.each * count)
    return _Head(body, body + shape.body + count, shape.inside)


def _value(data: bytes, at: int, depth: int) -> tuple[object, int]:
    """Return the value at `at`, which is whole, and where the next one begins."""
    if not depth:
        raise UnreadableValue(f"values more than {DEPTH_MAX} deep inside each other")
    head = _head(data, at)
    assert head is not None, "only whole values come here"
    tag, end = data[at], head.end
    if tag not in _CONTAINERS:
        return _scalar(tag, data[head.body : end]), end
    values: list[object] = []
    for _ in range(head.inside):
        value, end = _value(data, end, depth - 1)
        values.append(value)
    return (_mapped(values) if tag in _MAPS else values), end


def _scalar(tag: int, body: bytes) -> object:
    if tag in _CONSTANTS:
        return _CONSTANTS[tag]
    return struct.unpack(f">{_NUMBERS[tag]}", body)[0] if tag in _NUMBERS else body


def _mapped(values: list[object]) -> dict[object, object]:
    if not all(isinstance(one, bytes | int) for one in values[::2]):
        raise UnreadableValue("a map whose keys are neither texts nor numbers")
    return dict(zip(values[::2], values[1::2], strict=True))
