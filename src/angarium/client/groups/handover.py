"""Deliveries on their way from the keeper's thread to the user's event loop.

How much waits here is bounded by the consumer's credit: the broker lends no more until something
is settled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from angarium.client.groups.loans import Loan


class Parcel(NamedTuple):
    """A delivery as it came: nothing is unpacked before the user takes it."""

    loan: Loan
    payload: memoryview


class Handover:
    """A queue with one end in each of two threads; one task takes."""

    def __init__(self) -> None:
        self._parcels: deque[Parcel] = deque()
        self._error: BaseException | None = None
        self._is_closed = False
        self._taker: asyncio.Future[None] | None = None

    def put(self, parcel: Parcel) -> None:
        """Take a delivery in; any thread."""
        self._parcels.append(parcel)
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """End, with `error` once what is here has been taken, or at once without one."""
        if error is None:
            self._is_closed = True
            self._parcels.clear()
        else:
            self._error = error
        self._wake()

    def take_nowait(self) -> Parcel | None:
        """Return the next delivery if it is here already, and not all settled meanwhile."""
        with suppress(IndexError):
            while True:
                parcel = self._parcels.popleft()
                if parcel.loan.left is None or parcel.loan.left:
                    return parcel
        return None

    async def take(self) -> Parcel | None:
        """Return the next delivery, or None once it is closed; raises what ended it otherwise."""
        while (parcel := self.take_nowait()) is None:
            if self._is_closed:
                return None
            taker = self._taker = asyncio.get_running_loop().create_future()
            try:
                # What came before the taker was to be seen woke nobody: look once more.
                if self._parcels or self._is_closed:
                    continue
                if self._error is not None:
                    raise self._error
                await taker
            finally:
                self._taker = None
        return parcel

    def _wake(self) -> None:
        taker, self._taker = self._taker, None
        if taker is not None:
            loop = taker.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, taker)


def _resolve(taker: asyncio.Future[None]) -> None:
    if not taker.done():
        taker.set_result(None)
