"""What a node writes down of the others' logs: of those who are who they say, while they belong."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace

from angarium.errors import DiskFull, StorageError, SyncFailed, Unreachable
from angarium.ids import Incarnation, NodeId, replica_id
from angarium.log.memory_disk import MemoryDisk
from angarium.log.peer_ends import PeerEnds
from angarium.node.admission import Admission
from angarium.node.marks import GREETING_S_MAX, Marks
from angarium.wire import Hello, Role
from angarium.wire.errors import RolledBack

if TYPE_CHECKING:
    from angarium.node.node import Node

OTHER = NodeId(2)
KNOWN = Incarnation(20)


class Around:
    """A node that knows node 2, and whoever answers as it."""

    def __init__(self) -> None:
        self.nodes = SimpleNamespace(
            by_id={OTHER: SimpleNamespace(incarnation=KNOWN)}, next_id=NodeId(3)
        )
        self.answers = KNOWN
        self.process = 1
        self.disk = MemoryDisk()
        machine = SimpleNamespace(nodes=self.nodes)
        replica = SimpleNamespace(catalog=SimpleNamespace(machine=machine))
        node = SimpleNamespace(
            host=SimpleNamespace(catalog=replica),
            peers=SimpleNamespace(connection=lambda _: self._connection()),
        )
        node.admission = Admission(cast("Node", node))
        self._node = cast("Node", node)
        self.time_s = 0.0
        self.marks = Marks(self._node, self.disk, clock=lambda: self.time_s)

    def start_again(self) -> None:
        """Be another process, which knows what lies on the disk."""
        self.marks = Marks(self._node, self.disk)
        self.marks.load()

    def _connection(self) -> object:
        return SimpleNamespace(peer=SimpleNamespace(hello=self.greeting()))

    def greeting(self, end: int = 0) -> Hello:
        """What node 2 says, when its log ends at `end`."""
        return Hello(
            role=Role.PEER,
            node=OTHER,
            incarnation=self.answers,
            process=self.process,
            log_end=end,
        )

    def saved(self) -> dict[int, int]:
        asyncio.run(self.marks.save())
        return {int(replica): end for replica, end in PeerEnds(self.disk).load().items()}


def test_nodes_that_were_removed_are_forgotten() -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    assert around.saved() == {replica_id(OTHER, KNOWN): 700}
    del around.nodes.by_id[OTHER]
    assert around.saved() == {}


def test_somebody_else_who_answers_as_a_node_is_not_remembered_in_its_place() -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    around.answers = Incarnation(66)
    around.marks.note(OTHER, 900)
    assert around.saved() == {replica_id(OTHER, KNOWN): 700}


def test_a_process_that_comes_back_with_a_shorter_log_was_rolled_back() -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    around.process = 2
    with pytest.raises(RolledBack):
        around.marks.check(around.greeting(699))
    around.marks.check(around.greeting(700))


def test_a_greeting_that_was_overtaken_by_an_answer_is_to_be_said_again() -> None:
    """They come by two connections, and a node's log grows between the two."""
    around = Around()
    for end in (700, 900):
        overtaken = around.greeting(end - 1)
        around.marks.note(OTHER, end)
        with pytest.raises(Unreachable, match="again"):
            around.marks.check(overtaken)
        around.marks.check(around.greeting(end))


def test_the_next_greeting_may_be_overtaken_as_well() -> None:
    around = Around()
    for end in (700, 900, 1_100):
        overtaken = around.greeting(end - 100)
        around.marks.note(OTHER, end)
        with pytest.raises(Unreachable, match="again"):
            around.marks.check(overtaken)


def test_all_greetings_that_lay_in_wait_for_a_node_that_was_paused_may_be_overtaken() -> None:
    """Who dials it gives up and dials again; it reads all of that when it is resumed."""
    around = Around()
    waiting = [around.greeting(end) for end in (600, 640, 620, 680)]
    around.marks.note(OTHER, 700)
    for one in waiting:
        with pytest.raises(Unreachable, match="again"):
            around.marks.check(one)
        around.time_s += 1.0
    around.marks.check(around.greeting(700))


def test_both_links_of_a_node_may_be_overtaken() -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    for role in (Role.PEER, Role.PEER_BULK):
        with pytest.raises(Unreachable):
            around.marks.check(replace(around.greeting(600), role=role))


def test_a_running_process_that_says_again_that_its_log_is_shorter_was_rolled_back() -> None:
    """A virtual machine that was put back with its memory is the same process as before."""
    around = Around()
    around.marks.note(OTHER, 700)
    with pytest.raises(Unreachable):
        around.marks.check(around.greeting(600))
    around.marks.note(OTHER, 650)
    around.time_s += GREETING_S_MAX + 0.1
    for end in (650, 699):
        with pytest.raises(RolledBack):
            around.marks.check(around.greeting(end))


def test_what_was_heard_in_an_earlier_life_of_this_node_was_overtaken_by_nothing() -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    around.saved()
    around.start_again()
    with pytest.raises(RolledBack):
        around.marks.check(around.greeting(699))


@pytest.mark.parametrize(
    "trouble",
    [
        DiskFull("no room"),
        StorageError("open marks.draft: Too many open files"),
        SyncFailed("fdatasync of marks: Input/output error"),
        PermissionError(13, "Permission denied"),
        OSError(23, "Too many open files in system"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_file_that_cannot_be_written_is_tried_again_and_ends_nothing(trouble: Exception) -> None:
    around = Around()
    around.marks.note(OTHER, 700)
    create = around.disk.create

    def refuse(name: str) -> object:
        raise trouble

    around.disk.create = refuse  # type: ignore[assignment, method-assign]
    assert around.saved() == {}
    around.disk.create = create  # type: ignore[method-assign]
    assert around.saved() == {replica_id(OTHER, KNOWN): 700}, "without further news"


def test_a_file_that_cannot_be_read_is_as_good_as_none() -> None:
    around = Around()

    def refuse(name: str) -> object:
        raise StorageError(f"open {name}: Permission denied")

    around.disk.open = refuse  # type: ignore[assignment, method-assign]
    around.start_again()
    around.marks.check(around.greeting(1))


def test_a_saving_that_is_under_way_when_the_node_stops_ends_before_the_file_is_closed() -> None:
    around = Around()
    begun, may_end, done = threading.Event(), threading.Event(), []
    create = around.disk.create

    def slowly(name: str) -> object:
        begun.set()
        assert may_end.wait(10)
        done.append(name)
        return create(name)

    around.disk.create = slowly  # type: ignore[assignment, method-assign]

    async def story() -> None:
        around.marks.note(OTHER, 700)
        running = asyncio.create_task(around.marks.run())
        assert await asyncio.to_thread(begun.wait, 10)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        closing = asyncio.create_task(around.marks.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        may_end.set()
        await closing
        assert done

    asyncio.run(story())
    assert around.saved() == {replica_id(OTHER, KNOWN): 700}


def test_a_saving_that_fails_while_the_node_stops_is_tried_once_more() -> None:
    around = Around()
    begun, may_end = threading.Event(), threading.Event()
    create = around.disk.create

    def fail_late(name: str) -> object:
        begun.set()
        assert may_end.wait(10)
        around.disk.create = create  # type: ignore[method-assign]
        raise StorageError("too late")

    around.disk.create = fail_late  # type: ignore[assignment, method-assign]

    async def story() -> None:
        around.marks.note(OTHER, 700)
        running = asyncio.create_task(around.marks.run())
        assert await asyncio.to_thread(begun.wait, 10)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        may_end.set()
        await around.marks.save()
        await around.marks.close()

    asyncio.run(story())
    loaded = PeerEnds(around.disk).load()
    assert loaded == {replica_id(OTHER, KNOWN): 700}
