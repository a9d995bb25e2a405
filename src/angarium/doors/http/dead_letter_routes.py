"""Dead letters over REST: list what groups gave up, send it back once, or let it be.

How they are dealt with is in `api.dead_letters`. The annotations of a call are its declaration
(`routing.call`), so they are not put off here.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from angarium.api.dead_letters import DEAD_LETTERS, DeadLetter, Dealt, LetterFilter, LettersOfTopic
from angarium.batch import Record
from angarium.doors.http.record_json import Count, Partition, RecordOut, record_out
from angarium.doors.http.routing import call
from angarium.ids import Offset

LETTERS_MAX: Final = 1_000
"""Letters that one answer lists at the most."""


class WhichLetters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which letters; everything that is given has to fit."""

    dead_letter_topic: str = DEAD_LETTERS
    topic: str | None = None
    """Where they came from; `*` and `?` stand for anything."""
    group: str | None = None
    """Who gave them up; the same."""
    reason: str | None = None
    """A part of the reason."""
    since_us: Count | None = None
    until_us: Count | None = None

    def filter(self, places: list[tuple[int, int]] | None = None) -> LetterFilter:
        """Return what fits; only `places`, if some are given."""
        return LetterFilter(
            topic=self.topic,
            group=self.group,
            reason=self.reason,
            since=self.since_us,
            until=self.until_us,
            places=None if places is None else frozenset(places),
        )


class LetterParameters(WhichLetters, frozen=True):
    """Which letters to list."""

    limit: Annotated[int, Meta(ge=1, le=LETTERS_MAX)] = 100


class LetterWish(WhichLetters, frozen=True):
    """Which letters to deal with."""

    places: Annotated[list[tuple[Partition, Count]], Meta(max_length=10_000)] | None = None
    """Exactly these: partition and offset in the dead-letter topic."""
    dry_run: bool = False


class LetterOut(msgspec.Struct, frozen=True):
    """A record that a group gave up."""

    partition: int
    offset: int
    """Where the letter lies in the dead-letter topic."""
    topic: str
    from_partition: int
    from_offset: int
    """Where it came from."""
    group: str
    attempts: int
    reason: str
    first_at_us: int
    last_at_us: int
    is_whole: bool
    record: RecordOut


class Letters(msgspec.Struct, frozen=True):
    """Letters that nobody has dealt with yet."""

    letters: list[LetterOut]


class Skipped(msgspec.Struct, frozen=True):
    """A letter that could not be sent back, and why."""

    partition: int
    offset: int
    reason: str


class DealtOut(msgspec.Struct, frozen=True):
    """What was done, or with dry_run would have been."""

    letters: int
    skipped: list[Skipped]


_letters: Final = partial(call, tag="dead letters")


class DeadLetterRoutes:
    """The requests about dead letters."""

    def __init__(self, letters: Callable[[str], LettersOfTopic]) -> None:
        """Prepare; `letters` returns those of a dead-letter topic."""
        self._letters = letters

    @_letters("GET /v1/dead-letters", "List records that groups gave up and nobody has dealt with.")
    async def list_dead_letters(self, given: LetterParameters) -> Letters:
        found = self._letters(given.dead_letter_topic)
        letters = found.list(given.filter(), count_max=given.limit)
        return Letters([_letter_out(one) async for one in letters])

    @_letters("POST /v1/dead-letters/redrive", "Send letters back to where they came from, once.")
    async def redrive_dead_letters(self, body: LetterWish) -> DealtOut:
        letters = self._letters(body.dead_letter_topic)
        return _dealt(await letters.redrive(body.filter(body.places), dry_run=body.dry_run))

    @_letters("POST /v1/dead-letters/purge", "Let letters be: they are not listed any more.")
    async def purge_dead_letters(self, body: LetterWish) -> DealtOut:
        letters = self._letters(body.dead_letter_topic)
        return _dealt(await letters.purge(body.filter(body.places), dry_run=body.dry_run))


def _letter_out(letter: DeadLetter[Any]) -> LetterOut:
    partition, offset = letter.place
    given_up = letter.record
    key, value, headers = given_up.key, given_up.value, letter.headers
    times = given_up.timestamp, given_up.append_time
    record = Record(Offset(offset), key, value, headers, *times)
    return LetterOut(
        partition=partition,
        offset=offset,
        topic=letter.topic,
        from_partition=letter.partition,
        from_offset=letter.offset,
        group=letter.group,
        attempts=letter.attempts,
        reason=letter.reason,
        first_at_us=letter.first_at,
        last_at_us=letter.last_at,
        is_whole=letter.is_whole,
        record=record_out(record, partition=partition, in_base64=False),
    )


def _dealt(dealt: Dealt) -> DealtOut:
    return DealtOut(dealt.letters, [Skipped(*where, reason) for where, reason in dealt.skipped])
