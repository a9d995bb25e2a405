"""Dead letters over REST: list what groups gave up, send it back once, or let it be.

The rules are the client's (`angarium.client.dead_letters`); this only translates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from angarium.batch import Record
from angarium.client.dead_letters import DEAD_LETTERS, LetterFilter
from angarium.doors.http.records import record_out
from angarium.doors.http.routing import Route
from angarium.doors.http.server.messages import JSON, Response
from angarium.doors.http.strict_json import json_body
from angarium.doors.http.values import Count, Partition, RecordOut
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.client import Client
    from angarium.client.dead_letters import DeadLetter, DeadLetters, Dealt
    from angarium.doors.http.routing import NoParameters
    from angarium.doors.http.server.messages import Request

LETTERS_MAX: Final = 1_000
"""Letters that one answer lists at the most."""


class LetterParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which letters."""

    dead_letter_topic: str = DEAD_LETTERS
    topic: str | None = None
    """Where they came from; `*` and `?` stand for anything."""
    group: str | None = None
    """Who gave them up; the same."""
    reason: str | None = None
    """A part of the reason."""
    since_us: Count | None = None
    until_us: Count | None = None
    limit: Annotated[int, Meta(ge=1, le=LETTERS_MAX)] = 100


class LetterWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which letters to deal with; everything that is given has to fit."""

    dead_letter_topic: str = DEAD_LETTERS
    topic: str | None = None
    group: str | None = None
    reason: str | None = None
    since_us: Count | None = None
    until_us: Count | None = None
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


_encode: Final = msgspec.json.Encoder().encode
_wish: Final = msgspec.json.Decoder(LetterWish)


class LetterDesk:
    """The requests about dead letters."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client

    async def list_dead_letters(self, _: Request, given: LetterParameters) -> Response:
        """Return letters that nobody has dealt with, oldest first in each partition."""
        found = self._client().dead_letters(given.dead_letter_topic)
        wanted = LetterFilter(
            topic=given.topic,
            group=given.group,
            reason=given.reason,
            since=given.since_us,
            until=given.until_us,
        )
        shown = [_letter_out(one) async for one in found.list(wanted, count_max=given.limit)]
        return Response(200, _encode(Letters(letters=shown)), JSON)

    async def redrive_dead_letters(self, request: Request, _: NoParameters) -> Response:
        """Send letters back to where they came from, once."""
        wish = json_body(request, _wish)
        letters, wanted = self._wanted(wish)
        return _dealt(await letters.redrive(wanted, dry_run=wish.dry_run))

    async def purge_dead_letters(self, request: Request, _: NoParameters) -> Response:
        """Let letters be."""
        wish = json_body(request, _wish)
        letters, wanted = self._wanted(wish)
        return _dealt(await letters.purge(wanted, dry_run=wish.dry_run))

    def _wanted(self, wish: LetterWish) -> tuple[DeadLetters, LetterFilter]:
        places = None if wish.places is None else frozenset(wish.places)
        wanted = LetterFilter(
            topic=wish.topic,
            group=wish.group,
            reason=wish.reason,
            since=wish.since_us,
            until=wish.until_us,
            places=places,
        )
        return self._client().dead_letters(wish.dead_letter_topic), wanted

    def routes(self) -> list[Route]:
        """Return where all of this is."""
        return [
            Route(
                method="GET",
                path="/v1/dead-letters",
                handler=self.list_dead_letters,
                parameters=LetterParameters,
                summary="List records that groups gave up and nobody has dealt with.",
                answer=Letters,
                tag="dead letters",
            ),
            Route(
                method="POST",
                path="/v1/dead-letters/redrive",
                handler=self.redrive_dead_letters,
                summary="Send letters back to where they came from, once.",
                body=LetterWish,
                answer=DealtOut,
                errors=(409, 415),
                tag="dead letters",
            ),
            Route(
                method="POST",
                path="/v1/dead-letters/purge",
                handler=self.purge_dead_letters,
                summary="Let letters be: they are not listed any more.",
                body=LetterWish,
                answer=DealtOut,
                errors=(409, 415),
                tag="dead letters",
            ),
        ]


def _letter_out(letter: DeadLetter) -> LetterOut:
    partition, offset = letter.place
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
        record=_record(letter),
    )


def _record(letter: DeadLetter) -> RecordOut:
    found = letter.record
    plain = Record(
        Offset(letter.place[1]),
        found.key,
        found.value,
        letter.headers,
        found.timestamp,
        found.append_time,
    )
    return record_out(plain, partition=found.partition, in_base64=False)


def _dealt(dealt: Dealt) -> Response:
    skipped = [
        Skipped(partition=place[0], offset=place[1], reason=reason)
        for place, reason in dealt.skipped
    ]
    return Response(200, _encode(DealtOut(letters=dealt.letters, skipped=skipped)), JSON)
