"""PERFORMANCE mode under load: what is stored nowhere is judged while it passes.

Such records may be lost with a node or a connection. They are never invented, never repeated and,
from one publisher, never out of order; and while nothing fails they reach every subscriber.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Self

from angarium.api import Start, StartAt
from angarium.batch import Batch, encode, split
from angarium.errors import AngariumError
from angarium.modes import DeliveryMode
from angarium.testing.cluster.producers import PATIENCE_S
from angarium.testing.cluster.waiting import eventually, now_micros
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations import Ended, Operation, Told, Want, Wants

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.wire import Frame


class LiveLoad:
    """Publishers through any node and one subscriber at each node, on one partition."""

    def __init__(
        self, cluster: ProcessCluster, *, topic: str, publishers: int = 3, pause_s: float = 0.01
    ) -> None:
        self.topic = topic
        self.incidents: list[str] = []
        """Everything that must not happen."""
        self.answers: list[tuple[int, int]] = []
        """When each acknowledged publish began and was answered."""
        self.delivered: dict[NodeId, int] = dict.fromkeys(cluster.ids, 0)
        self._cluster = cluster
        self._pause_s = pause_s
        self._publishers = publishers
        self._sent = [0] * publishers
        self._reached = [0] * publishers
        """How far each publisher was acknowledged."""
        self._active = True
        self._publishing: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._reading = [asyncio.create_task(self._follow(node)) for node in self._cluster.ids]
        await eventually(self._all_listen, what="the leader knows every subscriber")
        self._publishing = [
            asyncio.create_task(self._publish(number)) for number in range(self._publishers)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._publishing, *self._reading]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def acknowledged(self) -> int:
        """How many records were acknowledged."""
        return len(self.answers)

    async def acknowledged_after(self, moment: int, *, within_s: float = 60.0) -> int:
        """Wait for a publish begun after `moment` to be acknowledged; return when it was."""

        async def answered() -> int:
            return next((end for begin, end in reversed(self.answers) if begin >= moment), 0)

        first = await eventually(answered, within_s=within_s, what="a PERFORMANCE ack")
        return min((end for begin, end in self.answers if begin >= moment), default=first)

    async def stop(self) -> None:
        """Publish no more; what was acknowledged is given a moment to arrive."""
        self._active = False
        await asyncio.gather(*self._publishing)
        await asyncio.sleep(0.5)

    # --- publishing -------------------------------------------------------------------------

    async def _publish(self, number: int) -> None:
        rng = random.Random(number)
        while self._active:
            running = self._cluster.running
            self._sent[number] += 1
            value = b"%d.%d" % (number, self._sent[number])
            began = now_micros()
            try:
                await self._send(rng.choice(running), value)
            except AngariumError:
                # Never sent again: nobody would know that it is the same record.
                await asyncio.sleep(0.02)
                continue
            self._reached[number] = self._sent[number]
            self.answers.append((began, now_micros()))
            await asyncio.sleep(self._pause_s)

    async def _send(self, node: NodeId, value: bytes) -> int:
        acks = await self._cluster.contact(node).publish(
            self.topic,
            0,
            [bytes(encode([value]))],
            mode=DeliveryMode.PERFORMANCE,
            timeout_s=PATIENCE_S,
        )
        if acks[0].base_offset is not None:
            self.incidents.append(
                f"a PERFORMANCE record was given the offset {acks[0].base_offset}"
            )
        return acks[0].subscribers

    async def _all_listen(self) -> bool:
        return await self._send(self._cluster.running[0], b"") == len(self._cluster.ids)

    # --- receiving --------------------------------------------------------------------------

    async def _follow(self, node: NodeId) -> None:
        last = [0] * self._publishers
        while True:
            try:
                connection = await self._cluster.contact(node).connection(timeout_s=1.0)
                want = Want(1, self.topic, 0, Start(StartAt.LATEST))
                stream = connection.open_stream(Operation.SUBSCRIBE, Wants((want,)))
                try:
                    while (frame := await stream.receive()) is not None:
                        self._take(node, frame, last)
                finally:
                    stream.cancel()
            except AngariumError:
                await asyncio.sleep(0.05)

    def _take(self, node: NodeId, frame: Frame, last: list[int]) -> None:
        told: Told = frame.read(Told)  # type: ignore[arg-type]
        if isinstance(told, Ended):
            raise error_of(Failure(told.code, told.message))  # it begins anew
        if not told.live:
            self.incidents.append(f"a subscriber at node {node} was handed {told}")
            return
        for data in split(frame.payload):
            for record in Batch.parse(data):
                if record.value:
                    self._judge(node, record.value, last)

    def _judge(self, node: NodeId, value: bytes, last: list[int]) -> None:
        publisher, _, sequence = value.partition(b".")
        number, sent = int(publisher), int(sequence)
        self.delivered[node] += 1
        if sent > self._sent[number]:
            self.incidents.append(f"node {node}: {value!r} was never sent")
        if sent <= last[number]:
            self.incidents.append(f"node {node}: {value!r} came after {last[number]}")
        last[number] = sent
