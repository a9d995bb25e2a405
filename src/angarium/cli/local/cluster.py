"""The nodes of a local cluster, from the first start to the last stop, with a live table."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import angarium
from angarium.app.stopping import done_before
from angarium.cli.dashboard import Dashboard
from angarium.cli.local.compat import GEO_PASSWORD, Compat
from angarium.cli.local.demo_pipeline import DemoPipeline, spark_is_installed
from angarium.cli.local.folder import HOST, Folder, LocalNode, State
from angarium.cli.local.node_file import is_edited
from angarium.cli.local.processes import Child, stop_all
from angarium.cli.local.starting import DEMO, Starting
from angarium.cli.overview import Overview, Seen, overview
from angarium.cli.own_name import own_name
from angarium.cli.probe import Probe
from angarium.client.credential_files import NO_TLS
from angarium.client.local_access import LOCAL_FOLDER, PROFILES_FILE
from angarium.client.login import Login
from angarium.security import PasswordHash

if TYPE_CHECKING:
    from angarium.cli.local.securing import Secured

REFRESH_SECONDS: Final = 0.5
"""How often the nodes are asked while they run."""


class LocalCluster:
    """The nodes, from the first start to the last stop."""

    def __init__(
        self,
        folder: Folder,
        nodes: list[LocalNode],
        compat: Compat,
        *,
        secured: Secured | None = None,
        with_pipeline: bool = False,
    ) -> None:
        """Prepare the nodes; `with_pipeline` shows the first pipeline, where Spark is installed.

        `secured` is ready, where the cluster is to be a secure one.
        """
        self._folder = folder
        self._with_pipeline = with_pipeline
        self._pipeline: DemoPipeline | None = None
        self._compat = compat
        self._secured = secured
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
                    own="" if secured is None else secured.entry(node),
                    more=compat.section(node, user_hash=user_hash)
                    + ("" if secured is None else secured.section(node, nodes)),
                ),
                log=folder.log(number),
            )
            for number, node in self._nodes.items()
        }
        tls = NO_TLS if secured is None else secured.tls
        login = Login() if secured is None else secured.login.login()
        self._probes = {
            number: Probe(node.wire, tls=tls, login=login) for number, node in self._nodes.items()
        }
        self._stop = asyncio.Event()
        self._dashboard = Dashboard(title=f"Angarium {angarium.__version__}")
        self._last: Overview | None = None

    async def run(self) -> int:
        """Start everything, show it, and stop everything."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._told_to_stop)
        loop.add_signal_handler(signal.SIGUSR1, self._restart_dead)
        try:
            if self._secured is not None:
                self._secured.open(list(self._nodes.values()))
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
                if self._secured is not None:
                    self._secured.close()
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
        await Starting(
            folder=self._folder,
            nodes=self._nodes,
            children=self._children,
            probes=self._probes,
            look=self._look,
            may_join=self._may_join,
            write_state=self._write_state,
            say=self._dashboard.say,
        ).run()
        self._write_state()
        if self._secured is not None:
            self._secured.formed(list(self._nodes.values()))
        self._dashboard.say(f"ready after {time.monotonic() - began:.1f} s")
        self._dashboard.footer = self._footer()

    def _may_join(self, number: int) -> bool:
        nodes = list(self._nodes.values())
        return self._secured is None or self._secured.has_invited(number, nodes)

    # --- running ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        self._dashboard.show(await self._look())
        self._dashboard.tell_footer()
        async with asyncio.TaskGroup() as tasks:
            if self._with_pipeline and spark_is_installed():
                self._pipeline = DemoPipeline(
                    servers=self._state().servers,
                    folder=self._folder.path / "pipeline",
                    profiles=None if self._secured is None else self._secured.profiles,
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
        http = f"curl -N http://{HOST}"
        lines = ["Try next, in another terminal:"]
        if self._secured is not None:
            http = f"curl -K {self._secured.curl} -N https://{HOST}"
            if servers:
                lines.append(f"  export ANGARIUM_PROFILES={self._secured.profiles}")
                servers = ""
        lines += [
            f"  {word} pub {DEMO} 'hello, world'{servers}",
            f"  {word} sub {DEMO} --from earliest{servers}",
            f"  seq 100000 | {word} pub {DEMO} --rate 2000{servers}",
            f"  {http}:{self._nodes[1].http_port}/v1/topics/{DEMO}/stream",
        ]
        if spark_is_installed():
            lines.append(f"  {word} pipeline demo{servers}    # a topic into a lake table, and SQL")
        else:
            lines.append("  make pipeline    # a topic into a lake table, and SQL: 460 MB of Spark")
        if self._secured is not None:
            lines.append(
                "It asks everybody who they are; commands and clients in this folder find that in"
                f" {self._folder.path / PROFILES_FILE}"
            )
        elif self._compat.profiles:
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
