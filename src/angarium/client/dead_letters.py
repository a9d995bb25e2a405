"""Dead letters: look at records that a group gave up, send them back once, or let them be.

A letter lies in a dead-letter topic with headers that say where it comes from and why. Whether it
was dealt with is the business of a group of the cluster's own on that topic: sending one back is a
transaction that publishes it to its old partition and acknowledges it for that group, so it happens
once, even if it is repeated or crashes. What the group has not acknowledged is listed, and
is the lag that `group describe angarium.redrive` shows.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api.transactions import Position
from angarium.client.headers import RecordHeaders
from angarium.client.records import Record
from angarium.errors import GroupFenced, InvalidArgument, NotFound, TransactionPending
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import SettledByHeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from angarium.client.client import Client
    from angarium.client.reach import Reach
    from angarium.client.transactions.transaction import Transaction

DEAD_LETTERS: Final = "angarium.dlq"
"""The topic that groups use unless they say otherwise."""

REDRIVE: Final = "angarium.redrive"
"""The group that keeps which letters were dealt with, and the series of its transactions."""

PREFIX: Final = "angarium-dlq-"

LETTERS_AT_ONCE: Final = 500
"""Letters in one transaction. If a redrive breaks off, those of whole transactions are done."""

ROUNDS_MAX: Final = 5
"""How often to look again because somebody else dealt with letters at the same time."""


class DeadLetter(msgspec.Struct, frozen=True):
    """A record that a group gave up."""

    record: Record
    """As it lies in the dead-letter topic; its key and value are the original's."""
    topic: str
    partition: int
    offset: int
    """Where it came from."""
    group: str
    attempts: int
    reason: str
    first_at: int
    last_at: int
    """When it was tried first and last, in microseconds since 1970."""
    is_whole: bool = True
    """False if only what is known about the record could be kept: it was gone, or too large."""

    @property
    def place(self) -> tuple[int, int]:
        """Where the letter itself is: partition and offset of the dead-letter topic."""
        assert self.record.offset is not None
        return self.record.partition, self.record.offset

    @property
    def headers(self) -> RecordHeaders:
        """The original's own headers."""
        return RecordHeaders(one for one in self.record.headers if not one[0].startswith(PREFIX))


class LetterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which letters are meant; everything that is given has to fit. Patterns know `*` and `?`."""

    topic: str | None = None
    """Where they came from, a pattern."""
    group: str | None = None
    """Who gave them up, a pattern."""
    reason: str | None = None
    """A part of the reason, whatever its case."""
    since: int | None = None
    until: int | None = None
    """When they were tried last, in microseconds since 1970: from, and before."""
    places: frozenset[tuple[int, int]] | None = None
    """Exactly these, by partition and offset in the dead-letter topic."""

    def fits(self, letter: DeadLetter) -> bool:
        """Tell whether a letter is meant."""
        return (
            (self.places is None or letter.place in self.places)
            and (self.topic is None or fnmatchcase(letter.topic, self.topic))
            and (self.group is None or fnmatchcase(letter.group, self.group))
            and (self.reason is None or self.reason.casefold() in letter.reason.casefold())
            and (self.since is None or letter.last_at >= self.since)
            and (self.until is None or letter.last_at < self.until)
        )


class Dealt(msgspec.Struct, frozen=True, kw_only=True):
    """What a redrive or a purge did, or with `dry_run` would have done."""

    letters: int = 0
    skipped: tuple[tuple[tuple[int, int], str], ...] = ()
    """Letters that were meant and could not be sent back, and why."""


class DeadLetters:
    """The letters of one dead-letter topic."""

    def __init__(self, client: Client, reach: Callable[[], Reach], topic: str) -> None:
        self._client = client
        self._reach = reach
        self.topic = topic

    # --- looking ----------------------------------------------------------------------------------

    async def list(
        self, wanted: LetterFilter | None = None, *, count_max: int | None = None
    ) -> AsyncIterator[DeadLetter]:
        """Yield letters that nobody has dealt with yet, partition by partition, oldest first."""
        found = 0
        try:
            info = await self._client.describe_topic(self.topic)
        except NotFound:
            return  # nothing was ever given up
        for one in info.partitions:
            position = await self._position(one.number)
            async for letter in self._open_letters(one.number, position):
                if wanted is None or wanted.fits(letter):
                    if found == count_max:
                        return
                    found += 1
                    yield letter

    async def show(self, partition: int, offset: int) -> DeadLetter:
        """Return one letter, dealt with or not; `NotFound` if there is none."""
        return letter_of(await self._client.fetch_one(self.topic, partition, offset))

    async def is_open(self, partition: int, offset: int) -> bool:
        """Tell whether nobody has dealt with a letter yet."""
        return not _is_settled(await self._position(partition), offset)

    async def dealt_with(self) -> dict[int, tuple[int, ...]]:
        """Return the letters that were sent back or purged, for those who read the topic in bulk.

        For each partition: first offset, past the last offset, and so on.
        """
        try:
            info = await self._client.describe_topic(self.topic)
        except NotFound:
            return {}
        positions = {one.number: await self._position(one.number) for one in info.partitions}
        return {number: (0, int(at.floor), *at.ranges) for number, at in positions.items()}

    async def _open_letters(self, partition: int, position: Position) -> AsyncIterator[DeadLetter]:
        start = await self._client.find_offset(self.topic, partition, "earliest")
        end = await self._client.find_offset(self.topic, partition, "latest")
        at = max(int(start), int(position.floor))
        while at < end:
            batches = await self._client.fetch_batches(self.topic, partition, at, fresh=True)
            if not batches:
                return
            for batch in batches:
                for record in batch:
                    assert record.offset is not None
                    if record.offset < end and not _is_settled(position, record.offset):
                        letter: DeadLetter | None = None
                        with suppress(InvalidArgument):  # somebody put another record here
                            letter = letter_of(record)
                        if letter is not None:
                            yield letter
                at = int(batch.batch.next_offset)

    async def _position(self, partition: int) -> Position:
        frame = await self._reach().calls.ask(
            Operation.SETTLED_BY,
            SettledByHeader(REDRIVE, self.topic, partition),
            partition=(self.topic, partition),
        )
        return frame.read(Position)

    # --- dealing with them ------------------------------------------------------------------------

    async def redrive(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Send letters back to where they came from, once; None: all of them.

        They get new offsets at the end of their old partition, with their own key, value, headers
        and timestamp. Letters that are not whole, or whose topic is gone, are skipped.
        """
        return await self._deal(wanted, dry_run=dry_run, sends=True)

    async def purge(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Let letters be: they are not listed any more, and never sent back.

        Their bytes go with the dead-letter topic's retention.
        """
        return await self._deal(wanted, dry_run=dry_run, sends=False)

    async def _deal(self, wanted: LetterFilter | None, *, dry_run: bool, sends: bool) -> Dealt:
        done = 0
        skipped: list[tuple[tuple[int, int], str]] = []
        waiting: list[DeadLetter] = []
        partitions: dict[str, int] = {}
        async for letter in self.list(wanted):
            fault = await self._fault(letter, partitions) if sends else None
            if fault is not None:
                skipped.append((letter.place, fault))
                continue
            waiting.append(letter)
            if len(waiting) == LETTERS_AT_ONCE:
                done += len(waiting) if dry_run else await self._deal_with(waiting, sends=sends)
                waiting = []
        if waiting:
            done += len(waiting) if dry_run else await self._deal_with(waiting, sends=sends)
        return Dealt(letters=done, skipped=tuple(skipped))

    async def _fault(self, letter: DeadLetter, partitions: dict[str, int]) -> str | None:
        """Return why a letter cannot be sent back, if so; remembers how large topics are."""
        if not letter.is_whole:
            return "only what is known about the record was kept"
        if letter.topic not in partitions:
            try:
                info = await self._client.describe_topic(letter.topic)
                partitions[letter.topic] = len(info.partitions)
            except NotFound:
                partitions[letter.topic] = 0
        if not 0 <= letter.partition < partitions[letter.topic]:
            return f"{letter.topic}[{letter.partition}] is gone"
        return None

    async def _deal_with(self, letters: Sequence[DeadLetter], *, sends: bool) -> int:
        """Deal with letters in one transaction; return how many were not dealt with before."""
        for _ in range(ROUNDS_MAX):
            positions = {
                number: await self._position(number)
                for number in sorted({letter.place[0] for letter in letters})
            }
            left = [
                one for one in letters if not _is_settled(positions[one.place[0]], one.place[1])
            ]
            if not left:
                return 0
            try:
                async with self._client.transaction(REDRIVE) as transaction:
                    for letter in left:
                        if sends:
                            await _send_back(transaction, letter)
                        number, offset = letter.place
                        transaction.acknowledge(
                            REDRIVE,
                            self.topic,
                            number,
                            (offset, offset + 1),
                            generation=positions[number].generation,
                        )
            except GroupFenced:
                continue  # somebody else has dealt with some of them; look again
            return len(left)
        raise TransactionPending("others deal with the same letters; try again")


def letter_of(record: Record) -> DeadLetter:
    """Return what the headers of a dead letter say; `InvalidArgument` if it is none."""
    told = {
        name.removeprefix(PREFIX): (content or b"").decode(errors="replace")
        for name, content in record.headers
        if name.startswith(PREFIX)
    }
    try:
        return DeadLetter(
            record=record,
            topic=told["topic"],
            partition=int(told["partition"]),
            offset=int(told["offset"]),
            group=told.get("group", ""),
            attempts=int(told.get("attempts", 0)),
            reason=told.get("reason", ""),
            first_at=int(told.get("first-at", 0)),
            last_at=int(told.get("last-at", 0)),
            is_whole="gone" not in told and "value-bytes" not in told,
        )
    except (KeyError, ValueError):
        where = f"{record.topic}[{record.partition}] at {record.offset}"
        raise InvalidArgument(f"the record in {where} is not a dead letter") from None


async def _send_back(transaction: Transaction, letter: DeadLetter) -> None:
    record = letter.record
    await transaction.publish(
        letter.topic,
        record.value,
        key=record.key,
        headers=letter.headers or None,
        partition=letter.partition,
        timestamp=record.timestamp or None,
    )


def _is_settled(position: Position, offset: int) -> bool:
    if offset < position.floor:
        return True
    # First and past the last alternate: an odd number of them at or below means inside a range.
    return bisect_right(position.ranges, offset) % 2 == 1
