"""What all lanes of a client share: the way to the cluster, the bound on memory, their tasks."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from angarium.client.publishing.packs import Pack
from angarium.client.publishing.room import Room
from angarium.errors import AngariumError
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.client.calls import Calls
    from angarium.client.metadata import Metadata
    from angarium.client.publishing.packs import Content
    from angarium.client.publishing.producer_identities import ProducerIdentities
    from angarium.client.publishing.receipts import Loss
    from angarium.client.routes import Routes
    from angarium.client.settings import ClientSettings
    from angarium.client.waiting import Waiting
    from angarium.modes import DeliveryMode

REFRESH_AGAIN_S: Final = 0.5
"""How soon a topic without a known leader is asked about again."""

_log = logging.getLogger(__name__)


class Sending:
    """Shared by the lanes of one client, on one event loop."""

    def __init__(
        self,
        *,
        settings: ClientSettings,
        routes: Routes,
        metadata: Metadata,
        calls: Calls,
        waiting: Waiting,
        producer_identities: ProducerIdentities,
        on_loss: Callable[[Loss], None] | None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.settings = settings
        self.routes = routes
        self.metadata = metadata
        self.calls = calls
        self.waiting = waiting
        self.producer_identities = producer_identities
        self.room = Room(settings.buffered_bytes_max)
        self.fenced: AngariumError | None = None
        """Set once somebody else took over the producer's name: this client must stop."""
        self.lost_records = 0
        """Records acknowledged in EVENTUAL mode that turned out to be lost."""
        self.pending: set[Pack] = set()
        """Everything published and not answered yet."""
        self.failed_records = 0
        """Records nobody waited for that failed since the last `flush`."""
        self.first_failure: Exception | None = None
        self._on_loss = on_loss
        self._is_stopped = False
        self._refreshed: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def new_pack(self, content: Content, mode: DeliveryMode) -> Pack:
        """Return a new pack, its time running from now; `Unreachable` once the client is closed."""
        if self._is_stopped:
            raise Unreachable("the client is closed")
        deadline = self.loop.time() + self.settings.publish_timeout_s
        pack = Pack(content, mode=mode, deadline=deadline)
        self.pending.add(pack)
        return pack

    def settle(self, pack: Pack) -> None:
        """Note that a pack has been answered."""
        self.room.give(pack.size)
        self.pending.discard(pack)
        if pack.settled is not None and not pack.settled.done():
            pack.settled.set_result(None)

    def note_failure(self, error: Exception, records: int) -> None:
        """Keep for `flush` what nobody waits for."""
        if records:
            self.failed_records += records
            self.first_failure = self.first_failure or error

    def note_loss(self, loss: Loss) -> None:
        """Count and report records that were acknowledged provisionally and are gone."""
        self.lost_records += loss.records
        _log.warning(
            "%d records acknowledged in EVENTUAL mode were lost with the leader of %s[%d]",
            loss.records,
            loss.topic,
            loss.partition,
        )
        if self._on_loss is not None:
            try:
                self._on_loss(loss)
            except Exception:
                _log.exception("the callback for losses failed")

    def refresh_soon(self, topic: str) -> None:
        """Ask who leads a topic whose records take a detour, if nobody has done so just now."""
        now = self.loop.time()
        if self._refreshed.get(topic, 0.0) + REFRESH_AGAIN_S <= now:
            if len(self._refreshed) >= self.settings.topics_max:
                self._refreshed.clear()
            self._refreshed[topic] = now
            self.start(self._refresh(topic))

    def note_partitions(self, topic: str, count: int) -> None:
        """Hear from a leader how many partitions a topic has; of more, soon learn where they are.

        Of fewer only somebody tells who has not heard of the newest yet. Of some that were added
        it is asked until keys are dealt to them.
        """
        info = self.routes.topics.get(topic)
        if info is not None and (
            count > len(info.partitions) or info.layout + 1 < len(info.layouts)
        ):
            self.refresh_soon(topic)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` as a task of this client."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _refresh(self, topic: str) -> None:
        with suppress(AngariumError):
            await self.metadata.refresh(topic)

    async def stop(self) -> None:
        """Cancel every task, and take nothing more."""
        self._is_stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
