"""Writing audit records: from a bounded queue into the topic, one batch after the other.

Nobody waits for the topic who does not want to: `put` returns at once. What was taken is written in
the order in which it came, once, whatever leaders do meanwhile: a batch is repeated, byte for byte
and under the numbers of a producer, until it is answered. At the bound of the queue records are
dropped, counted, and a record says how many as soon as one can be written.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import PublishRequest
from angarium.api.audit import (
    AUDIT_TOPIC,
    HASH_HEADER,
    AuditEvent,
    AuditOutcome,
    AuditRecord,
)
from angarium.batch import encode
from angarium.errors import AngariumError, AuditUnwritable, InvalidArgument, NotFound, TooLarge
from angarium.ids import Sequence
from angarium.modes import DeliveryMode
from angarium.retrying import Backoff, Tries
from angarium.security.audit import Chain
from angarium.security.audit.times import time_text
from angarium.security.audit.writers import DROP, END
from angarium.service.audit.tail import WITNESS, Tail
from angarium.service.audit.tending import AuditTopic
from angarium.telemetry.exposition import Family, Sample, counter, gauge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence as SequenceOf

    from angarium.api import Producer
    from angarium.service.broker import Service

WAITING_MAX: Final = 4_096
"""Records that wait to be written; a few kilobytes each. At the bound further ones are dropped and
counted, but for administrative actions, which are refused or logged (`Audit`)."""

TOGETHER_MAX: Final = 128
"""Records of one batch, and so of one answer."""

PAUSES: Final = Backoff(first_s=0.05, longest_s=2.0)
"""Between two tries to write."""

ATTEMPT_S_MAX: Final = 10.0
"""How long one try may take."""

FIRST_LOOK_S: Final = 5.0
WITNESS_S: Final = 600.0
"""How long a node writes nothing before it looks whether others have written something to vouch
for, and whether the topic is as it should be; the first time soon after its start."""

CLOSE_S_MAX: Final = 2.0
"""How long a node that stops waits for its last records."""

BEGIN: Final = "begin"
"""What a writer's first record says."""

_log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    record: AuditRecord
    done: asyncio.Future[None] | None


class _Linked(NamedTuple):
    """Records as they are published: repeated as they are until they are answered."""

    batch: bytes
    hashes: list[bytes]


class AuditWriter:
    """One run of a node's process, as the writer of audit records."""

    def __init__(self, service: Service, *, retention_ms: int | None) -> None:
        self._service = service
        self._node = service.node
        self._topic = AuditTopic(service.node, service.topics, retention_ms=retention_ms)
        self._tail = Tail(service)
        self._waiting: deque[_Waiting] = deque()
        self._under_way: list[_Waiting] = []
        self._work = asyncio.Event()
        self._dropped: Counter[str] = Counter()
        """Since the last record that told of some."""
        self._chain: Chain | None = None
        self._producer: Producer | None = None
        self._sequence = Sequence(0)
        self._is_closing = False
        self._has_ended = asyncio.Event()
        self.written: Counter[str] = Counter()
        self.dropped_total = 0

    @property
    def waiting(self) -> int:
        """How many records are not in the topic yet."""
        return len(self._waiting) + len(self._under_way)

    def put(
        self, record: AuditRecord, done: asyncio.Future[None] | None = None, *, spare: int = 0
    ) -> bool:
        """Have a record written, and `done` told then; False: there is no room for it.

        Never waits. The caller decides what becomes of one that was not taken. `spare` is room that
        it may have beyond what there is for all.
        """
        if self.waiting >= WAITING_MAX + spare or self._is_closing:
            return False
        self._waiting.append(_Waiting(record, done))
        self._work.set()
        return True

    def dropped(self, record: AuditRecord) -> None:
        """Count a record that will never be written."""
        self._dropped[record.event] += record.count
        self.dropped_total += record.count

    # --- running --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write, for as long as the node runs."""
        pause_s = FIRST_LOOK_S
        try:
            while not (self._is_closing and not self._waiting):
                if not self._waiting:
                    self._work.clear()
                    try:
                        async with asyncio.timeout(pause_s):
                            await self._work.wait()
                    except TimeoutError:
                        pause_s = WITNESS_S
                        await self._look()
                        continue
                await self._write_some()
        finally:
            self._has_ended.set()

    async def close(self) -> None:
        """Write what waits, and that this writer ends; gives up after a moment."""
        if self._chain is not None:
            self.put(self._own(END))
        self._is_closing = True
        self._work.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S_MAX):
                await self._has_ended.wait()
        left = [one.record for one in (*self._under_way, *self._waiting)]
        lost = sum(one.count for one in left if one.event is not AuditEvent.AUDIT)
        if lost:
            _log.warning("audit records were not written", extra={"count": lost})

    async def _look(self) -> None:
        """Vouch for what others have written, and see to the topic; another time if it fails."""
        try:
            if not self._topic.is_there:
                return
            await self._topic.tend()
            await self._tail.catch_up(self._writer)
        except (AngariumError, TimeoutError) as error:
            _log.debug("the audit records could not be looked at", extra={"reason": str(error)})
            return
        if self._tail.has_news:
            self.put(self._own(WITNESS))

    async def _write_some(self) -> None:
        some = [self._waiting.popleft() for _ in range(min(len(self._waiting), TOGETHER_MAX))]
        if self._dropped:
            some.insert(0, _Waiting(self._told_dropped(), None))
        self._under_way = some
        refusal: AuditUnwritable | None = None
        try:
            await self._written([one.record for one in some])
        except AuditUnwritable as error:
            refusal = error
        except asyncio.CancelledError:
            self._waiting.extendleft(reversed(some))
            raise
        finally:
            self._under_way = []
        for one in some:
            if refusal is None:
                self.written[one.record.event] += 1
            else:
                self.dropped(one.record)
            if one.done is not None and not one.done.done():
                if refusal is None:
                    one.done.set_result(None)
                else:
                    one.done.set_exception(refusal)

    def _told_dropped(self) -> AuditRecord:
        dropped, self._dropped = self._dropped, Counter()
        kinds = ", ".join(f"{count} of {event}" for event, count in sorted(dropped.items()))
        return self._own(DROP, count=dropped.total(), details=f"no room for them: {kinds}")

    # --- one batch ------------------------------------------------------------------------------

    async def _written(self, records: SequenceOf[AuditRecord]) -> None:
        """Write records, however long it takes; `AuditUnwritable` if they never can be."""
        tries = Tries(PAUSES)
        linked: _Linked | None = None
        while True:
            try:
                async with asyncio.timeout(ATTEMPT_S_MAX):
                    if self._chain is None:
                        records = [await self._begun(), *records]
                    if linked is None:
                        await self._topic.made()
                        await self._seen()
                        linked = self._linked(records)
                    if await self._published(linked):
                        return
            except (AngariumError, TimeoutError) as error:
                if isinstance(error, InvalidArgument | TooLarge):
                    # A mistake of ours; the same records again would be refused again.
                    _log.exception("audit records were refused, and are dropped")
                    raise AuditUnwritable(str(error)) from None
                _log.debug("audit records wait", extra={"reason": str(error)})
                await tries.pause()
                continue
            # The partition does not know this producer any more: go on as another writer.
            self._chain = linked = None
            records = [one for one in records if one.what != BEGIN]

    async def _begun(self) -> AuditRecord:
        """Become a writer; return its first record."""
        self._producer = await self._service.open_producer()
        self._chain = Chain(f"{self._node.id}-{secrets.token_hex(8)}")
        self._sequence = Sequence(0)
        return self._own(BEGIN, details=f"release {self._node.config.release.software}")

    async def _seen(self) -> None:
        """Look how far the topic has come; without it the record vouches for less."""
        if self._tail.is_stale:
            try:
                await self._tail.catch_up(self._writer)
            except AngariumError as error:
                _log.debug("the audit records could not be read", extra={"reason": str(error)})
        self._tail.has_news = False

    def _linked(self, records: SequenceOf[AuditRecord]) -> _Linked:
        assert self._chain is not None
        assert self._producer is not None
        seen = self._tail.seen
        links = [self._chain.linked(one, seen) for one in records]
        batch = encode(
            [value for value, _ in links],
            keys=[self._writer.encode()] * len(links),
            headers=[((HASH_HEADER, found.hex().encode()),) for _, found in links],
            timestamps=self._node.now(),
            producer_id=self._producer.id,
            epoch=self._producer.epoch,
            sequence=self._sequence,
        )
        return _Linked(bytes(batch), [found for _, found in links])

    async def _published(self, linked: _Linked) -> bool:
        """Publish a batch; False if nobody can tell whether it was published before."""
        request = PublishRequest(
            topic=AUDIT_TOPIC,
            partition=0,
            batches=(linked.batch,),
            mode=DeliveryMode.CONSISTENT,
        )
        try:
            (ack,) = await self._service.publish(request)
        except NotFound:
            self._topic.forget()
            raise
        if ack.code:
            _log.warning("a new writer of audit records begins", extra={"reason": ack.message})
            return False
        self._sequence = Sequence(self._sequence + len(linked.hashes))
        self._tail.wrote(ack.base_offset, linked.hashes)
        return True

    # --- its own records ------------------------------------------------------------------------

    @property
    def _writer(self) -> str:
        return "" if self._chain is None else self._chain.writer

    def _own(self, what: str, *, count: int = 1, details: str = "") -> AuditRecord:
        return AuditRecord(
            time=time_text(self._node.now()),
            node=self._node.id,
            event=AuditEvent.AUDIT,
            outcome=AuditOutcome.FAILED if what == DROP else AuditOutcome.ALLOWED,
            what=what,
            count=count,
            details=details,
        )

    def families(self) -> Iterator[Family]:
        """Return metrics."""
        yield Family(
            "angarium_audit_records_total",
            "counter",
            "Audit records written by this node, by what they are about.",
            tuple(Sample(self.written[one], (("event", one.value),)) for one in AuditEvent),
        )
        yield counter(
            "angarium_audit_dropped_total",
            "What was not recorded because too much waited to be.",
            self.dropped_total,
        )
        yield gauge("angarium_audit_waiting", "Audit records not written yet.", self.waiting)
