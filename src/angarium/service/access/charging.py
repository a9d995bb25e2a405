"""What a publish costs its principal, and what it adds to its topic."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from angarium.batch.peeking import records_in
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.api import Ack
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode
    from angarium.service.access.stored import StoredQuotas
    from angarium.service.access.tolls import Toll
    from angarium.service.publishing import Answer


class Charge:
    """One publish of a principal that has a quota, or to where there is one for what is stored."""

    __slots__ = ("_mode", "_records", "_size", "_stored", "_toll", "_topic")

    def __init__(
        self,
        topic: str,
        batches: Sequence[Buffer],
        mode: DeliveryMode | None,
        toll: Toll | None,
        stored: StoredQuotas | None,
    ) -> None:
        self._topic = topic
        self._mode = mode
        self._toll = toll
        self._stored = stored
        self._size = sum(map(len, batches))
        self._records = sum(map(records_in, batches))

    def check(self) -> None:
        """Raise `StoredQuotaExceeded` if there is no room for it."""
        if self._stored is not None:
            self._stored.check(self._topic, self._size, self._mode)

    def take(self) -> None:
        """Count it; raises `QuotaExceeded` if it would have to wait too long."""
        if self._toll is not None:
            self._toll.take_publish(self._size, self._records)
        self._add()

    async def pay(self) -> None:
        """Count it, and wait until it may go; raises `QuotaExceeded`."""
        if self._toll is not None:
            await self._toll.pay_publish(self._size, self._records)
        self._add()

    def heard_by(self, answer: Answer) -> Answer:
        """Return who hears what becomes of it, and passes that on."""
        if self._toll is None:
            return answer

        def heard(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                self._failed(outcome)
            answer(outcome)

        return heard

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """Take the charge back if what is done fails for now: it will be tried again."""
        try:
            yield
        except AngariumError as error:
            self._failed(error)
            raise

    def _failed(self, error: AngariumError) -> None:
        if error.retriable and self._toll is not None:
            self._toll.take_back(self._size, self._records)

    def _add(self) -> None:
        if self._stored is not None:
            self._stored.add(self._topic, self._size)
