"""Producers that write down what they tried and what they were told.

Each publishes to one partition, one batch at a time, until that batch's fate is known: it asks the
next node after every error, with the same sequence, so nothing may be stored twice. It asks nodes
in turn, leaders or not, so about two publishes in three are forwarded.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from angarium.batch import encode
from angarium.errors import AngariumError, OutcomeUnknown
from angarium.ids import Epoch, Sequence
from angarium.modes import DeliveryMode
from angarium.testing.cluster.waiting import now_micros
from angarium.testing.history import Publish, Result

if TYPE_CHECKING:
    from angarium.api import Ack
    from angarium.ids import NodeId, ProducerId, RaftGroupId
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.testing.history import History

PATIENCE_S: Final = 0.5
"""How long a producer waits for an answer before it asks the next node."""

PAUSE_S: Final = (0.005, 0.03)
"""Between two attempts, drawn anew each time."""


class Producer:
    """One idempotent producer and one partition."""

    def __init__(
        self,
        cluster: ProcessCluster,
        history: History,
        *,
        number: int,
        topic: str,
        partition: int,
        group: RaftGroupId,
        mode: DeliveryMode,
        pause_s: float,
    ) -> None:
        """Publish in `mode`, `pause_s` after each answer; `group` is the partition's in history."""
        assert mode is not DeliveryMode.PERFORMANCE, "what is stored nowhere has no history"
        self.active = True
        self.epochs = 0
        """How often it had to begin anew: what an EVENTUAL answer promised was gone."""
        self._cluster = cluster
        self._history = history
        self._topic, self._partition, self._group = topic, partition, group
        self._mode = mode
        self._pause_s = pause_s
        self._rng = random.Random(number)
        self._node: NodeId | None = None
        self._id: ProducerId | None = None
        self._sequence = 0

    async def run(self) -> None:
        """Publish until `active` is taken away; what is under way then is finished."""
        self._id = (await (await self._cluster.someone()).open_producer()).id
        while self.active:
            await self._publish(self._rng.choice((1, 1, 2, 3, 5)))
            await asyncio.sleep(self._pause_s * self._rng.uniform(0.5, 1.5))

    async def publish(self) -> Publish:
        """Publish one batch of one record and return what became of it."""
        if self._id is None:
            self._id = (await (await self._cluster.someone()).open_producer()).id
        return await self._publish(1)

    async def _publish(self, count: int) -> Publish:
        assert self._id is not None
        operation = Publish(
            group=self._group,
            producer=self._id,
            epoch=self.epochs,
            sequence=self._sequence,
            # A value names its record, so that it can be judged wherever it turns up.
            values=tuple(
                b"%d.%d.%d" % (self._id, self.epochs, self._sequence + position)
                for position in range(count)
            ),
            mode=self._mode,
            invoked=now_micros(),
        )
        self._history.publishes.append(operation)
        batch = bytes(
            encode(
                operation.values,
                producer_id=self._id,
                epoch=Epoch(operation.epoch),
                sequence=Sequence(operation.sequence),
            )
        )
        is_certain = True
        while operation.completed is None:
            operation.attempts += 1
            node = self._next_node()
            try:
                acks = await self._cluster.contact(node).publish(
                    self._topic, self._partition, [batch], mode=self._mode, timeout_s=PATIENCE_S
                )
            except AngariumError as error:
                is_certain = is_certain and not isinstance(error, OutcomeUnknown)
                if not error.retriable:
                    self._history.incidents.append(f"a publish was refused for good: {error!r}")
                    self._close(operation, Result.FAIL if is_certain else Result.INFO)
                    break
                self._node = None
                await asyncio.sleep(self._rng.uniform(*PAUSE_S))
                continue
            self._take(operation, node, acks[0], is_certain=is_certain)
        self._sequence += count
        if operation.result is not Result.OK and not operation.stored:
            self.epochs += 1
            self._sequence = 0
        return operation

    def _take(self, operation: Publish, node: NodeId, ack: Ack, *, is_certain: bool) -> None:
        if ack.code:
            # Only where something answered is gone, an EVENTUAL suffix, is this no one's fault.
            if self._mode is not DeliveryMode.EVENTUAL:
                self._history.incidents.append(f"a batch was refused: {ack.code} {ack.message}")
            self._close(operation, Result.FAIL if is_certain else Result.INFO)
            return
        if ack.base_offset is None:
            operation.stored = True  # so long ago that its offset is forgotten
            self._close(operation, Result.INFO)
            return
        operation.base_offset = ack.base_offset
        operation.node = node
        operation.term = ack.term or 0
        operation.provisional = ack.provisional
        self._close(operation, Result.OK)

    def _close(self, operation: Publish, result: Result) -> None:
        operation.result = result
        operation.completed = now_micros()

    def _next_node(self) -> NodeId:
        """Return the node that answered last, or else any other one that runs."""
        running = self._cluster.running
        if self._node is None or self._node not in running:
            self._node = self._rng.choice(running or self._cluster.ids)
        return self._node
