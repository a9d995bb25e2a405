"""The start of a local cluster: the order of its nodes, what it waits for, and why it fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from angarium.api import TopicConfig
from angarium.cli.complaints import Refusal
from angarium.cli.local.folder import LocalNode
from angarium.cli.output import readable
from angarium.doors.status import Exit
from angarium.errors import AlreadyExists, AngariumError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping
    from pathlib import Path

    from angarium.cli.overview import Overview

DEMO: Final = "demo"
DEMO_PARTITIONS: Final = 3

START_SECONDS_MAX: Final = 60.0
"""A cluster that is not ready by then is stopped, with the reason as far as it is known."""

PATIENCE_SECONDS: Final = 5.0
"""A start that takes longer says what it waits for, and again after as long."""

EAGER_SECONDS: Final = 0.05
"""How often the nodes are asked while they start."""


class Process(Protocol):
    """A node's process, as a start needs it: `cli.local.processes.Child`."""

    @property
    def ending(self) -> str:
        """How it ended; empty while it runs."""

    @property
    def status(self) -> int | None:
        """Its exit status."""

    def start(self) -> None:
        """Start it."""

    def last_lines(self, count: int, /) -> list[str]:
        """Return the end of its log."""


class Asked(Protocol):
    """A node that may answer: `cli.probe.Probe`."""

    @property
    def trouble(self) -> str:
        """What it said instead of an answer; empty if it says nothing at all."""

    async def view(self) -> object | None:
        """Return what the node sees, or None while it does not answer."""

    async def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> object:
        """Make a topic."""


class Files(Protocol):
    """What a start asks the cluster's folder: `cli.local.folder.Folder`."""

    @property
    def path(self) -> Path:
        """Where it is."""

    def is_new(self, number: int, /) -> bool:
        """Tell whether a node has no data yet."""

    def data(self, number: int, /) -> Path:
        """Return where a node keeps its data."""

    def log(self, number: int, /) -> Path:
        """Return where a node writes its log."""


class Starting:
    """Starts the nodes of a cluster and returns once they can be used."""

    def __init__(
        self,
        *,
        folder: Files,
        nodes: MutableMapping[int, LocalNode],
        children: Mapping[int, Process],
        probes: Mapping[int, Asked],
        look: Callable[[], Awaitable[Overview]],
        may_join: Callable[[int], bool],
        write_state: Callable[[], None],
        say: Callable[[str], None],
        patience_s: float = PATIENCE_SECONDS,
    ) -> None:
        """Take the cluster's parts by their node's number; `nodes` is kept up to date.

        `may_join` tells whether a new node may ask to be let in already.
        """
        self._folder = folder
        self._nodes = nodes
        self._children = children
        self._probes = probes
        self._look = look
        self._may_join = may_join
        self._write_state = write_state
        self._say = say
        self._patience_s = patience_s
        self._hindrance = ""
        """What is waited for: a node that does not answer, or does not do as asked."""
        self._last: Overview | None = None

    async def run(self) -> None:
        """Start everything; raises `Refusal` when a node ends, or this takes too long."""
        telling = asyncio.create_task(self._tell_what_is_waited_for())
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                await self.start_nodes()
                await self._create_demo()
                while not self._is_ready(await self._looked()):
                    self._check_children()
                    await asyncio.sleep(EAGER_SECONDS)
        except TimeoutError:
            raise Refusal(
                f"the cluster was not ready after {START_SECONDS_MAX:.0f} s:"
                f" {self._waited_for()}. The logs are in {self._folder.path}/node-*.log."
            ) from None
        finally:
            telling.cancel()

    async def start_nodes(self) -> None:
        """Start all processes, in an order in which they can let each other in."""
        new = [number for number in self._children if self._folder.is_new(number)]
        # Those that are members first: it takes a majority of them to let a new one in.
        for number, child in self._children.items():
            if number not in new:
                child.start()
        for number in new:
            # One after the other, so that they are numbered in this order.
            self._hindrance = f"nobody has invited node {number} yet"
            while not self._may_join(number):
                self._check_children()
                await asyncio.sleep(EAGER_SECONDS)
            self._children[number].start()
            await self._answer_of(number)
        self._write_state()
        for number in self._children:
            await self._answer_of(number)

    async def _answer_of(self, number: int) -> None:
        probe, where = self._probes[number], self._nodes[number].wire
        self._hindrance = f"node {number} does not answer at {where} yet"
        while await probe.view() is None:
            if probe.trouble:
                self._hindrance = f"node {number} at {where} says: {probe.trouble}"
            self._check_children()
            await asyncio.sleep(EAGER_SECONDS)
        self._hindrance = ""

    async def _create_demo(self) -> None:
        """Create the topic; a cluster that is just being formed may refuse at first."""
        while True:
            try:
                await self._probes[1].create_topic(
                    DEMO, partitions=DEMO_PARTITIONS, config=TopicConfig()
                )
            except AlreadyExists:
                return
            except AngariumError as error:
                self._hindrance = f"the topic {DEMO} cannot be created: {error}"
                self._check_children()
                await asyncio.sleep(EAGER_SECONDS)
            else:
                self._hindrance = ""
                return

    async def _looked(self) -> Overview:
        self._last = await self._look()
        return self._last

    def _is_ready(self, now: Overview) -> bool:
        demo = next((topic for topic in now.topics if topic.name == DEMO), None)
        has_leaders = demo is not None and None not in demo.leaders
        return now.alive == len(self._nodes) and has_leaders

    def _check_children(self) -> None:
        for number, child in self._children.items():
            if child.ending:
                lines = child.last_lines(5)
                if child.status == Exit.REMOVED:
                    # Without its folder it would ask to come back under the id that is gone.
                    wire_port = self._nodes[number].wire_port
                    self._nodes[number] = LocalNode(number=number, wire_port=wire_port)
                    self._write_state()
                    raise Refusal(
                        f"node {number} was removed from this cluster, and its folder is still"
                        f" there. `rm -r {self._folder.data(number)}` and start again: it joins"
                        " as a new node."
                    )
                said = "\n".join(f"    {readable(line.encode())}" for line in lines)
                raise Refusal(
                    f"node {number} {child.ending} while the cluster was starting; the end of"
                    f" {self._folder.log(number)}:\n{said}"
                )

    async def _tell_what_is_waited_for(self) -> None:
        while True:
            await asyncio.sleep(self._patience_s)
            self._say(f"still starting: {self._waited_for()}")

    def _waited_for(self) -> str:
        if self._hindrance:
            return self._hindrance
        nodes = self._last.nodes if self._last else ()
        silent = ", ".join(str(node.address) for node in nodes if not node.is_alive)
        return f"no answer from {silent}" if silent else "not every partition has a leader"
