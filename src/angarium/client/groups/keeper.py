"""The thread that keeps what consumers hold: one for all consumers of a client.

Its event loop has the client's second set of connections. Nothing of the user's runs on it, so a
handler that computes for a minute does not keep it from renewing leases and answering pings: the
interpreter lets it in every few milliseconds (`sys.getswitchinterval`, which is left as it is: a
renewal has seconds to spare, and a shorter interval would slow the user's own code down).
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from angarium.client.groups.attachment import Attachment
from angarium.client.loop_thread import LoopThread
from angarium.client.reach import Reach
from angarium.closing import Closings
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.api import ConsumeRequest
    from angarium.client.addresses import Address
    from angarium.client.groups.handover import Handover
    from angarium.client.login import Login
    from angarium.client.settings import ClientSettings
    from angarium.errors import AngariumError

T = TypeVar("T")


class Keeper:
    """Begins when the first consumer needs it."""

    def __init__(
        self,
        bootstrap: tuple[Address, ...],
        settings: ClientSettings,
        *,
        login: Login,
        on_wait: Callable[[AngariumError], None] | None = None,
    ) -> None:
        self.settings = settings
        self._login = login
        self._on_wait = on_wait
        self._bootstrap = bootstrap
        self._thread: LoopThread | None = None
        self._reach: Reach | None = None
        self._attachments: set[Attachment] = set()
        self._closings = Closings(seconds_max=None)
        self.is_closed = False
        """Whether its consumers have left their groups, and it is gone."""
        self._beginning = threading.Lock()

    # --- from a thread with an event loop ---------------------------------------------------------

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the keeper's loop, and return what it returns."""
        return await asyncio.wrap_future(self._begun(work).submit(work))

    async def run_to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the same even if the caller is cancelled meanwhile."""
        return await asyncio.shield(asyncio.wrap_future(self._begun(work).submit(work)))

    def let_go(self, handover: Handover) -> None:
        """Have the consumer of `handover` leave its group, if it has joined one by now."""
        if not self.is_closed:
            work = self._let_go(handover)
            self._begun(work).submit(work)

    # --- from a thread without one ----------------------------------------------------------------

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the same, and wait for it."""
        return self._begun(work).call(work)

    # --- on its own loop --------------------------------------------------------------------------

    async def attach(
        self, request: ConsumeRequest, handover: Handover, *, keep_s: float
    ) -> Attachment:
        """Take part in a group; raises why that cannot be."""
        if self._reach is None:
            self._reach = Reach(
                self._bootstrap, self.settings, login=self._login, on_wait=self._on_wait
            )
        attachment = Attachment(self._reach, request, handover, keep_s=keep_s)
        self._attachments.add(attachment)
        try:
            await attachment.begin()
        except BaseException:
            await self.detach(attachment, settle_s=0.0)
            raise
        return attachment

    async def detach(self, attachment: Attachment, *, settle_s: float) -> None:
        """Take part no longer."""
        if attachment in self._attachments:
            self._attachments.discard(attachment)
            await self._closings.see_to(attachment.leave(settle_s=settle_s))

    async def _let_go(self, handover: Handover) -> None:
        for attachment in list(self._attachments):
            if attachment.handover is handover:
                await self.detach(attachment, settle_s=0.0)

    async def cut_off(self, attachment: Attachment) -> int:
        """End a consumer without a word; return how many records it had in hand."""
        self._attachments.discard(attachment)
        in_hand = attachment.in_hand
        if self._reach is not None:
            self._reach.pool.cut()
        await attachment.cut_off()
        return in_hand

    # --- its end ----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Let every consumer leave its group, and end the thread; from another event loop."""
        thread = self._closing()
        if thread is not None:
            await asyncio.wrap_future(thread.submit(self._leave_all()))
            await asyncio.get_running_loop().run_in_executor(None, thread.stop)

    async def _leave_all(self) -> None:
        for attachment in list(self._attachments):
            await self.detach(attachment, settle_s=self.settings.close_timeout_s)
        await self._closings.drained()
        if self._reach is not None:
            await self._reach.close(timeout_s=self.settings.attempt_timeout_s)

    def _closing(self) -> LoopThread | None:
        with self._beginning:
            self.is_closed = True
            thread, self._thread = self._thread, None
            return thread

    def _begun(self, work: Coroutine[Any, Any, Any]) -> LoopThread:
        with self._beginning:
            if self.is_closed:
                work.close()
                raise Unreachable("the client is closed")
            if self._thread is None:
                self._thread = LoopThread("angarium-keeper")
            return self._thread
