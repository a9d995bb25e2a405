"""A program that publishes numbered lines, and may be killed anywhere and started again.

python -m tests.delivery.numbering_worker NAME COUNT ADDRESS[,ADDRESS...]
"""

from __future__ import annotations

import asyncio
import sys

from angarium import Client

TOPIC = "lines"


async def main(name: str, count: int, addresses: list[str]) -> None:
    """Go on after the last number that every partition has; some are repeated, none is lost."""
    async with Client(*addresses, producer=name) as client:
        last = await client.last_sequences(TOPIC)
        first = min(-1 if one is None else one for one in last.values()) + 1
        for number in range(first, count):
            await client.publish_once(TOPIC, str(number), key=str(number * 7), sequence=number)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")))
