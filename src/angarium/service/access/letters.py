"""Dead letters, for one principal."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from angarium.api.access import Action, ResourceKind
from angarium.service.access.rules import LETTER_RULES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.api.dead_letters import DeadLetter, Dealt, LetterFilter
    from angarium.service.access.permitted import PermittedBroker
    from angarium.service.dead_letters import ServedDeadLetters


class PermittedLetters:
    """Implements `api.dead_letters.LettersOfTopic`, and asks first."""

    def __init__(self, broker: PermittedBroker, letters: ServedDeadLetters) -> None:
        self._broker = broker
        self._letters = letters
        # A letter says itself where it came from, and who may write into the dead-letter topic may
        # write anything there: it goes back only to where the principal may publish or redrive to.
        letters.may_return_to = self._may_return_to

    async def list(
        self, wanted: LetterFilter | None = None, *, count_max: int | None = None
    ) -> AsyncIterator[DeadLetter[Any]]:
        """Yield letters that nobody has dealt with yet."""
        rule, given = LETTER_RULES["list"], {"topic": self._letters.topic}
        self._broker.check_call(rule, given, method="dead_letters.list")
        self._broker.note_call("dead_letters.list", rule, given)
        async for letter in self._letters.list(wanted, count_max=count_max):
            yield letter

    async def redrive(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Send letters back to where they came from."""
        async with self._permitted("redrive", wanted=wanted, dry_run=dry_run):
            return await self._letters.redrive(wanted, dry_run=dry_run)

    async def purge(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Let letters be."""
        async with self._permitted("purge", wanted=wanted, dry_run=dry_run):
            return await self._letters.purge(wanted, dry_run=dry_run)

    @asynccontextmanager
    async def _permitted(self, name: str, **arguments: Any) -> AsyncIterator[None]:
        """Ask, have it recorded, and ask again: it may have waited for its record."""
        rule, method = LETTER_RULES[name], f"dead_letters.{name}"
        given = {"topic": self._letters.topic, **arguments}
        self._broker.check_call(rule, given, method=method)
        async with self._broker.recording(method, rule, given):
            self._broker.check_call(rule, given, method=method)
            yield

    def _may_return_to(self, topic: str) -> bool:
        may = self._broker.may
        return may(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, topic) or may(
            Action.DEADLETTER_REDRIVE, ResourceKind.TOPIC, topic
        )
