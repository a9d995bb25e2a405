"""The folder of a local cluster: who runs it, where its nodes keep their data and listen.

up.lock       locked by the `angarium up` that runs; the lock goes with that process, always
up.json       what it runs: process ids and ports, for a second `up`
node-1.toml   a node's settings, written at each start until somebody edits them
node-1/       its data
node-1.log    what it says
"""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.addresses import Address
from angarium.app.processes import is_new
from angarium.cli.complaints import Refusal
from angarium.cli.local.node_file import write_unless_edited
from angarium.client.local_access import LOCK_FILE, is_locked
from angarium.log.folder_modes import make_private, private_opener

if TYPE_CHECKING:
    from pathlib import Path

HOST: Final = "127.0.0.1"
PORT_STEP: Final = 10
"""Ports between one node and the next: wire, gRPC, HTTP, and room for more doors."""

GLANCE_SECONDS_MAX: Final = 0.2
"""How long those who only look whether a cluster runs may be in the way of one that starts."""

LOG_BYTES_MAX: Final = 16 << 20
"""A node's log that is longer when the cluster starts is moved aside, replacing the one before."""


class LocalNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a local cluster."""

    number: int
    """Counted from 1."""
    wire_port: int
    pid: int | None = None
    id: int | None = None
    """Who it is in the cluster, once that is known."""

    @property
    def grpc_port(self) -> int:
        """The port after the wire's."""
        return self.wire_port + 1

    @property
    def http_port(self) -> int:
        """The port after gRPC's."""
        return self.wire_port + 2

    @property
    def wire(self) -> Address:
        """Where clients connect."""
        return Address(HOST, self.wire_port)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What an `angarium up` writes down about itself."""

    pid: int
    nodes: tuple[LocalNode, ...]

    @property
    def servers(self) -> str:
        """All wire addresses, as `--servers` takes them."""
        return ",".join(str(node.wire) for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a local cluster lives."""

    path: Path

    def lock(self) -> int | None:
        """Take the folder for this process; None if another one has it.

        The lock lasts as long as the descriptor that is returned, so it cannot be left behind.
        """
        make_private(self.path)
        descriptor = private_opener(str(self.path / LOCK_FILE), os.O_RDWR | os.O_CREAT)
        deadline = time.monotonic() + GLANCE_SECONDS_MAX
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    return None
                time.sleep(0.01)
            else:
                return descriptor

    def is_locked(self) -> bool:
        """Tell whether an `angarium up` runs here."""
        return is_locked(self.path)

    def read_state(self) -> State | None:
        """Return what the last `angarium up` wrote down, if it can be read."""
        try:
            return msgspec.json.decode((self.path / "up.json").read_bytes(), type=State)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def write_state(self, state: State) -> None:
        """Write down what runs."""
        draft = self.path / "up.json.draft"
        with open(draft, "wb", opener=private_opener) as file:
            file.write(msgspec.json.format(msgspec.json.encode(state), indent=2))
        draft.replace(self.path / "up.json")

    def data(self, number: int) -> Path:
        """Return a node's data folder."""
        return self.path / f"node-{number}"

    def is_new(self, number: int) -> bool:
        """Tell whether a node has no data."""
        return is_new(self.data(number))

    def log(self, number: int) -> Path:
        """Return the file a node logs to."""
        return self.path / f"node-{number}.log"

    def numbers(self) -> list[int]:
        """Return the nodes that have been here before."""
        found = (path.name.removeprefix("node-") for path in self.path.glob("node-*/"))
        return sorted(int(number) for number in found if number.isdecimal())

    def planned(self, count: int, port_base: int) -> list[LocalNode]:
        """Return the nodes to run: all that were here before, and new ones up to `count`."""
        numbers = sorted({*range(1, count + 1), *self.numbers()})
        if port_base + PORT_STEP * numbers[-1] > 65_535:
            raise Refusal(f"{numbers[-1]} nodes from port {port_base} on would need ports > 65535")
        before = self.read_state()
        ids = {node.number: node.id for node in before.nodes} if before else {}
        return [
            LocalNode(
                number=number,
                wire_port=port_base + PORT_STEP * (number - 1),
                id=ids.get(number),
            )
            for number in numbers
        ]

    def write_settings(
        self, node: LocalNode, others: list[LocalNode], *, own: str = "", more: str = ""
    ) -> Path:
        """Write a node's node.toml; the very first one forms the cluster, all others join it.

        `own` are further lines about the node, `more` further sections. One that was edited is
        kept; raises `Refusal` if the node cannot be started with it.
        """
        data = self.data(node.number)
        join = ", ".join(f'"{other.wire}"' for other in others)
        is_first = node.number == 1 and all(self.is_new(one.number) for one in (node, *others))
        if is_first and node.id is None:
            entry = "form = true"
        elif node.id is not None and self.is_new(node.number):
            # Its data are gone but the cluster remembers it: it comes back as who it was.
            entry = f"join = [{join}]\nid = {node.id}"
        else:
            # Also for members of long standing: all ports may have changed since.
            entry = f"join = [{join}]"
        content = f"""\
[node]
data = "{data.name}"
{entry}
{own}
[listen]
host = "{HOST}"
wire_port = {node.wire_port}
grpc_port = {node.grpc_port}
http_port = {node.http_port}
{more}"""
        path = self.settings(node.number)
        write_unless_edited(path, content, is_new=self.is_new(node.number))
        return path

    def settings(self, number: int) -> Path:
        """Return the file of a node's settings."""
        return self.path / f"node-{number}.toml"
