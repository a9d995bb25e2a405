"""The publishing half of a client: finds a lane for every record and bounds what waits."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from angarium.client.publishing.columns import cut, dealt_out
from angarium.client.publishing.topic_lanes import TopicLanes
from angarium.client.shared import heard, shared
from angarium.errors import AngariumError, LimitExceeded
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from angarium.api import Ack
    from angarium.client.publishing.columns import Table
    from angarium.client.publishing.outgoing import Outgoing
    from angarium.client.publishing.packs import Pack
    from angarium.client.publishing.receipts import Receipt
    from angarium.client.publishing.sending import Sending
    from angarium.modes import DeliveryMode


class Publisher:
    """Publishes for one client."""

    def __init__(self, sending: Sending) -> None:
        self.sending = sending
        self._topics: dict[str, TopicLanes] = {}
        self._finding: dict[str, asyncio.Task[TopicLanes]] = {}
        self._unrouted: dict[str, deque[Outgoing]] = {}
        self._has_forgotten = False
        """Whether lanes were forgotten; from then on each new one takes an identity of its own."""

    async def publish(self, topic: str, record: Outgoing) -> Receipt:
        """Send a record and wait for its acknowledgement."""
        lanes = self._known(topic) or await self._find(topic)
        if not lanes.may_have(record.partition):
            lanes = await self._find_again(topic)
        if not self.sending.room.take_now(record.size):
            await self._take_room(record.size)
        receipt: asyncio.Future[Receipt] = self.sending.loop.create_future()
        pack, position = self._add(lanes, record)
        pack.waiting.append((receipt, position))
        return await receipt

    def publish_nowait(self, topic: str, record: Outgoing, *, may_overdraw: bool = False) -> None:
        """Send a record; `flush` tells whether that worked."""
        lanes = self._known(topic)
        if not self.sending.room.take_now(record.size, may_overdraw=may_overdraw):
            raise self._no_room()
        if lanes is not None and lanes.may_have(record.partition):
            self._add(lanes, record)[0].unattended += 1
            return
        # Where it goes is being asked; it keeps its turn among those of the same topic.
        self._unrouted.setdefault(topic, deque()).append(record)
        self._start_finding(topic)

    async def publish_table(
        self, topic: str, table: Table, *, partition: int | None, mode: DeliveryMode | None
    ) -> tuple[Ack, ...]:
        """Send many records; return one acknowledgement for each batch they were packed into."""
        table.check()
        lanes = self._known(topic) or await self._find(topic)
        if not lanes.may_have(partition):
            lanes = await self._find_again(topic)
        layout = None if partition is not None else lanes.layout.number
        if partition is None:
            tables = dealt_out(table, lanes.layout)
        else:
            lanes.check(partition)
            tables = {partition: table}
        answers: list[asyncio.Future[tuple[Ack, ...]]] = []
        try:
            for number, one in tables.items():
                is_pinned = partition is not None or (number is not None and lanes.layout.pins_keys)
                await self._send_table(
                    lanes, one, number, mode, answers, layout=layout, is_pinned=is_pinned
                )
        finally:
            # Also when a table was refused: every answer has to be heard.
            outcomes = await asyncio.gather(*answers, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            failures[0].add_note(f"{len(failures)} of {len(outcomes)} batches failed")
            raise failures[0]
        told = (outcome for outcome in outcomes if not isinstance(outcome, BaseException))
        return tuple(ack for acks in told for ack in acks)

    async def flush(self) -> None:
        """Wait until everything published so far is answered; raise what nobody was told."""
        if self._finding:
            await asyncio.wait(list(self._finding.values()))
        waiting = [self._settled(pack) for pack in self.sending.pending]
        if waiting:
            await asyncio.wait(waiting)
        sending = self.sending
        failure, count = sending.first_failure, sending.failed_records
        sending.first_failure, sending.failed_records = None, 0
        if failure is not None:
            failure.add_note(f"{count} records published without waiting failed")
            raise failure

    async def close(self) -> None:
        """Fail what is left and end all tasks."""
        finding = list(self._finding.values())
        for task in finding:
            task.cancel()
        if finding:
            await asyncio.wait(finding)
        await self.sending.stop()
        await self.sending.producer_identities.close()
        for lanes in self._topics.values():
            for lane in lanes.lanes:
                lane.abandon(Unreachable("the client was closed before this was published"))

    # --- lanes ------------------------------------------------------------------------------------

    def _known(self, topic: str) -> TopicLanes | None:
        """Return the lanes of a topic about which nothing has to be asked."""
        sending = self.sending
        if sending.fenced is not None:
            raise sending.fenced
        info = sending.routes.topics.get(topic)
        if info is None or topic in self._unrouted:
            return None
        lanes = self._topics.get(topic)
        if lanes is None or lanes.info.id != info.id:
            self._make_room()
            lanes = TopicLanes(sending, info, may_share=not self._has_forgotten)
            self._topics[topic] = lanes
        elif lanes.info is not info:
            lanes.learn(info)
        return lanes

    def _make_room(self) -> None:
        """Forget idle topics at the bound, and with them which numbers were used there."""
        if len(self._topics) < self.sending.settings.topics_max:
            return
        for name, lanes in list(self._topics.items()):
            if all(lane.is_idle for lane in lanes.lanes):
                del self._topics[name]
                self._has_forgotten = True

    async def _find(self, topic: str) -> TopicLanes:
        return await shared(self._start_finding(topic))

    async def _find_again(self, topic: str) -> TopicLanes:
        """Ask anew about a topic that seems to lack a partition: it may have been given more."""
        await self.sending.metadata.refresh(topic)
        return self._known(topic) or await self._find(topic)

    def _start_finding(self, topic: str) -> asyncio.Task[TopicLanes]:
        finding = self._finding.get(topic)
        if finding is None:
            finding = self.sending.loop.create_task(self._ask_about(topic))
            self._finding[topic] = finding
            finding.add_done_callback(lambda done: self._found(topic, done))
        return finding

    async def _ask_about(self, topic: str) -> TopicLanes:
        try:
            info = await self.sending.metadata.topic_or_new(topic)
            asked_for = (record.partition or 0 for record in self._unrouted.get(topic, ()))
            if max(asked_for, default=0) >= len(info.partitions):
                await self.sending.metadata.refresh(topic)
        except BaseException as error:
            self._drop_unrouted(topic, error)
            raise
        unrouted = self._unrouted.pop(topic, ())
        lanes = self._known(topic)
        assert lanes is not None
        for record in unrouted:
            try:
                self._add(lanes, record)[0].unattended += 1
            except AngariumError as error:
                self.sending.note_failure(error, 1)
        return lanes

    def _found(self, topic: str, done: asyncio.Task[TopicLanes]) -> None:
        del self._finding[topic]
        heard(done)

    def _drop_unrouted(self, topic: str, error: BaseException) -> None:
        unrouted = self._unrouted.pop(topic, ())
        self.sending.room.give(sum(record.size for record in unrouted))
        why = error if isinstance(error, Exception) else Unreachable("the client was closed")
        self.sending.note_failure(why, len(unrouted))

    # --- records ----------------------------------------------------------------------------------

    def _add(self, lanes: TopicLanes, record: Outgoing) -> tuple[Pack, int]:
        """Put a record for which room has been taken into its lane; on failure give it back."""
        mode = lanes.info.config.mode if record.mode is None else record.mode
        try:
            lane = lanes.lane_for(record.key, partition=record.partition, mode=mode)
            pack, position = lane.add(
                record.value,
                mode=mode,
                key=record.key,
                headers=record.headers,
                times=record.times,
                layout=(
                    None
                    if record.key is None or record.partition is not None
                    else lanes.named(lanes.layout.number, mode)
                ),
                is_pinned=lanes.pins(record),
            )
        except BaseException:
            self.sending.room.give(record.size)
            raise
        pack.size += record.size
        return pack, position

    async def _send_table(
        self,
        lanes: TopicLanes,
        table: Table,
        partition: int | None,
        mode: DeliveryMode | None,
        answers: list[asyncio.Future[tuple[Ack, ...]]],
        *,
        layout: int | None,
        is_pinned: bool,
    ) -> None:
        sending, settings = self.sending, self.sending.settings
        mode = lanes.info.config.mode if mode is None else mode
        bytes_max = lanes.info.config.batch_bytes_max
        for piece, size in cut(
            table,
            bytes_target=min(settings.batch_bytes, bytes_max),
            bytes_max=bytes_max,
            records_max=settings.batch_records_max,
        ):
            if not sending.room.take_now(size):
                await self._take_room(size)
            if partition is None:
                lane = lanes.next_lane(mode)
            elif layout is None:
                lane = lanes.lane(partition, mode)
            else:
                lane = lanes.lane_of_keys(partition, mode)
            pack = sending.new_pack(piece.columns(settings.codec), mode)
            pack.size = size
            pack.is_pinned = is_pinned
            pack.whole = sending.loop.create_future()
            if partition is not None:
                pack.layout = lanes.named(layout, mode)
            answers.append(pack.whole)
            lane.put(pack)

    async def _take_room(self, size: int) -> None:
        try:
            async with asyncio.timeout(self.sending.settings.publish_timeout_s):
                await self.sending.room.take(size)
        except TimeoutError:
            raise self._no_room() from None

    def _no_room(self) -> LimitExceeded:
        bytes_max = self.sending.settings.buffered_bytes_max
        return LimitExceeded(
            "buffered_bytes_max", f"{bytes_max} bytes wait for their acknowledgement already"
        )

    def _settled(self, pack: Pack) -> asyncio.Future[None]:
        if pack.settled is None:
            pack.settled = self.sending.loop.create_future()
        return pack.settled
