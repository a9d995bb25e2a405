"""Raft messages to and from one peer: what is posted in one turn of the event loop leaves together.

Messages may be lost, here as anywhere on the way: Raft repeats what matters. So nothing waits for
a peer that is away or too slow; what is not sent is counted.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from angarium.errors import LimitExceeded
from angarium.wire.raft_codec import RAFT_OPERATION, packed_messages, unpacked_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import GroupId
    from angarium.raft.messages import Message
    from angarium.wire.connection import Connection
    from angarium.wire.frames import Frame
    from angarium.wire.handlers import MessageHandler
    from angarium.wire.link import Link
    from angarium.wire.raft_codec import Addressed

POSTED_MAX: Final = 65_536
"""Messages posted in one turn. More are dropped and counted, as if the peer were too slow."""

_log = logging.getLogger(__name__)


class RaftMail:
    """The way to one peer."""

    __slots__ = ("_link", "_loop", "_posted", "messages_dropped", "messages_sent")

    def __init__(self, link: Link) -> None:
        self.messages_sent = 0
        self.messages_dropped = 0
        """Raft messages not sent: the peer is away or too slow, or one was too large."""
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._posted: list[Addressed] = []

    def post(self, group: GroupId, message: Message) -> None:
        """Send `message` at the end of this turn, together with the others."""
        if not self._link.is_up or len(self._posted) == POSTED_MAX:
            self.messages_dropped += 1
            return
        self._posted.append((group, message))
        if len(self._posted) == 1:
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send what was posted now, instead of at the end of the turn."""
        posted, self._posted = self._posted, []
        connection = self._link.connection
        sent = 0
        if posted and connection is not None:
            limit = connection.peer.hello.frame_bytes_max
            try:
                for frame in packed_messages(posted, frame_bytes_max=limit):
                    if connection.send(RAFT_OPERATION, frame.header, frame.payload):
                        sent += frame.message_count
            except LimitExceeded as error:
                _log.error("a Raft message cannot travel to %s: %s", connection.address, error)
        self.messages_sent += sent
        self.messages_dropped += len(posted) - sent


def raft_handler(deliver: Callable[[Connection, list[Addressed]], None]) -> MessageHandler:
    """Return the handler of `RAFT_OPERATION` that gives a frame's messages to `deliver`."""

    def handle(connection: Connection, frame: Frame) -> None:
        deliver(connection, unpacked_messages(frame.header, frame.payload))

    return handle
