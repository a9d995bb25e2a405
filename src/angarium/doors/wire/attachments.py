"""ATTACH: members of groups that talk to other nodes, at the leader of their partitions.

Translation only; `wire.operations.members` says how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from angarium.api.groups import RANGES_MAX
from angarium.errors import AngariumError, InvalidArgument
from angarium.ids import NodeId
from angarium.lending.ports import Lending, Membership, Opening, Seat, Wanted
from angarium.wire import StreamOutbox
from angarium.wire.operations.members import (
    Allow,
    Allowed,
    Ask,
    Attach,
    Attached,
    AttachHeader,
    Detach,
    Dropped,
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
    from angarium.lending.host import GroupHost
    from angarium.lending.seat import LedSeat
    from angarium.wire import Stream


async def attach(stream: Stream, host: GroupHost) -> None:
    """Serve one member that talks to another node, at the leader of its partitions."""
    header = stream.opening.read(AttachHeader)
    node = NodeId(stream.peer.hello.node)
    membership = Membership(header.group, header.member, node, header.session, header.topics)
    outbox = StreamOutbox(stream)
    seats: dict[int, LedSeat] = {}
    is_goodbye = False
    try:
        async for frame in stream:
            said: Upward = frame.read(Upward)  # type: ignore[arg-type]
            if isinstance(said, Attach):
                if said.number in seats:
                    raise InvalidArgument(f"the number {said.number} is in use")
                sink = _StreamSink(outbox, said.number, seats)
                seats[said.number] = host.attach(membership, _wanted(said), sink)
            elif (seat := seats.get(said.number)) is not None:
                _say(seat, said)
                if isinstance(said, Detach):
                    del seats[said.number]
            # Else it was dropped meanwhile; the agent has heard, and asks its next leader.
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
    return Wanted(
        said.topic, said.partition, opening, said.credit, said.held, may_open=said.may_open
    )


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

    def __init__(self, outbox: StreamOutbox, number: int, seats: dict[int, LedSeat]) -> None:
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
