"""Raft mail: one frame per turn, drops counted, damage disconnects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.unit.wire.running import LOCALHOST, eventually, listening

from angarium.ids import GroupId, Index, Term
from angarium.raft.messages import Entry, Message, MessageKind
from angarium.wire import Connection, Handlers, Hello, InvalidFrame, Link, Role, WireLimits
from angarium.wire.raft_codec import RAFT_OPERATION, Addressed
from angarium.wire.raft_mail import RaftMail, raft_handler

if TYPE_CHECKING:
    from tests.unit.wire.running import Runner

BEAT = Message(kind=MessageKind.HEARTBEAT, term=Term(3))
SMALL = WireLimits(frame_bytes_max=100_000, header_bytes_max=65_536)


def append(size: int) -> Message:
    return Message(kind=MessageKind.APPEND, entries=(Entry(Term(1), Index(1), bytes(size)),))


def test_what_is_posted_in_one_turn_arrives_in_one_frame_in_order(run: Runner) -> None:
    async def main() -> None:
        frames: list[list[Addressed]] = []

        def deliver(_: Connection, messages: list[Addressed]) -> None:
            frames.append(messages)

        handlers = Handlers(messages={RAFT_OPERATION: raft_handler(deliver)})
        async with listening(handlers, limits=SMALL) as server:
            link = Link(
                host=LOCALHOST, port=server.port, greeting=lambda: Hello(role=Role.PEER, node=2)
            )
            mail = RaftMail(link)
            mail.post(GroupId(1), BEAT)
            assert mail.messages_dropped == 1
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(link.run())
                await eventually(lambda: link.is_up)
                for group in range(50):
                    mail.post(GroupId(group), BEAT)
                mail.post(GroupId(77), append(1000))
                await eventually(lambda: frames)
                assert [group for group, _ in frames[0]] == [*range(50), 77]
                assert frames[0][-1][1] == append(1000)
                assert mail.messages_sent == 51

                mail.post(GroupId(1), append(200_000))
                mail.post(GroupId(2), BEAT)
                await eventually(lambda: len(frames) == 2)
                assert frames[1] == [(GroupId(2), BEAT)]
                assert (mail.messages_sent, mail.messages_dropped) == (52, 2)

                mail.post(GroupId(3), BEAT)
                await link.stop()
                mail.flush()
                assert mail.messages_dropped + mail.messages_sent == 55

    run(main())


def test_a_damaged_raft_frame_ends_the_connection(run: Runner) -> None:
    async def main() -> None:
        handlers = Handlers(messages={RAFT_OPERATION: raft_handler(lambda *_: None)})
        async with listening(handlers) as server:
            link = Link(
                host=LOCALHOST, port=server.port, greeting=lambda: Hello(role=Role.PEER, node=2)
            )
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(link.run())
                await eventually(lambda: link.is_up)
                connection = link.connection
                assert connection is not None
                link.send(RAFT_OPERATION, b"\x01\x00\x00\x00", (b"\xc1",))
                await connection.wait_closed()
                assert isinstance(connection.error, InvalidFrame)
                await link.stop()

    run(main())
