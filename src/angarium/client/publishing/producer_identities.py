"""Who this client is as a producer: asked for at the first use, and anew after a loss."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api import Producer
from angarium.client.publishing.packs import ProducerIdentity
from angarium.client.shared import heard, shared
from angarium.wire.operations import OpenProducerHeader, Operation

if TYPE_CHECKING:
    from angarium.client.calls import Calls


class ProducerIdentities:
    """Producer ids and epochs from the cluster.

    All lanes begin with one identity. A lane that has to count from 0 again takes one of its own:
    under a name the next epoch of the same producer, otherwise another producer.
    """

    def __init__(self, calls: Calls, name: str | None) -> None:
        self._calls = calls
        self._name = name
        self._first: asyncio.Task[ProducerIdentity] | None = None

    @property
    def is_named(self) -> bool:
        """Tell whether somebody else may take the same producer over."""
        return self._name is not None

    async def first(self) -> ProducerIdentity:
        """Return the identity that all lanes begin with."""
        if self._first is None or _has_failed(self._first):
            self._first = asyncio.get_running_loop().create_task(self.fresh())
            self._first.add_done_callback(heard)
        return await shared(self._first)

    async def fresh(self) -> ProducerIdentity:
        """Return an identity nobody has used."""
        # Repeating is harmless: an identity whose answer got lost is never used.
        frame = await self._calls.ask(Operation.OPEN_PRODUCER, OpenProducerHeader(self._name))
        producer = frame.read(Producer)
        return ProducerIdentity(producer.id, producer.epoch)

    async def close(self) -> None:
        """Stop asking."""
        if self._first is not None:
            self._first.cancel()
            await asyncio.wait([self._first])


def _has_failed(task: asyncio.Task[ProducerIdentity]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
