"""Subjects: topics with one partition, whose offsets are the ids.

An id is a signed 32-bit number in this profile, so a subject ends at 2,147,483,648 of them. From
there on a publish is refused before anything is stored. The one that crosses the line unforeseen,
because others publish at the same time, is stored and refused: it has an offset, and no id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import FetchRequest, Start, StartAt
from angarium.api.stored_records import readable
from angarium.batch import NEVER
from angarium.doors import timing
from angarium.doors.feeds.following import Whole
from angarium.doors.feeds.positions import LIVE
from angarium.doors.intake import Intake, Outgoing
from angarium.errors import InvalidArgument, NotFound, OffsetOutOfRange, PreconditionFailed
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.service.patience import patiently
from angarium.wire.grpc import GrpcCode
from angarium_compat.listening import Refused
from angarium_compat.subscribing import subscribed_live

if TYPE_CHECKING:
    from typing import Protocol

    from angarium.api import Broker, FetchResult, OffsetBroker, PassingBroker, Subscription
    from angarium.doors.intake import Placed

    class SubjectBroker(Broker, OffsetBroker, PassingBroker, Protocol):
        """A broker that also gives offsets away, and hands on what passes."""


ID_END: Final = 1 << 31
"""Ids are below it."""

FULL_MAX: Final = 1_024
"""Subjects remembered as having used up their ids. At the bound the oldest is asked about again."""

_PARTITION: Final = 0
_SECOND_MICROS: Final = 1_000_000


class Subjects:
    """What the profile's calls do, in the contract's terms."""

    def __init__(self, broker: SubjectBroker) -> None:
        self._broker = broker
        self._intake = Intake(broker)
        self._full: dict[str, None] = {}

    # --- publishing -----------------------------------------------------------------------------

    async def publish(self, subject: str, body: bytes, *, expires_after_s: int) -> int:
        """Store a message on a majority of disks; return its id."""
        if expires_after_s < 0:
            raise InvalidArgument("expirationSeconds is 0, for ever, or a time that is to come")
        await self._check(subject)
        if subject in self._full:
            await self._check_full(subject)
        expires_at: int = NEVER
        if expires_after_s:
            expires_at = timing.now() + expires_after_s * _SECOND_MICROS
        record = Outgoing(body, expires_at=expires_at)
        placed = await self._published(subject, record, DeliveryMode.CONSISTENT)
        assert placed.ack.base_offset is not None
        return self._id(subject, placed.ack.base_offset + placed.row, "this message is stored")

    async def broadcast(self, subject: str, body: bytes) -> None:
        """Hand a message to the subscribers of this moment, on every node; it is not stored."""
        await self._check(subject)
        await self._published(subject, Outgoing(body), DeliveryMode.PERFORMANCE)

    async def reserve(self, subject: str) -> int:
        """Return the next id, which no message will have."""
        await self._check(subject)
        if subject in self._full:
            await self._check_full(subject)
        return self._id(
            subject, await patiently(lambda: self._broker.reserve(subject, _PARTITION, 1)), ""
        )

    async def _published(self, subject: str, record: Outgoing, mode: DeliveryMode) -> Placed:
        return await self._intake.sent(subject, record, partition=_PARTITION, mode=mode)

    # --- reading --------------------------------------------------------------------------------

    async def fetch(self, subject: str, number: int) -> bytes:
        """Return a message's body; an id that has none is refused, with the reason."""
        await self._check(subject)
        if number < 0:
            raise _never(subject, number)
        request = FetchRequest(
            topic=subject, partition=_PARTITION, offset=Offset(number), bytes_max=1
        )
        try:
            result = await self._broker.fetch(request)
            if number >= result.end_offset:
                # It may have been stored since by way of another node.
                result = await self._broker.fetch(
                    FetchRequest(
                        topic=subject,
                        partition=_PARTITION,
                        offset=Offset(number),
                        bytes_max=1,
                        fresh=True,
                    )
                )
        except NotFound:
            raise _never(subject, number) from None
        except OffsetOutOfRange as error:
            if number < getattr(error, "start", 0):
                raise _expired(subject, number) from None
            raise _never(subject, number) from None
        return _body(result, subject, number)

    async def subscribe(self, subject: str) -> Subscription:
        """Begin with what comes from now on; a subject that is not there is made."""
        await self._check(subject)
        return await subscribed_live(self._broker, Whole(subject, LIVE))

    # --- what a subject is ----------------------------------------------------------------------

    async def _check(self, subject: str) -> None:
        if not subject:
            raise InvalidArgument("subject is required")
        shape = await self._intake.shapes.of(subject)
        if shape.partitions != 1:
            raise PreconditionFailed(
                f"{subject!r} has {shape.partitions} partitions, and ids count up in one; clients"
                " of this kind need a topic with one partition"
            )

    async def _check_full(self, subject: str) -> None:
        end = await self._broker.find_offset(subject, _PARTITION, Start(StartAt.LATEST))
        if end >= ID_END:
            raise _used_up(subject, "")
        self._full.pop(subject, None)  # another topic has the name now

    def _id(self, subject: str, offset: int, what_happened: str) -> int:
        if offset >= ID_END - 1:
            if len(self._full) >= FULL_MAX:
                del self._full[next(iter(self._full))]
            self._full[subject] = None
        if offset >= ID_END:
            raise _used_up(
                subject, f"; {what_happened} at offset {offset}" if what_happened else ""
            )
        return offset


def _body(result: FetchResult, subject: str, number: int) -> bytes:
    expired = result.expired
    if any(first <= number < past for first, past in zip(expired[::2], expired[1::2], strict=True)):
        raise _expired(subject, number)
    for buffer in result.batches[:1]:
        batch = readable(buffer, topic=subject, partition=_PARTITION)
        if batch.base_offset <= number < batch.next_offset:
            for record in batch.slice(Offset(number), Offset(number + 1)):
                return record.value or b""
    # In between: reserved by IncIdx, or removed by a compaction.
    raise _never(subject, number)


def _never(subject: str, number: int) -> Refused:
    what = f"there is no message with id {number} in {subject!r}: none was published with it"
    return Refused(GrpcCode.INVALID_ARGUMENT, what)


def _expired(subject: str, number: int) -> Refused:
    what = f"the message with id {number} in {subject!r} has expired"
    return Refused(GrpcCode.INVALID_ARGUMENT, what)


def _used_up(subject: str, what_happened: str) -> PreconditionFailed:
    return PreconditionFailed(
        f"{subject!r} has used up its {ID_END:,} ids{what_happened}; publish to another subject, or"
        " through another door, where offsets go on"
    )
