"""One consumer as a process of its own, which writes down whatever it does before it does it.

    python -m angarium.testing.cluster.group_member SETTINGS

SETTINGS is JSON, see `MemberSettings`. Each line of its diary is one event: a delivery that was
begun, one that is about to be settled, one whose settlement is committed. The lines survive a
SIGKILL: the system has them as soon as they are written.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvloop

from angarium.api import GroupConfig
from angarium.app.parent import die_with
from angarium.client import Client
from angarium.errors import AngariumError
from angarium.kinds import GroupKind

if TYPE_CHECKING:
    from angarium.client.groups.group_records import GroupBatch


class MemberSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who it is and how it behaves."""

    servers: tuple[str, ...]
    topic: str
    group: str
    kind: GroupKind
    config: GroupConfig
    diary: str
    parent: int
    credit: int = 1_000
    fail_share: float = 0.0
    """The share of records that it says it failed with."""
    poison_every: int = 0
    """Records whose number is a multiple of this always fail; 0: none."""
    work_ms: int = 0
    """How long it works on each delivery before it settles it."""
    seed: int = 0


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One line of a diary."""

    what: str
    """`took`: a delivery; `acks`: about to acknowledge; `acked`: committed; `nacks`: about to."""
    at: int
    """Microseconds of a clock that all processes of the machine share and that never goes back."""
    partition: int
    attempt: int
    offsets: list[int]
    numbers: list[int]
    """The records' values, which are numbers."""


async def consume(settings: MemberSettings) -> None:
    """Take part until killed."""
    chance = random.Random(settings.seed)
    diary = os.open(settings.diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(what: str, batch: GroupBatch, offsets: list[int], numbers: list[int]) -> None:
        at = time.monotonic_ns() // 1_000
        event = Event(what, at, batch.partition, batch.attempt, offsets, numbers)
        os.write(diary, msgspec.json.encode(event) + b"\n")

    async with Client(*settings.servers) as client:
        group = client.group(settings.group, kind=settings.kind, config=settings.config)
        async for batch in group.consume_batches(settings.topic, credit=settings.credit):
            offsets = [int(one) for one in batch.offsets()]
            numbers = [int(value or b"-1") for value in batch.values()]
            write("took", batch, offsets, numbers)
            await asyncio.sleep(settings.work_ms / 1_000)
            good: list[tuple[int, int]] = []
            bad: list[tuple[int, int]] = []
            for offset, number in zip(offsets, numbers, strict=True):
                every = settings.poison_every
                fails = (every and number % every == 0) or chance.random() < settings.fail_share
                (bad if fails else good).append((offset, number))
            try:
                if good:
                    ends, values = [one for one, _ in good], [one for _, one in good]
                    write("acks", batch, ends, values)
                    await batch.ack(None if not bad else ends)
                    write("acked", batch, ends, values)
                if bad:
                    ends, values = [one for one, _ in bad], [one for _, one in bad]
                    write("nacks", batch, ends, values)
                    await batch.nack(reason="as it was told", offsets=ends)
            except AngariumError as error:
                # Another's by now, or not known: it comes again wherever it has to.
                print(f"{error.code}: {error}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Run one member."""
    settings = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=MemberSettings)
    if not die_with(settings.parent):
        return 1
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(consume(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
