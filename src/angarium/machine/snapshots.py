"""How a machine's state is written, in slices, while the machine moves on.

A snapshot is a row of frames, each a kind, a length and msgpack. The first one holds the numbers,
the last one says that nothing is missing. Tables follow in frames of a bounded number of rows, so
that encoding one never takes longer than a few milliseconds, however large the state.

What is written is the state at the moment the snapshot was begun: tables of immutable rows are
copied then (a flat copy, at memory speed), and a consumer group is copied when it is first changed
after that moment.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from angarium.errors import CorruptData, NewerRelease

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from angarium.ids import Buffer

FORMAT: Final = 1
"""The version of this form. A snapshot of another version is refused, not guessed at."""

ROWS_PER_FRAME: Final = 1_000
"""Rows encoded at once: under 2 ms for the largest kind of row."""

_FRAME: Final = Struct("<BI")
_encode = msgspec.msgpack.Encoder().encode

T = TypeVar("T")


class Part(IntEnum):
    """What a frame holds. Numbers are for ever."""

    HEADER = 0
    PRODUCERS = 1
    NAMED_PRODUCERS = 2
    SERIES = 3
    STAGES = 4
    DECISIONS = 5
    GROUPS = 6
    GROUP_BITMAPS = 7
    GROUP_ATTEMPTS = 8
    GROUP_INTENTS = 9
    KEYS = 10
    NODES = 20
    TOPICS = 21
    PARTITIONS = 22
    NAMED = 23
    USERS = 24
    ROLES = 25
    GRANTS = 26
    TOKENS = 27
    QUOTAS = 32
    JOIN_TOKENS = 33
    RECOVERIES = 50
    PREDECESSORS = 51
    REMOVED = 52
    DECOY_KEY = 53
    END = 255


def frame(part: Part, content: object) -> bytes:
    """Return a part's kind, the length of its payload, and the payload."""
    payload = _encode(content)
    return _FRAME.pack(part, len(payload)) + payload


def table_frames(part: Part, rows: Iterable[Any]) -> Iterator[bytes]:
    """Yield the frames of a table, none of them long. Rows are fetched as they are needed."""
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_PER_FRAME)):
        yield frame(part, chunk)


def frames(data: Buffer) -> Iterator[tuple[Part, memoryview]]:
    """Yield the frames of a snapshot; raises `CorruptData` unless it is whole."""
    view = memoryview(data)
    at, part = 0, None
    while at < len(view):
        if part is Part.END:
            raise CorruptData("a snapshot goes on after its end")
        if len(view) - at < _FRAME.size:
            raise CorruptData("a snapshot ends inside a frame")
        kind, length = _FRAME.unpack_from(view, at)
        at += _FRAME.size
        if length > len(view) - at:
            raise CorruptData("a snapshot ends inside a frame")
        try:
            part = Part(kind)
        except ValueError:
            raise CorruptData(f"no part of a snapshot has the kind {kind}") from None
        yield part, view[at : at + length]
        at += length
    if part is not Part.END:
        raise CorruptData("a snapshot ends too early")


def decoded(decoder: msgspec.msgpack.Decoder[T], payload: Buffer) -> T:
    """Return the content of a frame; raises `CorruptData`."""
    try:
        return decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError) as error:
        raise CorruptData(f"a snapshot's frame is damaged: {error}") from None


def check_format(version: int) -> None:
    """Raise unless a snapshot of this version can be read: `NewerRelease`, or `CorruptData`."""
    if version > FORMAT:
        raise NewerRelease(
            f"a state of version {version}, written by a newer release; this one knows {FORMAT}"
        )
    if version != FORMAT:
        raise CorruptData(f"no state of a machine has version {version}")


def joined(slices: Iterable[bytes]) -> bytes:
    """Return a whole snapshot at once."""
    return b"".join(slices)
