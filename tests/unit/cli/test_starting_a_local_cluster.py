"""The start of a local cluster: its order, what it waits for, and what ends it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from angarium.cli.complaints import Refusal
from angarium.cli.local.folder import LocalNode
from angarium.cli.local.starting import DEMO, Starting
from angarium.doors.status import Exit
from angarium.ids import NodeId

NOT_READY: Any = SimpleNamespace(nodes=(), topics=(), alive=0)


@dataclass
class FakeNode:
    """A node that writes down what is done with it, both its process and who answers for it."""

    number: int
    done: list[str] = field(default_factory=list)
    silent_for: int = 0
    """How often it is asked in vain."""
    trouble: str = ""
    ending: str = ""
    status: int | None = None

    def start(self) -> None:
        self.done.append(f"start {self.number}")

    def last_lines(self, count: int, /) -> list[str]:
        return ["goodbye"][:count]

    async def view(self) -> object | None:
        if self.silent_for:
            self.silent_for -= 1
            return None
        self.done.append(f"answer {self.number}")
        return object()

    async def create_topic(self, name: str, **_: object) -> None:
        self.done.append(f"create {name}")


@dataclass
class FakeFolder:
    """A folder in which some nodes have no data yet."""

    new: frozenset[int] = frozenset()
    path: Path = Path("cluster")

    def is_new(self, number: int, /) -> bool:
        return number in self.new

    def data(self, number: int, /) -> Path:
        return self.path / f"node-{number}"

    def log(self, number: int, /) -> Path:
        return self.path / f"node-{number}.log"


@dataclass
class Scene:
    """A start among fakes, and what it told."""

    fakes: dict[int, FakeNode]
    folder: FakeFolder = field(default_factory=FakeFolder)
    said: list[str] = field(default_factory=list)
    written: list[list[int | None]] = field(default_factory=list)
    """The ids in each state that was written down."""
    overviews: list[Any] = field(default_factory=list)
    """What the next looks at all nodes find."""

    def starting(self, **changes: Any) -> Starting:
        nodes = {
            number: LocalNode(number=number, wire_port=7400 + 10 * (number - 1), id=NodeId(7))
            for number in self.fakes
        }

        async def look() -> Any:
            return self.overviews.pop(0)

        parts: dict[str, Any] = {
            "folder": self.folder,
            "nodes": nodes,
            "children": self.fakes,
            "probes": self.fakes,
            "look": look,
            "may_join": lambda _: True,
            "write_state": lambda: self.written.append([one.id for one in nodes.values()]),
            "say": self.said.append,
        }
        return Starting(**parts | changes)


def ready(nodes: int) -> Any:
    demo = SimpleNamespace(name=DEMO, leaders=(1, 1, 1))
    return SimpleNamespace(nodes=(), topics=(demo,), alive=nodes)


def test_a_node_that_was_removed_is_named_with_the_folder_to_take_away() -> None:
    scene = Scene({2: FakeNode(2, silent_for=9, ending="ended", status=Exit.REMOVED)})
    hint = re.escape("`rm -r cluster/node-2` and start again")
    with pytest.raises(Refusal, match=hint):
        asyncio.run(scene.starting().run())
    assert scene.written[-1] == [None], "its next start asks for a new id"


def test_a_node_that_ends_is_named_with_the_end_of_its_log() -> None:
    scene = Scene({1: FakeNode(1, silent_for=9, ending="killed by SIGKILL", status=-9)})
    with pytest.raises(Refusal, match=r"node 1 killed by SIGKILL .*node-1\.log:\n    goodbye"):
        asyncio.run(scene.starting().run())


def test_members_are_started_before_those_that_they_are_to_let_in() -> None:
    # A node whose folder was gone was waited for before the others ran, who alone could let it in.
    done: list[str] = []
    scene = Scene(
        {number: FakeNode(number, done) for number in (1, 2, 3, 4)},
        folder=FakeFolder(new=frozenset({2, 4})),
    )
    asyncio.run(scene.starting().start_nodes())
    assert done[:6] == ["start 1", "start 3", "start 2", "answer 2", "start 4", "answer 4"]
    assert sorted(done[6:]) == [f"answer {number}" for number in (1, 2, 3, 4)]


def test_a_start_that_takes_long_says_what_it_waits_for() -> None:
    scene = Scene({1: FakeNode(1, silent_for=3)}, overviews=[NOT_READY] * 2 + [ready(1)])
    asyncio.run(scene.starting(patience_s=0.0).run())
    assert scene.said[0] == "still starting: node 1 does not answer at 127.0.0.1:7400 yet"
    assert scene.said[-1] == "still starting: not every partition has a leader"
    assert f"create {DEMO}" in scene.fakes[1].done
