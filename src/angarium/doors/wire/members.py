"""Groups between nodes, at the leader's. Translation only; `wire.operations.members` says how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, assert_never

from angarium.errors import AngariumError, InvalidArgument
from angarium.ids import NodeId
from angarium.service.groups.ports import Lending, Membership, Opening, Seat, Sink, Wanted
from angarium.wire import StreamOutbox, packed
from angarium.wire.operations import RANGES_MAX, Operation
from angarium.wire.operations.members import (
    Allow,
    Allowed,
    Ask,
    Attach,
    Attached,
    AttachHeader,
    Detach,
    Dropped,
    GroupLookAnswer,
    GroupLookHeader,
    GroupWishHeader,
    Lent,
    Taken,
    Told,
    Upward,
    Withdrawn,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import GroupConfig, Settled
    from angarium.kinds import GroupKind
    from angarium.wire import Request, Stream
    from angarium.wire.handlers import RequestHandler, StreamHandler
    from angarium.wire.operations.members import GroupSeen, WishDone


class OrphanSeat(Seat, Protocol):
    """A seat whose agent may go away."""

    def orphan(self) -> None:
        """Hear that the agent cannot be reached; it may come back."""


class Hosting(Protocol):
    """Lets members take part in partitions that this node leads."""

    def attach(self, membership: Membership, wanted: Wanted, sink: Sink) -> OrphanSeat:
        """Let a member take part. What comes of it, the sink hears."""


class Granting(Protocol):
    """Carries out what is wanted of groups in partitions that this node leads."""

    async def grant(self, header: GroupWishHeader) -> WishDone:
        """Carry it out; raises why it cannot be."""


class Seeing(Protocol):
    """Knows what this node's replicas know."""

    def seen_here(self, header: GroupLookHeader) -> tuple[GroupSeen, ...]:
        """Return it."""


class MembersDoor:
    """What other nodes may ask about groups."""

    def __init__(self, host: Hosting, wishes: Granting, looking: Seeing) -> None:
        self._host = host
        self._wishes = wishes
        self._looking = looking

    def requests(self) -> dict[Operation, RequestHandler]:
        """Return the handlers of requests."""
        return {Operation.GROUP_WISH: self._wish, Operation.GROUP_LOOK: self._look}

    def streams(self) -> dict[Operation, StreamHandler]:
        """Return the handlers of streams."""
        return {Operation.ATTACH: self._attach}

    async def _wish(self, request: Request) -> None:
        request.answer(await self._wishes.grant(request.read(GroupWishHeader)))

    async def _look(self, request: Request) -> None:
        seen = self._looking.seen_here(request.read(GroupLookHeader))
        request.answer(b"", [packed(GroupLookAnswer(seen))])

    async def _attach(self, stream: Stream) -> None:
        header = stream.opening.read(AttachHeader)
        node = NodeId(stream.peer.hello.node)
        membership = Membership(header.group, header.member, node, header.session, header.topics)
        outbox = StreamOutbox(stream)
        seats: dict[int, OrphanSeat] = {}
        is_goodbye = False
        try:
            async for frame in stream:
                said: Upward = frame.read(Upward)  # type: ignore[arg-type]
                if isinstance(said, Attach):
                    if said.number in seats:
                        raise InvalidArgument(f"the number {said.number} is in use")
                    sink = _StreamSink(outbox, said.number, seats)
                    seats[said.number] = self._host.attach(membership, _wanted(said), sink)
                    continue
                seat = seats.get(said.number)
                if seat is not None:
                    _say(seat, said)
                    if isinstance(said, Detach):
                        del seats[said.number]
                elif isinstance(said, Ask):
                    pass  # dropped meanwhile; the agent has heard, and asks its next leader
            is_goodbye = True
        finally:
            outbox.close()
            for seat in list(seats.values()):
                if is_goodbye:
                    seat.detach(lost=False)
                else:
                    seat.orphan()


def _wanted(said: Attach) -> Wanted:
    opening = Opening(said.kind, said.config, said.start)
    return Wanted(said.topic, said.partition, opening, said.credit, said.held)


def _say(seat: Seat, said: Detach | Allow | Taken | Ask) -> None:
    match said:
        case Taken():
            seat.taken(said.bytes)
        case Ask():
            seat.ask(said.ask, said.settlements)
        case Allow():
            seat.allow(said.credit)
        case Detach():
            seat.detach(lost=said.lost)
        case _:
            assert_never(said)


class _StreamSink:
    """An agent at the other end of a stream."""

    __slots__ = ("_number", "_outbox", "_seats")

    def __init__(self, outbox: StreamOutbox, number: int, seats: dict[int, OrphanSeat]) -> None:
        self._outbox = outbox
        self._number = number
        self._seats = seats

    def attached(self, kind: GroupKind, config: GroupConfig) -> None:
        self._outbox.put(Attached(self._number, kind, config))

    def lent(self, lending: Lending) -> None:
        told = Lent(
            self._number, lending.ranges, lending.attempt, lending.lease_ms, lending.generation
        )
        self._outbox.put(told, lending.batches)

    def told(self, ask: int, settled: Sequence[Settled]) -> None:
        self._outbox.put(Told(ask, tuple(settled)))

    def allowed(self, credit: int) -> None:
        self._outbox.put(Allowed(self._number, credit))

    def withdrawn(self, ranges: tuple[int, ...]) -> None:
        for start in range(0, len(ranges), 2 * RANGES_MAX):
            self._outbox.put(Withdrawn(self._number, ranges[start : start + 2 * RANGES_MAX]))

    def dropped(self, error: AngariumError) -> None:
        self._seats.pop(self._number, None)
        self._outbox.put(Dropped(self._number, error.code, str(error), error.retriable))
