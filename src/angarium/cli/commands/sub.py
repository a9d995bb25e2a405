"""`angarium sub`: topics as they grow, or as they are now."""

from __future__ import annotations

import fnmatch
import sys
from contextlib import aclosing
from itertools import islice
from typing import TYPE_CHECKING, Final

from angarium.cli.complaints import Refusal
from angarium.cli.consuming import consume, start_like
from angarium.cli.grammar.quantities import From
from angarium.cli.record_lines import RecordPrinter
from angarium.cli.session import talk

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import AsyncGenerator

    from angarium.cli.profiles import Choices
    from angarium.client import Client, ReceivedBatch, StartLike

_FROM_NOW_ON: Final = (
    "What is published from now on is shown; --from earliest begins with what is there."
)


def run(options: Namespace) -> int:
    """Print records until there are enough, or until the end, or for ever."""

    async def work(client: Client, chosen: Choices) -> int:
        printer = RecordPrinter(chosen.format)
        if options.group is not None:
            await consume(client, options, printer)
            return 0
        start = start_like(options.start or From("live" if options.follow else "earliest"))
        if options.follow:
            batches = _following(client, options.topics, start, is_told=options.start is None)
        else:
            batches = _standing(client, options.topics, start)
        async with aclosing(batches) as found:
            async for batch in found:
                if options.partition not in (None, batch.partition):
                    continue
                left = None if options.max is None else options.max - printer.count
                printer.print_all(islice(batch, left))
                if printer.count == options.max:
                    break
        return 0

    return talk(options, work)


async def _following(
    client: Client, topics: list[str], start: StartLike, *, is_told: bool
) -> AsyncGenerator[ReceivedBatch, None]:
    async with client.subscribe(*topics, start=start) as subscription:
        if is_told and sys.stdout.isatty():
            # Without a word it would look as if there were nothing, or nothing worked.
            print(_FROM_NOW_ON, file=sys.stderr)
        async for batch in subscription.batches():
            yield batch


async def _standing(
    client: Client, topics: list[str], start: StartLike
) -> AsyncGenerator[ReceivedBatch, None]:
    """Yield what the topics hold now, one after the other."""
    for topic in await _expanded(client, topics):
        async for batch in client.read_batches(topic, start=start):
            yield batch


async def _expanded(client: Client, topics: list[str]) -> list[str]:
    if not any(set("*?[") & set(topic) for topic in topics):
        return topics
    known = [topic.name for topic in await client.list_topics()]
    found = [
        name for name in known if any(fnmatch.fnmatchcase(name, pattern) for pattern in topics)
    ]
    if not found:
        raise Refusal(
            f"no topic matches {', '.join(topics)}; `angarium topic list` shows what is there"
        )
    return found
