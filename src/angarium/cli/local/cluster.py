"""The nodes of a local cluster, from the first start to the last stop, with a live table."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from typing import Final

import angarium
from angarium.api import TopicConfig
from angarium.app.stopping import done_before
from angarium.cli.complaints import Refusal
from angarium.cli.dashboard import Dashboard
from angarium.cli.local.compat import GEO_PASSWORD, Compat
from angarium.cli.local.demo_pipeline import DemoPipeline, spark_is_installed
from angarium.cli.local.folder import HOST, Folder, LocalNode, State
from angarium.cli.local.node_file import is_edited
from angarium.cli.local.processes import Child, stop_all
from angarium.cli.output import readable
from angarium.cli.overview import Overview, Seen, overview
from angarium.cli.own_name import own_name
from angarium.cli.probe import Probe
from angarium.cli.profiles import LOCAL_FOLDER
from angarium.doors.status import Exit
from angarium.errors import AlreadyExists, AngariumError
from angarium.security import PasswordHash

DEMO: Final = "demo"
DEMO_PARTITIONS: Final = 3

START_SECONDS_MAX: Final = 60.0
"""A cluster that is not ready by then is stopped, with the reason as far as it is known."""

PATIENCE_SECONDS: Final = 5.0
"""A start that takes longer says what it waits for, and again after as long."""

REFRESH_SECONDS: Final = 0.5
EAGER_SECONDS: Final = 0.05
"""How often the nodes are asked: while they run, and while they start."""


class LocalCluster:
    """The nodes, from the first start to the last stop."""

    def __init__(
        self, folder: Folder, nodes: list[LocalNode], compat: Compat, *, with_pipeline: bool = False
    ) -> None:
        """Prepare the nodes; `with_pipeline` shows the first pipeline, where Spark is installed."""
        self._folder = folder
        self._with_pipeline = with_pipeline
        self._pipeline: DemoPipeline | None = None
        self._compat = compat
        self._edited = [
            path for path in map(folder.settings, (one.number for one in nodes)) if is_edited(path)
        ]
        user_hash = str(PasswordHash.of(GEO_PASSWORD)) if "geo" in compat.profiles else ""
        self._nodes = {node.number: node for node in nodes}
        self._children = {
            number: Child(
                settings=folder.write_settings(
                    node,
                    [one for one in nodes if one is not node],
                    more=compat.section(node, user_hash=user_hash),
                ),
                log=folder.log(number),
            )
            for number, node in self._nodes.items()
        }
        self._probes = {number: Probe(node.wire) for number, node in self._nodes.items()}
        self._stop = asyncio.Event()
        self._dashboard = Dashboard(title=f"Angarium {angarium.__version__}")
        self._last: Overview | None = None
        self._hindrance = ""
        """What the start waits for: a node that does not answer, or does not do as asked."""

    async def run(self) -> int:
        """Start everything, show it, and stop everything."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._told_to_stop)
        loop.add_signal_handler(signal.SIGUSR1, self._restart_dead)
        try:
            if await done_before(self._stop, self._start()):
                await done_before(self._stop, self._watch())
        finally:
            try:
                if self._pipeline is not None:
                    await self._pipeline.stop()
                self._say_if_possible("stopping all nodes")
                await asyncio.gather(*(probe.close() for probe in self._probes.values()))
            finally:
                stop_all(self._children.values())
            self._write_state()
            self._say_if_possible(f"stopped; the data stay in {self._folder.path}")
        return 0

    def _say_if_possible(self, sentence: str) -> None:
        """Tell something at the end, when the terminal may have been closed already."""
        with suppress(OSError):
            self._dashboard.say(sentence)

    # --- starting ---------------------------------------------------------------------------

    async def _start(self) -> None:
        began = time.monotonic()
        self._dashboard.say(f"starting {len(self._nodes)} nodes in {self._folder.path}")
        for path in self._edited:
            self._dashboard.say(f"{path.name} was edited and is kept; delete it for a new one")
        told = asyncio.create_task(self._tell_what_is_waited_for())
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                await self._start_nodes()
                await self._create_demo()
                while not self._is_ready(await self._look()):
                    self._check_children()
                    await asyncio.sleep(EAGER_SECONDS)
        except TimeoutError:
            raise Refusal(
                f"the cluster was not ready after {START_SECONDS_MAX:.0f} s:"
                f" {self._waited_for()}. The logs are in {self._folder.path}/node-*.log."
            ) from None
        finally:
            told.cancel()
        self._write_state()
        self._dashboard.say(f"ready after {time.monotonic() - began:.1f} s")
        self._dashboard.footer = self._footer()

    async def _start_nodes(self) -> None:
        new = [number for number in self._children if self._folder.is_new(number)]
        # Those that are members first: it takes a majority of them to let a new one in.
        for number, child in self._children.items():
            if number not in new:
                child.start()
        for number in new:
            # One after the other, so that they are numbered in this order.
            self._children[number].start()
            await self._answer_of(number)
        self._write_state()
        for number in self._children:
            await self._answer_of(number)

    async def _answer_of(self, number: int) -> None:
        self._hindrance = f"node {number} does not answer at {self._nodes[number].wire} yet"
        while await self._probes[number].view() is None:
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
            await asyncio.sleep(PATIENCE_SECONDS)
            self._dashboard.say(f"still starting: {self._waited_for()}")

    def _waited_for(self) -> str:
        if self._hindrance:
            return self._hindrance
        nodes = self._last.nodes if self._last else ()
        silent = ", ".join(str(node.address) for node in nodes if not node.is_alive)
        return f"no answer from {silent}" if silent else "not every partition has a leader"

    # --- running ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        self._dashboard.show(await self._look())
        self._dashboard.tell_footer()
        async with asyncio.TaskGroup() as tasks:
            if self._with_pipeline and spark_is_installed():
                self._pipeline = DemoPipeline(
                    servers=self._state().servers,
                    folder=self._folder.path / "pipeline",
                    say=self._dashboard.say,
                )
                tasks.create_task(self._pipeline.run())
            while True:
                await asyncio.sleep(REFRESH_SECONDS)
                now = await self._look()
                self._dashboard.footer = self._footer()
                self._dashboard.show(now)

    async def _look(self) -> Overview:
        views = await asyncio.gather(*(probe.view() for probe in self._probes.values()))
        seen = []
        for (number, child), view in zip(self._children.items(), views, strict=True):
            node = self._nodes[number]
            if view is not None and node.id != view.status.node:
                node = self._nodes[number] = LocalNode(
                    number=number, wire_port=node.wire_port, id=view.status.node
                )
            seen.append(
                Seen(
                    address=str(node.wire),
                    view=view,
                    node=node.id,
                    pid=child.pid,
                    ending=child.ending,
                    memory_bytes=child.memory_bytes,
                )
            )
        self._last = overview(seen, at=time.monotonic(), before=self._last)
        return self._last

    def _footer(self) -> list[str]:
        state = self._state()
        word = own_name()
        # In this folder every command finds the cluster by itself.
        servers = f" --servers {state.servers}" if self._data_flag() else ""
        lines = [
            "Try next, in another terminal:",
            f"  {word} pub {DEMO} 'hello, world'{servers}",
            f"  {word} sub {DEMO} --from earliest{servers}",
            f"  seq 100000 | {word} pub {DEMO} --rate 2000{servers}",
            f"  curl -N http://{HOST}:{self._nodes[1].http_port}/v1/topics/{DEMO}/stream",
        ]
        if spark_is_installed():
            lines.append(f"  {word} pipeline demo{servers}    # a topic into a lake table, and SQL")
        else:
            lines.append("  make pipeline    # a topic into a lake table, and SQL: 460 MB of Spark")
        if self._compat.profiles:
            lines += self._compat.lines(list(self._nodes.values()))
        else:
            lines.append(
                "Clients of earlier brokers: --compat hermes, bale or geo, at the next start"
            )
        dead = [number for number, child in self._children.items() if not child.is_running]
        if dead:
            lines.append(f"Bring dead nodes back: {word} up --restart{self._data_flag()}")
        else:
            pid = self._children[max(self._children)].pid
            lines.append(f"Kill a node (kill -9 {pid}): nothing that was acknowledged is lost.")
        return [*lines, f"Ctrl-C stops the cluster; its data stay in {self._folder.path}."]

    def _data_flag(self) -> str:
        return "" if self._folder.path == LOCAL_FOLDER else f" --data {self._folder.path}"

    def _restart_dead(self) -> None:
        for number, child in self._children.items():
            if not child.is_running:
                self._dashboard.say(f"node {number} starts again")
                child.start()
        self._write_state()

    # --- stopping ---------------------------------------------------------------------------

    def _told_to_stop(self) -> None:
        self._stop.set()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
        # A second Ctrl-C interrupts the wait for a graceful stop; then the nodes are killed.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)

    def _state(self) -> State:
        nodes = [
            LocalNode(
                number=node.number,
                wire_port=node.wire_port,
                id=node.id,
                pid=self._children[node.number].pid,
            )
            for node in self._nodes.values()
        ]
        return State(pid=os.getpid(), nodes=tuple(nodes))

    def _write_state(self) -> None:
        self._folder.write_state(self._state())
