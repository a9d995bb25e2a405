"""The nodes of one machine, a process each, as `angarium serve --processes` runs them.

All start, all stop, and none outlives the supervisor: each child asks the kernel to be killed when
its parent ends. Nobody is started again here. A child that ends on its own takes the others along
with a graceful stop and the exit status is not 0, so that whatever runs this service (systemd, a
container) sees the failure and decides. Siblings hold no partition in common, so a stop of all of
them hands every leadership over to other machines.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from angarium.app.invitations import are_pending, invite
from angarium.app.processes import is_new, reached_at
from angarium.app.serving import STOP_SECONDS_MAX
from angarium.app.sources import environment_of
from angarium.app.stopping import done_before
from angarium.cli.probe import Probe
from angarium.errors import AngariumError
from angarium.log.folder_modes import make_private
from angarium.telemetry.logs import Logs
from angarium.wire import Hello, Role, dial

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Sequence
    from pathlib import Path

    from angarium.app.settings import LogSettings, Settings

KILL_SECONDS: Final = STOP_SECONDS_MAX + 5.0
"""A child that has not stopped by then, later than it gives up itself, is killed."""

ASK_SECONDS: Final = 0.1
"""How often a child that starts is asked whether it knows its cluster."""

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GOOD_ENDINGS: Final = (0, -signal.SIGTERM)
"""Of a child that was told to stop; the signal itself ends one that had only just begun."""

_log = logging.getLogger(__name__)


def supervise(processes: Sequence[Settings], log: LogSettings) -> int:
    """Run a node per settings until a signal says stop or one ends; return the exit status."""
    logs = Logs(level=log.level, stream=sys.stderr, style=log.format)
    logs.start()
    try:
        return asyncio.run(Supervisor(processes).run())
    finally:
        logs.stop()


class Supervisor:
    """Starts the children, waits, and stops them."""

    def __init__(self, processes: Sequence[Settings]) -> None:
        self._processes = processes
        self._children: list[Process] = []
        self._watches: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._failed = False

    async def run(self) -> int:
        """Run until told to stop, or until a child ends by itself; return the exit status."""
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._told_to_stop)
        loop.add_signal_handler(signal.SIGUSR2, self._send, signal.SIGUSR2)
        try:
            if await done_before(self._stop, self._start()):
                _log.info("all processes run", extra={"processes": len(self._children)})
                await self._stop.wait()
        finally:
            self._stop.set()
            await self._end()
        return int(self._failed)

    async def _start(self) -> None:
        inviting = self._invite()
        for number, settings in enumerate(self._processes, 1):
            # It would only wait; and the nodes are numbered in the order in which they come in.
            if number > 1 and is_new(settings.node.data):
                await self._belongs(self._processes[number - 2])
                while inviting is not None and are_pending(inviting):  # noqa: ASYNC110
                    await asyncio.sleep(ASK_SECONDS)
            child = await asyncio.create_subprocess_exec(
                # The folder tells a reader of `ps` which process this is.
                *(sys.executable, "-m", "angarium", "serve"),
                *("--data", str(settings.node.data), "--parent", str(os.getpid())),
                stdin=asyncio.subprocess.DEVNULL,
                env=dict(os.environ) | environment_of(settings),
                # Ctrl-C reaches the supervisor alone.
                process_group=0,
            )
            self._children.append(child)
            self._watches.append(asyncio.create_task(self._watch(number, child)))
            facts = {"number": number, "pid": child.pid, "wire": str(reached_at(settings))}
            _log.info("process started", extra=facts)
        for settings in self._processes:
            await self._belongs(settings)
            if settings.node.join_token_file is not None and settings is not self._processes[0]:
                settings.node.join_token_file.unlink(missing_ok=True)

    def _invite(self) -> Path | None:
        """Have one process let those in that are new; return its folder if there are any.

        One that has its data, or the first: it is let in as any node is, or forms the cluster.
        """
        are_new = [is_new(one.node.data) for one in self._processes]
        host = are_new.index(False) if False in are_new else 0
        guests: dict[int, Path] = {}
        for number, settings in enumerate(self._processes):
            if settings.security.is_required and are_new[number] and number != host:
                data = settings.node.data
                guests[number] = data.with_name(f"{data.name}.join-token")
        if not guests:
            return None
        folder = self._processes[host].node.data
        make_private(folder.parent)
        invite(folder, list(guests.values()))
        self._processes = [
            replace(one, node=replace(one.node, join_token_file=guests[number]))
            if number in guests
            else one
            for number, one in enumerate(self._processes)
        ]
        return folder

    async def _belongs(self, settings: Settings) -> None:
        """Wait until a process is a member of its cluster. If it ends instead, all end."""
        if settings.security.is_required or settings.tls.is_on:
            await self._greets_as_member(settings)
            return
        probe = Probe(reached_at(settings))
        try:
            while True:
                view = await probe.view()
                if view is not None and view.status.catalog_leader is not None:
                    return
                await asyncio.sleep(ASK_SECONDS)
        finally:
            await probe.close()

    async def _greets_as_member(self, settings: Settings) -> None:
        """The same where a client would have to prove who it is: a greeting tells enough."""
        where, tls = reached_at(settings), settings.tls.opened()
        while True:
            with suppress(AngariumError):
                hello = Hello(role=Role.CLIENT)
                connection = await dial(host=where.host, port=where.port, hello=hello, tls=tls)
                is_member = bool(connection.peer.hello.node)
                await connection.close(timeout_s=1.0)
                if is_member:
                    return
            await asyncio.sleep(ASK_SECONDS)

    async def _watch(self, number: int, child: Process) -> None:
        status = await child.wait()
        if not self._stop.is_set() or status not in _GOOD_ENDINGS:
            self._failed = True
            facts = {"number": number, "pid": child.pid, "status": status}
            _log.error("a process ended unexpectedly", extra=facts)
        self._stop.set()

    # --- stopping ---------------------------------------------------------------------------

    def _told_to_stop(self) -> None:
        if self._stop.is_set():
            # A second signal: recovery at the next start does what a graceful stop would have.
            self._hurry.set()
        self._stop.set()

    async def _end(self) -> None:
        """Stop every child gracefully, kill those that take too long; returns when all are gone."""
        self._send(signal.SIGTERM)
        # A process that somebody paused could not hear it.
        self._send(signal.SIGCONT)
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_SECONDS):
                await done_before(self._hurry, self._gone())
        self._send(signal.SIGKILL)
        await self._gone()
        _log.info("all processes stopped")

    async def _gone(self) -> None:
        # Waited for, not gathered: giving up the wait must not cancel the watching.
        if self._watches:
            await asyncio.wait(self._watches)

    def _send(self, number: int) -> None:
        for child in self._children:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.send_signal(number)
