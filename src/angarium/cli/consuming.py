"""`angarium sub --group`: records of a consumer group, acknowledged as they are printed."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from angarium.api import Place, Start
from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import From

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.cli.records import RecordPrinter
    from angarium.client import Client, GroupRecord, StartLike

_PROMPT: Final = "ack, nack [REASON] or release? "


async def consume(client: Client, options: Namespace, printer: RecordPrinter) -> None:
    """Print records of a group until there are enough, or for ever."""
    if options.partition is not None or not options.follow:
        raise Refusal("--group shares what comes; it goes with neither --partition nor --no-follow")
    group = client.group(
        options.group, kind=options.kind, start=start_like(options.start or From("earliest"))
    )
    # What is printed is acknowledged; no more is taken than will be printed.
    credit = 1_000 if options.max is None else min(options.max, 1_000)
    credit = 1 if options.ack == "manual" else credit
    async with group.consume(*options.topics, credit=credit) as consumer:
        async for record in consumer:
            printer.print_all([record])
            if options.ack == "auto":
                record.ack_nowait()
            elif not await _decided(record):
                break
            if printer.count == options.max:
                break
        await consumer.flush()


def start_like(written: From) -> StartLike:
    """Return where to begin, in the client's words."""
    if written.place == "offset":
        return written.value
    if written.place == "timestamp":
        return Start(Place.TIMESTAMP, written.value)
    return written.place


async def _decided(record: GroupRecord) -> bool:
    """Ask what becomes of a record, and say so; False at the end of the input."""
    loop = asyncio.get_running_loop()
    while True:
        if sys.stdin.isatty():
            print(_PROMPT, end="", file=sys.stderr, flush=True)
        line = await loop.run_in_executor(None, sys.stdin.readline)
        if not line:
            return False  # what is in hand goes back untried
        word, _, reason = line.strip().partition(" ")
        if word == "ack":
            await record.ack()
        elif word == "nack":
            await record.nack(reason=reason)
        elif word == "release":
            await record.release()
        else:
            print(f"angarium: {word!r} is none of ack, nack, release", file=sys.stderr)
            continue
        return True
