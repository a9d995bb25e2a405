"""How a consumer's agent reaches the leaders: in this process, or over a stream to another node."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Protocol, assert_never

from angarium.batch import split
from angarium.errors import AngariumError
from angarium.lending.ports import Lending
from angarium.wire import ConnectionLost, StreamOutbox
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations import Operation
from angarium.wire.operations.members import (
    Allow,
    Allowed,
    Ask,
    Attach,
    Attached,
    AttachHeader,
    Detach,
    Downward,
    Dropped,
    Lent,
    Taken,
    Told,
    Withdrawn,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import Settlement
    from angarium.lending.host import GroupHost
    from angarium.lending.ports import Membership, Seat, Sink, Wanted
    from angarium.wire import Connection, Frame


class Post(Protocol):
    """A node that leads partitions, as one consumer's agent reaches it."""

    def attach(self, wanted: Wanted, sink: Sink) -> Seat:
        """Begin to take part in one partition. What comes of it, the sink hears."""

    def close(self) -> None:
        """Let go of it, with all its seats."""


class LocalPost:
    """This node itself."""

    def __init__(self, host: GroupHost, membership: Membership) -> None:
        self._host = host
        self._membership = membership

    def attach(self, wanted: Wanted, sink: Sink) -> Seat:
        """Begin to take part in one partition."""
        return self._host.attach(self._membership, wanted, sink)

    def close(self) -> None:
        """Nothing to let go of."""


class RemotePost:
    """Another node, over a stream of its own."""

    def __init__(
        self, connection: Connection, membership: Membership, *, on_gone: Callable[[], None]
    ) -> None:
        """Open the stream; `on_gone` hears when it is over, after all sinks were dropped."""
        stream = connection.open_stream(
            Operation.ATTACH,
            AttachHeader(
                group=membership.group,
                member=membership.member,
                session=membership.session,
                topics=membership.topics,
            ),
        )
        self._stream = stream
        self.outbox = StreamOutbox(stream)
        self._sinks: dict[int, Sink] = {}
        self._numbers = count(1)
        self._on_gone = on_gone
        self._task = asyncio.create_task(self._read())

    def attach(self, wanted: Wanted, sink: Sink) -> Seat:
        """Begin to take part in one partition."""
        number = next(self._numbers)
        self._sinks[number] = sink
        opening = wanted.opening
        self.outbox.put(
            Attach(
                number,
                wanted.topic,
                wanted.partition,
                wanted.credit,
                wanted.held,
                opening.kind,
                opening.config,
                opening.start,
                wanted.may_open,
            )
        )
        return _RemoteSeat(self, number)

    def close(self) -> None:
        """End the stream once what was said has left."""
        self._sinks.clear()
        self.outbox.end()

    def forget(self, number: int) -> None:
        """Hear nothing more of a partition."""
        self._sinks.pop(number, None)

    async def _read(self) -> None:
        error: AngariumError | None = None
        try:
            async for frame in self._stream:
                self._take(frame)
        except AngariumError as broken:
            error = broken
        finally:
            self.outbox.close()
            sinks, self._sinks = self._sinks, {}
            for sink in sinks.values():
                sink.dropped(_retriable(error))
            self._on_gone()

    def _take(self, frame: Frame) -> None:
        told: Downward = frame.read(Downward)  # type: ignore[arg-type]
        if isinstance(told, Told):
            # Numbers of asks are the sink's own and say whose they are: see `_RemoteSeat.ask`.
            number, ask = told.ask >> _ASK_BITS, told.ask & _ASK_MASK
            sink = self._sinks.get(number)
            if sink is not None:
                sink.told(ask, told.settled)
            return
        sink = self._sinks.get(told.number)
        if sink is None:
            return
        match told:
            case Lent():
                batches = tuple(split(frame.payload))
                sink.lent(
                    Lending(
                        told.ranges,
                        batches,
                        len(frame.payload),
                        told.attempt,
                        told.lease_ms,
                        told.generation,
                    )
                )
            case Attached():
                sink.attached(told.kind, told.config)
            case Allowed():
                sink.allowed(told.credit)
            case Withdrawn():
                sink.withdrawn(told.ranges)
            case Dropped():
                del self._sinks[told.number]
                sink.dropped(error_of(Failure(told.code, told.message, told.retriable)))
            case _:
                assert_never(told)


_ASK_BITS = 32
_ASK_MASK = (1 << _ASK_BITS) - 1


class _RemoteSeat:
    """One partition's number on the stream."""

    __slots__ = ("_number", "_post")

    def __init__(self, post: RemotePost, number: int) -> None:
        self._post = post
        self._number = number

    def allow(self, credit: int) -> None:
        """Have no more than so many records on loan."""
        self._post.outbox.put(Allow(self._number, credit))

    def taken(self, size: int) -> None:
        """Say that so many bytes were passed on to the consumer."""
        self._post.outbox.put(Taken(self._number, size))

    def ask(self, ask: int, settlements: Sequence[Settlement]) -> None:
        """Settle records."""
        number = self._number << _ASK_BITS | ask & _ASK_MASK
        self._post.outbox.put(Ask(self._number, number, tuple(settlements)))

    def detach(self, *, lost: bool) -> None:
        """Leave."""
        self._post.forget(self._number)
        self._post.outbox.put(Detach(self._number, lost))


def _retriable(error: AngariumError | None) -> AngariumError:
    """Return why a stream is over as something to try again, which it is, with another node."""
    if error is not None and error.retriable:
        return error
    return ConnectionLost(
        f"the leader's node ended the connection: {error or 'it ended the stream'}"
    )
