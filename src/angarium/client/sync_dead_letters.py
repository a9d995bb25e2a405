"""Dead letters for programs without an event loop; see `dead_letters` for what each call means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from angarium.client.dead_letters import DeadLetter, DeadLetters, Dealt, LetterFilter
    from angarium.client.loop_thread import LoopThread


class SyncDeadLetters:
    """The letters of one dead-letter topic."""

    def __init__(self, thread: LoopThread, letters: DeadLetters) -> None:
        self._thread = thread
        self._letters = letters

    @property
    def topic(self) -> str:
        """The dead-letter topic."""
        return self._letters.topic

    def list(
        self, wanted: LetterFilter | None = None, *, count_max: int | None = None
    ) -> Iterator[DeadLetter]:
        """Yield letters that nobody has dealt with yet, partition by partition, oldest first."""
        letters = self._letters.list(wanted, count_max=count_max)
        while (letter := self._thread.call(_next(letters))) is not None:
            yield letter

    def show(self, partition: int, offset: int) -> DeadLetter:
        """Return one letter, dealt with or not; `NotFound` if there is none."""
        return self._thread.call(self._letters.show(partition, offset))

    def is_open(self, partition: int, offset: int) -> bool:
        """Tell whether nobody has dealt with a letter yet."""
        return self._thread.call(self._letters.is_open(partition, offset))

    def redrive(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Send letters back to where they came from, once; None: all of them."""
        return self._thread.call(self._letters.redrive(wanted, dry_run=dry_run))

    def purge(self, wanted: LetterFilter | None = None, *, dry_run: bool = False) -> Dealt:
        """Let letters be: they are not listed any more, and never sent back."""
        return self._thread.call(self._letters.purge(wanted, dry_run=dry_run))


async def _next(letters: AsyncIterator[DeadLetter]) -> DeadLetter | None:
    return await anext(letters, None)
