"""Dead letters: look at records that a group gave up, send them back once, or let them be.

A letter lies in a dead-letter topic with headers that say where it comes from and why. Whether it
was dealt with is the business of a group of the cluster's own on that topic: sending one back is a
transaction that publishes it to its old partition and acknowledges it for that group, so it happens
once, whoever repeats it and whatever crashes. What the group has not acknowledged is listed, and
is the lag that `group describe angarium.redrive` shows.

The procedure is the same on a node and in a client (`LetterProcedure`); each of them knows how to
read records, how far the group is, and how to commit.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from angarium.errors import GroupFenced, InvalidArgument, NotFound, TransactionPending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from angarium.api.topics import TopicInfo
    from angarium.api.transactions import Position

DEAD_LETTERS: Final = "angarium.dlq"
"""The topic that groups use unless they say otherwise."""

REDRIVE: Final = "angarium.redrive"
"""The group that keeps which letters were dealt with, and the series of its transactions."""

PREFIX: Final = "angarium-dlq-"

LETTERS_AT_ONCE: Final = 500
"""Letters in one transaction. If a redrive breaks off, those of whole transactions are done."""

ROUNDS_MAX: Final = 5
"""How often to look again because somebody else dealt with letters at the same time."""

R = TypeVar("R")


class DeadLetter(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """A record that a group gave up."""

    record: R
    """As it lies in the dead-letter topic; its key and value are the original's."""
    place: tuple[int, int]
    """Where the letter itself is: partition and offset of the dead-letter topic."""
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
    def headers(self) -> Any:
        """The original's own headers."""
        headers = self.record.headers  # type: ignore[attr-defined]
        return type(headers)(one for one in headers if not one[0].startswith(PREFIX))


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

    def fits(self, letter: DeadLetter[Any]) -> bool:
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


class LettersOfTopic(Protocol):
    """The letters of one dead-letter topic."""

    def list(
        self, wanted: LetterFilter | None = None, *, count_max: int | None = None
    ) -> AsyncIterator[DeadLetter[Any]]:
        """Yield letters that nobody has dealt with yet, partition by partition, oldest first."""

    async def redrive(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Send letters back to where they came from, once; None: all of them."""

    async def purge(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Let letters be: they are not listed any more, and never sent back."""


class LetterProcedure(Generic[R]):
    """The letters of one dead-letter topic, wherever they are dealt with."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    # --- what differs -----------------------------------------------------------------------------

    async def _describe(self, topic: str) -> TopicInfo:
        """Return a topic; `NotFound`."""
        raise NotImplementedError

    def _records(self, partition: int, floor: int) -> AsyncIterator[tuple[int, R]]:
        """Yield what a partition of the dead-letter topic holds now from an offset on."""
        raise NotImplementedError

    async def _position(self, partition: int) -> Position:
        """Return which letters of a partition were dealt with."""
        raise NotImplementedError

    async def _commit(
        self,
        letters: Sequence[DeadLetter[R]],
        generations: Mapping[int, int | None],
        *,
        sends: bool,
    ) -> None:
        """Acknowledge letters, and with `sends` publish them, in one transaction.

        `GroupFenced` if the group has moved on from its generation in a partition.
        """
        raise NotImplementedError

    # --- looking ----------------------------------------------------------------------------------

    async def list(
        self, wanted: LetterFilter | None = None, *, count_max: int | None = None
    ) -> AsyncIterator[DeadLetter[R]]:
        """Yield letters that nobody has dealt with yet, partition by partition, oldest first."""
        found = 0
        try:
            info = await self._describe(self.topic)
        except NotFound:
            return  # nothing was ever given up
        for one in info.partitions:
            async for letter in self._open_letters(one.number):
                if wanted is None or wanted.fits(letter):
                    if found == count_max:
                        return
                    found += 1
                    yield letter

    async def _open_letters(self, partition: int) -> AsyncIterator[DeadLetter[R]]:
        position = await self._position(partition)
        async for offset, record in self._records(partition, int(position.floor)):
            if not is_settled(position, offset):
                letter: DeadLetter[R] | None = None
                with suppress(InvalidArgument):  # somebody put another record here
                    letter = self._letter(record, (partition, offset))
                if letter is not None:
                    yield letter

    def _letter(self, record: R, place: tuple[int, int]) -> DeadLetter[R]:
        """Return what the headers of a dead letter say; `InvalidArgument` if it is none."""
        told = {
            name.removeprefix(PREFIX): (content or b"").decode(errors="replace")
            for name, content in record.headers  # type: ignore[attr-defined]
            if name.startswith(PREFIX)
        }
        try:
            return DeadLetter(
                record=record,
                place=place,
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
            where = f"{self.topic}[{place[0]}] at {place[1]}"
            raise InvalidArgument(f"the record in {where} is not a dead letter") from None

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
        waiting: list[DeadLetter[R]] = []
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

    async def _fault(self, letter: DeadLetter[R], partitions: dict[str, int]) -> str | None:
        """Return why a letter cannot be sent back, if so; remembers how large topics are."""
        if not letter.is_whole:
            return "only what is known about the record was kept"
        if letter.topic not in partitions:
            try:
                partitions[letter.topic] = len((await self._describe(letter.topic)).partitions)
            except NotFound:
                partitions[letter.topic] = 0
        if not 0 <= letter.partition < partitions[letter.topic]:
            return f"{letter.topic}[{letter.partition}] is gone"
        return None

    async def _deal_with(self, letters: Sequence[DeadLetter[R]], *, sends: bool) -> int:
        """Deal with letters in one transaction; return how many were not dealt with before."""
        for _ in range(ROUNDS_MAX):
            positions = {
                number: await self._position(number)
                for number in sorted({letter.place[0] for letter in letters})
            }
            left = [one for one in letters if not is_settled(positions[one.place[0]], one.place[1])]
            if not left:
                return 0
            generations = {number: one.generation for number, one in positions.items()}
            try:
                await self._commit(left, generations, sends=sends)
            except GroupFenced:
                continue  # somebody else has dealt with some of them; look again
            return len(left)
        raise TransactionPending("others deal with the same letters; try again")


def is_settled(position: Position, offset: int) -> bool:
    """Tell whether a group is done with a record."""
    if offset < position.floor:
        return True
    # First and past the last alternate: an odd number of them at or below means inside a range.
    return bisect_right(position.ranges, offset) % 2 == 1
