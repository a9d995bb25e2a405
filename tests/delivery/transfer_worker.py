"""A program that moves records from one topic to another, exactly once, and may be killed anywhere.

    python -m tests.delivery.transfer_worker NAME ADDRESS[,ADDRESS...]

It takes what its group has not settled yet, a few records at a time, and publishes their image and
acknowledges them in one transaction. Several of these want the same records: whoever comes second
is refused, or ended, by the partition's leader.
"""

from __future__ import annotations

import asyncio
import random
import sys

from angarium import Client, ClientSettings
from angarium.api.transactions import Position
from angarium.errors import (
    AngariumError,
    GroupFenced,
    OffsetOutOfRange,
    OutcomeUnknown,
    ProducerFenced,
    TransactionAborted,
)
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import SettledByHeader

GROUP = "angarium.transfer"
"""A group without members: nobody hands its records out, everybody may take them."""

INPUT, OUTPUT = "input", "output"
AT_ONCE = 20


def image(value: bytes) -> bytes:
    """Return what a record becomes."""
    return b"image of " + value


async def position(client: Client, partition: int) -> Position:
    """Return what the group has settled."""
    frame = await client._reach.calls.ask(
        Operation.SETTLED_BY, SettledByHeader(GROUP, INPUT, partition), partition=(INPUT, partition)
    )
    return frame.read(Position)


def is_settled(found: Position, offset: int) -> bool:
    """Tell whether an offset is settled."""
    inside = any(
        start <= offset < end
        for start, end in zip(found.ranges[::2], found.ranges[1::2], strict=True)
    )
    return offset < found.floor or inside


async def work(client: Client, partition: int, rng: random.Random) -> bool:
    """Move some records; False if there were none."""
    found = await position(client, partition)
    start = int(found.floor)
    # Somewhere else each time, so that workers meet, but not always.
    start += rng.choice((0, 0, AT_ONCE))
    records = [
        record
        for record in await client.fetch(INPUT, partition, start, records_max=AT_ONCE)
        if record.offset is not None and not is_settled(found, record.offset)
    ]
    if not records:
        return False
    async with client.transaction() as tx:
        for record in records:
            assert record.offset is not None
            await tx.publish(OUTPUT, image(record.value or b""), key=record.key)
            tx.acknowledge(
                GROUP,
                INPUT,
                partition,
                (record.offset, record.offset + 1),
                generation=found.generation,
            )
    return True


async def main(name: str, addresses: list[str]) -> None:
    """Move records until killed."""
    rng = random.Random()
    settings = ClientSettings(publish_timeout_s=5.0, request_timeout_s=5.0)
    async with Client(*addresses, producer=name, settings=settings) as client:
        partitions = len((await client.describe_topic(INPUT)).partitions)
        while True:
            try:
                if not await work(client, rng.randrange(partitions), rng):
                    await asyncio.sleep(0.02)
            except ProducerFenced:
                return
            # Near the end "somewhere else" may lie behind it.
            except (GroupFenced, OffsetOutOfRange, OutcomeUnknown, TransactionAborted):
                continue
            except AngariumError as error:
                if not error.retriable:
                    raise
                await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2].split(",")))
