"""`angarium sub --group`: records of a consumer group, acknowledged as they are printed."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from angarium.api import Start, StartAt
from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import From
from angarium.cli.input import lines

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import AsyncGenerator

    from angarium.cli.record_lines import RecordPrinter
    from angarium.client import Client, GroupRecord, StartLike

_PROMPT: Final = "ack, nack [REASON], reject [REASON] or release? "


async def consume(client: Client, options: Namespace, printer: RecordPrinter) -> None:
    """Print records of a group until there are enough, or for ever."""
    if options.partition is not None or not options.follow:
        raise Refusal("--group cannot be combined with --partition or --no-follow")
    group = client.group(
        options.group, kind=options.kind, start=start_like(options.start or From("earliest"))
    )
    # What is printed is acknowledged; no more is taken than will be printed.
    credit = 1_000 if options.max is None else min(options.max, 1_000)
    credit = 1 if options.ack == "manual" else credit
    async with (
        group.consume(*options.topics, credit=credit) as consumer,
        aclosing(_words()) as words,
    ):
        async for record in consumer:
            printer.print_all([record])
            if options.ack == "auto":
                record.ack_nowait()
            elif not await _decided(record, words):
                break
            if printer.count == options.max:
                break
        await consumer.flush()


def start_like(written: From) -> StartLike:
    """Return where to begin, in the client's words."""
    if written.at == "offset":
        return written.value
    if written.at == "timestamp":
        return Start(StartAt.TIMESTAMP, written.value)
    return written.at


async def _words() -> AsyncGenerator[str, None]:
    """Yield the lines that somebody writes."""
    async for some in lines(sys.stdin.buffer):
        for line in some:
            yield line.decode(errors="replace")


async def _decided(record: GroupRecord, words: AsyncGenerator[str, None]) -> bool:
    """Ask what becomes of a record, and say so; False at the end of the input."""
    while True:
        if sys.stdin.isatty():
            print(_PROMPT, end="", file=sys.stderr, flush=True)
        line = await anext(words, None)
        if line is None:
            return False  # what is in hand goes back untried
        word, _, reason = line.strip().partition(" ")
        if word == "ack":
            await record.ack()
        elif word == "nack":
            await record.nack(reason=reason)
        elif word == "reject":
            await record.reject(reason)
        elif word == "release":
            await record.release()
        else:
            print(f"angarium: {word!r} is not one of ack, nack, reject, release", file=sys.stderr)
            continue
        return True
