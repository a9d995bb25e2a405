"""`angarium up`: a local cluster with a live table. Ctrl-C stops all of it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from angarium.cli.complaints import Refusal
from angarium.cli.local.cluster import LocalCluster
from angarium.cli.local.compat import Compat
from angarium.cli.local.folder import Folder
from angarium.cli.local.ports import check_compat_ports, check_ports
from angarium.cli.local.securing import Secured
from angarium.cli.own_name import own_name

if TYPE_CHECKING:
    from argparse import Namespace


def run(options: Namespace) -> int:
    """Run a local cluster until Ctrl-C, or talk to the one that runs."""
    folder = Folder(Path(options.data))
    if options.restart or options.stop:
        return _tell_the_running_one(folder, restart=options.restart)
    compat = Compat.chosen(options.compat, options.compat_ports)
    lock = folder.lock()
    if lock is None:
        print(_already_running(folder))
        if compat.profiles:
            print("Listeners open when it starts: stop it, and start it with --compat again.")
        return 0
    try:
        nodes = folder.planned(options.nodes, options.port_base)
        check_ports(nodes, options.port_base)
        check_compat_ports(compat, nodes)
        secured = _secured(folder, compat, is_wanted=options.secure)
        if len(nodes) > options.nodes:
            print(f"{folder.path} holds a cluster of {len(nodes)} nodes; all of them start.")
        if secured is not None:
            secured.prepare(nodes)
        with asyncio.Runner() as runner:
            cluster = LocalCluster(
                folder, nodes, compat, secured=secured, with_pipeline=options.pipeline
            )
            return runner.run(cluster.run())
    finally:
        os.close(lock)


def _secured(folder: Folder, compat: Compat, *, is_wanted: bool) -> Secured | None:
    """Return what makes the cluster a secure one, if it is to be, or was before."""
    secured = Secured(folder)
    if not is_wanted and not secured.is_there:
        return None
    if compat.profiles:
        raise Refusal(
            "clients of earlier brokers speak no TLS, and most cannot say who they are, so a secure"
            " local cluster has no listeners for them. docs/guides/security.md says how a node of"
            " your own opens one, in the name of a user"
        )
    if not is_wanted:
        print(f"{folder.path} holds a secure cluster; it starts as that.")
    return secured


# --- somebody else runs it -----------------------------------------------------------------------


def _already_running(folder: Folder) -> str:
    state = folder.read_state()
    word = own_name()
    if state is None:
        return f"A cluster is starting in {folder.path}; ask again in a moment."
    return (
        f"A cluster is running in {folder.path} already (process {state.pid}).\n"
        f"Watch it:  {word} cluster status --watch --servers {state.servers}\n"
        f"Stop it:   {word} up --stop --data {folder.path}"
    )


def _tell_the_running_one(folder: Folder, *, restart: bool) -> int:
    state = folder.read_state()
    if state is None or not folder.is_locked():
        raise Refusal(f"no cluster runs in {folder.path}; `{own_name()} up` starts one")
    if restart:
        os.kill(state.pid, signal.SIGUSR1)
        print(f"Process {state.pid} restarts the nodes of {folder.path} that are not running.")
        return 0
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + 30.0
    while folder.is_locked():
        if time.monotonic() > deadline:
            raise Refusal(f"process {state.pid} has not stopped after 30 s; try kill {state.pid}")
        time.sleep(0.05)
    print(f"Stopped; the data stay in {folder.path}.")
    return 0
