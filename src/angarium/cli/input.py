"""Values on their way in: from arguments, files or standard input, as they become available.

A line is given on as soon as it is there, so that typing into `angarium pub` publishes line by
line; from a file or a fast program, as many as there are travel together.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from angarium.cli.complaints import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

STANDARD_INPUT: Final = "-"
"""What stands for standard input, among values as among files, as everywhere else on Unix."""

READ_BYTES: Final = 256 * 1024
"""Bytes read at a time, at most."""

LINE_BYTES_MAX: Final = 4 * 1024 * 1024
"""A longer line is refused: no batch would take it."""


async def values(
    arguments: Sequence[str], files: Sequence[str], *, whole: bool
) -> AsyncIterator[list[bytes]]:
    """Yield values, those together that were there at the same time."""
    with ExitStack() as stack:
        for is_standard_input, some in groupby(arguments, STANDARD_INPUT.__eq__):
            if is_standard_input:
                async for found in _read(sys.stdin.buffer, whole=whole):
                    yield found
            else:
                yield [argument.encode("utf-8", "surrogateescape") for argument in some]
        for name in files or (() if arguments else (STANDARD_INPUT,)):
            async for found in _read(_opened(name, stack), whole=whole):
                yield found


async def lines(source: BinaryIO) -> AsyncIterator[list[bytes]]:
    """Yield lines without their ends, as many as one read gives; the last may lack its end."""
    rest = b""
    async for chunk in _chunks(source):
        found = (rest + chunk).split(b"\n")
        rest = found.pop()
        if len(rest) > LINE_BYTES_MAX:
            raise Refusal(
                f"a line is longer than {LINE_BYTES_MAX} bytes; --whole sends a file as it is"
            )
        if found:
            yield [line.removesuffix(b"\r") for line in found]
    if rest:
        yield [rest]


async def _read(source: BinaryIO, *, whole: bool) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a source as they come, or all of it as one value."""
    if whole:
        yield [b"".join([chunk async for chunk in _chunks(source)])]
        return
    async for found in lines(source):
        yield found


async def _chunks(source: BinaryIO) -> AsyncIterator[bytes]:
    """Yield what there is, as soon as it is there.

    The event loop itself waits for a person or another program, and never a thread: one that
    waits cannot be ended, and Ctrl-C would wait for it.
    """
    try:
        while True:
            await _is_there(source.fileno())
            chunk = os.read(source.fileno(), READ_BYTES)
            if not chunk:
                return
            yield chunk
    except (PermissionError, io.UnsupportedOperation):
        # A file on a disk, or none at all: neither lets anybody wait.
        while chunk := await asyncio.to_thread(source.read, READ_BYTES):
            yield chunk


async def _is_there(descriptor: int) -> None:
    """Wait until something can be read; `PermissionError` for a file, where that is always so."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    # Only while somebody waits: the loop would call again and again about what nobody takes.
    loop.add_reader(descriptor, tell)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def size_of(arguments: Sequence[str], files: Sequence[str]) -> int | None:
    """Return how many bytes there are to read, or None if nobody knows."""
    if arguments or STANDARD_INPUT in files or not files:
        return None
    return sum(Path(name).stat().st_size for name in files if Path(name).is_file())


def _opened(name: str, stack: ExitStack) -> BinaryIO:
    return (
        sys.stdin.buffer if name == STANDARD_INPUT else stack.enter_context(Path(name).open("rb"))
    )
