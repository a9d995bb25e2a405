"""`angarium pub`: values in, acknowledgements out."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import NO_LIMIT
from angarium.cli.guesses import nearest
from angarium.cli.input import STANDARD_INPUT, size_of, values
from angarium.cli.output import print_json_line
from angarium.cli.progress import Progress
from angarium.cli.session import talk
from angarium.errors import NotFound
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from angarium.api import Ack
    from angarium.cli.profiles import Choices
    from angarium.client import Client

MILLISECOND_MICROS: Final = 1_000

TURNS_PER_SECOND: Final = 20
"""With `--rate`, records leave this often, an equal share each time."""


def run(options: Namespace) -> int:
    """Publish everything, then say what became of it."""

    if options.null and (options.values or options.file or options.key is None):
        raise Refusal("--null is one record for a --key; it goes with no values and no file")

    async def work(client: Client, chosen: Choices) -> int:
        publishing = _Publishing(client, options)
        if options.null:
            tally = Tally(is_each_shown=True)
            tally.take(await publishing.publish([None]))
            if not options.quiet:
                tally.print(chosen, Progress(total_bytes=0, quiet=True))
            return 0
        total = size_of(options.values, options.file)
        progress = Progress(total_bytes=total, quiet=options.quiet)
        # Nobody knows how much comes from standard input: of that, only the sums are told.
        is_each_shown = bool(options.values) and STANDARD_INPUT not in options.values
        tally = Tally(is_each_shown=is_each_shown)
        try:
            async for found in values(options.values, options.file, whole=options.whole):
                for some in publishing.shares(found):
                    await publishing.pace(len(some))
                    tally.take(await publishing.publish(some))
                    # A line's end counts, too: the total is that of the file.
                    progress.add(len(some), sum(map(len, some)) + len(some))
        finally:
            progress.close()
        if not options.quiet:
            tally.print(chosen, progress)
        return 0

    return talk(options, work)


class _Publishing:
    """How this call of `pub` publishes."""

    def __init__(self, client: Client, options: Namespace) -> None:
        self._client = client
        self._options = options
        self._headers = [(name, value.encode()) for name, value in options.headers]
        self._mode = DeliveryMode[options.mode.upper()] if options.mode else None
        self._due = 0.0
        self._has_begun = False

    def shares(self, found: list[bytes]) -> Iterator[list[bytes]]:
        """Cut what was read into what may leave at once."""
        rate = self._options.rate
        share = len(found) if rate is None else max(1, rate // TURNS_PER_SECOND)
        for start in range(0, len(found), max(1, share)):
            yield found[start : start + share]

    async def pace(self, count: int) -> None:
        """Wait until so many records may leave."""
        if self._options.rate is None:
            return
        now = asyncio.get_running_loop().time()
        # Time that was lost is not made up for: at most this many per second means just that.
        self._due = max(self._due, now)
        await asyncio.sleep(self._due - now)
        self._due += count / self._options.rate

    async def publish(self, found: Sequence[bytes | None]) -> tuple[Ack, ...]:
        """Publish some records; one acknowledgement per batch they were packed into."""
        if self._has_begun:
            return await self._send(found)
        self._has_begun = True
        topic = self._options.topic
        known = await _topics_instead_of(self._client, topic)
        try:
            acks = await self._send(found)
        except NotFound as error:
            if near := nearest(topic, known):
                error.add_note(f"Did you mean {near}?")
            raise
        if known is not None and not self._options.quiet:
            _tell_made(topic, near=nearest(topic, known))
        return acks

    async def _send(self, found: Sequence[bytes | None]) -> tuple[Ack, ...]:
        keys, contents = self._keyed(found)
        now = time.time_ns() // 1_000
        times = {
            name: now + span * MILLISECOND_MICROS
            for name, span in (
                ("deliver_at", self._options.delay),
                ("expires_at", self._options.expires_in),
            )
            if span is not None and span != NO_LIMIT
        }
        return await self._client.publish_batch(
            self._options.topic,
            contents,
            keys=keys,
            headers=[self._headers] * len(found) if self._headers else None,
            partition=self._options.partition,
            mode=self._mode,
            **times,
        )

    def _keyed(
        self, found: Sequence[bytes | None]
    ) -> tuple[list[bytes] | None, Sequence[bytes | None]]:
        separator = self._options.key_separator
        if separator is None:
            key = self._options.key
            return (None if key is None else [key.encode()] * len(found)), found
        parts = [(line or b"").partition(separator.encode()) for line in found]
        if not all(middle for _, middle, _ in parts):
            raise Refusal(f"a line has no {separator!r} between key and value")
        return [key for key, _, _ in parts], [value for _, _, value in parts]


async def _topics_instead_of(client: Client, topic: str) -> list[str] | None:
    """Return the topics there are, if `topic` is none of them; None if it is there."""
    try:
        await client.describe_topic(topic)
    except NotFound:
        return [one.name for one in await client.list_topics()]
    return None


def _tell_made(topic: str, *, near: str | None) -> None:
    """Say that publishing made a topic: who mistyped a name would look for the records for long."""
    guess = f"; did you mean {near}?" if near else "."
    print(
        f"angarium: there was no topic {topic!r}: publishing created it, with one partition{guess}"
        f" `angarium topic delete {topic}` deletes it.",
        file=sys.stderr,
    )


@dataclass(slots=True)
class Tally:
    """What became of all records."""

    is_each_shown: bool
    """Show where each batch went; otherwise only the sums."""
    acks: list[Ack] = field(default_factory=list)
    batches: int = 0
    by_partition: dict[int, list[int]] = field(default_factory=dict)
    """First and next offset of what went to each partition."""

    def take(self, acks: tuple[Ack, ...]) -> None:
        """Count some answers."""
        self.batches += len(acks)
        for ack in acks:
            if self.is_each_shown:
                self.acks.append(ack)
            if ack.base_offset is None or ack.next_offset is None:
                continue
            ends = self.by_partition.setdefault(ack.partition, [ack.base_offset, 0])
            ends[1] = ack.next_offset

    def print(self, chosen: Choices, progress: Progress) -> None:
        """Tell."""
        if self.is_each_shown:
            for ack in self.acks:
                if chosen.is_json:
                    print_json_line(ack_json(ack))
                else:
                    print(ack_line(ack))
            return
        if chosen.is_json:
            print_json_line(self._summary(progress))
            return
        rate = progress.records / max(progress.seconds, 1e-9)
        records = "1 record" if progress.records == 1 else f"{progress.records:,} records"
        print(f"{records} in {progress.seconds:.1f} s ({rate:,.0f}/s)")
        for partition, (first, after) in sorted(self.by_partition.items()):
            print(f"  partition {partition}: offsets {first} to {after - 1}")

    def _summary(self, progress: Progress) -> dict[str, Any]:
        return {
            "records": progress.records,
            "batches": self.batches,
            "seconds": round(progress.seconds, 3),
            "partitions": {
                str(partition): {"first_offset": first, "next_offset": after}
                for partition, (first, after) in sorted(self.by_partition.items())
            },
        }


def ack_json(ack: Ack) -> dict[str, Any]:
    """Return an acknowledgement for JSON."""
    found: dict[str, Any] = {
        "topic": ack.topic,
        "partition": ack.partition,
        "mode": ack.mode.name.lower(),
    }
    if ack.mode is DeliveryMode.PERFORMANCE:
        return found | {"id": ack.id, "subscribers": ack.subscribers}
    return found | {
        "offset": ack.base_offset,
        "next_offset": ack.next_offset,
        "append_time": ack.append_time,
        "provisional": ack.provisional,
    }


def ack_line(ack: Ack) -> str:
    """Return an acknowledgement for a person."""
    mode = ack.mode.name.lower()
    if ack.mode is DeliveryMode.PERFORMANCE:
        return f"{ack.topic}/{ack.partition} {ack.id} {mode}, {ack.subscribers} subscribers"
    if ack.base_offset is None or ack.next_offset is None:
        return f"{ack.topic}/{ack.partition} {mode}, stored before"
    last = ack.next_offset - 1
    offsets = f"{ack.base_offset}" if last == ack.base_offset else f"{ack.base_offset}-{last}"
    provisional = ", provisional" if ack.provisional else ""
    return f"{ack.topic}/{ack.partition}@{offsets} {mode}{provisional}"
