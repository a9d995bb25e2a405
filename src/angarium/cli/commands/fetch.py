"""`angarium fetch`: records by their offset."""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from angarium.cli.record_lines import RecordPrinter
from angarium.cli.session import talk
from angarium.errors import OffsetOutOfRange

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.cli.profiles import Choices
    from angarium.client import Client


def run(options: Namespace) -> int:
    """Print up to `--max` records; none, and no error, at the end of the partition.

    For one record that is gone it says why.
    """

    async def work(client: Client, chosen: Choices) -> int:
        printer = RecordPrinter(chosen.format)
        offset = options.offset
        while printer.count < options.max:
            records = await client.fetch(options.topic, options.partition, offset)
            if options.max == 1 and (not records or records[0].offset != offset):
                await _complain(client, options)
            if not records:
                if not printer.count:
                    where = f"{options.topic}/{options.partition}@{offset}"
                    print(f"There is nothing at {where} yet.", file=sys.stderr)
                break
            printer.print_all(islice(records, options.max - printer.count))
            assert records[-1].offset is not None, "what is fetched is stored"
            offset = records[-1].offset + 1
        return 0

    return talk(options, work)


async def _complain(client: Client, options: Namespace) -> None:
    """Raise why the one record asked for did not come, unless it has not been written yet."""
    with suppress(OffsetOutOfRange):
        await client.fetch_one(options.topic, options.partition, options.offset)
