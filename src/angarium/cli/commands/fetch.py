"""`angarium fetch`: records by their offset."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from angarium.cli.records import RecordPrinter
from angarium.cli.session import talk

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.cli.profiles import Choices
    from angarium.client import Client


def run(options: Namespace) -> int:
    """Print up to `--max` records; none, and no error, at the end of the partition."""

    async def work(client: Client, chosen: Choices) -> int:
        printer = RecordPrinter(chosen.format)
        offset = options.offset
        while printer.count < options.max:
            records = await client.fetch(options.topic, options.partition, offset)
            if not records:
                break
            printer.print_all(islice(records, options.max - printer.count))
            assert records[-1].offset is not None, "what is fetched is stored"
            offset = records[-1].offset + 1
        return 0

    return talk(options, work)
