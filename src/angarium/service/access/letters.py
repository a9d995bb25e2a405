"""Dead letters, for one principal."""

from __future__ import annotations

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
        # write anything there: it goes back only to where the principal could publish.
        letters.may_return_to = self._may_return_to

    async def list(
        self, wanted: LetterFilter | None = None, *, count_max: int | None = None
    ) -> AsyncIterator[DeadLetter[Any]]:
        """Yield letters that nobody has dealt with yet."""
        self._broker.check_call(LETTER_RULES["list"], {"topic": self._letters.topic})
        async for letter in self._letters.list(wanted, count_max=count_max):
            yield letter

    async def redrive(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Send letters back to where they came from."""
        self._broker.check_call(LETTER_RULES["redrive"], {"topic": self._letters.topic})
        return await self._letters.redrive(wanted, dry_run=dry_run)

    async def purge(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Let letters be."""
        self._broker.check_call(LETTER_RULES["purge"], {"topic": self._letters.topic})
        return await self._letters.purge(wanted, dry_run=dry_run)

    def _may_return_to(self, topic: str) -> bool:
        return self._broker.may(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, topic)
