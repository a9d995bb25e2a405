"""One machine, several node processes: which settings each of them gets.

A Python process uses one core. A machine with more of them runs a node per core, under one host
label, so that the catalog never puts two replicas of a partition on the machine. The processes
share nothing: process *i* has a folder of its own in the given one, and its own ports.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from angarium.addresses import Address
from angarium.app.settings import (
    COMPAT_PORTS,
    DOOR_PORTS,
    PROCESS_PORT_STEP,
    InvalidSettings,
    Problem,
)
from angarium.app.settings_problems import EVERYWHERE
from angarium.log.folder_identity import NO_DATA

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.app.settings import AdvertiseSettings, CompatSettings, ListenSettings, Settings

_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (dialled, not listened on)
_PREFIX: Final = "process-"


def processes_of(settings: Settings, *, machine: str) -> list[Settings]:
    """Return the settings of each process; the first forms or joins, the others join through it.

    `machine` is the host label where none was chosen. Raises `InvalidSettings` if that name says
    nothing, as it would make one host of many.
    """
    node = settings.node
    label = node.host or machine
    if not node.host and machine.partition(".")[0] in ("", "localhost"):
        raise InvalidSettings((Problem("node.host", _NAMELESS, "not set"),))
    shared = replace(node, host=label, processes=1)
    first = reached_at(settings)
    found = []
    for number in range(1, node.processes + 1):
        shift = PROCESS_PORT_STEP * (number - 1)
        own = replace(shared, data=folder(node.data, number))
        if number > 1:
            # The first is asked first: it is there as soon as this machine belongs to a cluster.
            own = replace(own, form=False, join=(first, *node.join), join_token_file=None)
        listen = replace(settings.listen, **_higher_doors(settings.listen, shift))
        advertise = replace(settings.advertise, **_higher_doors(settings.advertise, shift))
        compat = _higher_compat(settings.compat, shift)
        found.append(replace(settings, node=own, listen=listen, advertise=advertise, compat=compat))
    return found


def _higher_doors(ports: ListenSettings | AdvertiseSettings, shift: int) -> dict[str, Any]:
    return {name: _higher(getattr(ports, name), shift) for name in DOOR_PORTS}


def _higher_compat(compat: CompatSettings, shift: int) -> CompatSettings:
    ports: dict[str, Any] = {name: _higher(getattr(compat, name), shift) for name in COMPAT_PORTS}
    metrics = tuple(one + shift for one in compat.bale_metrics_ports)
    return replace(compat, **ports, bale_metrics_ports=metrics)


def reached_at(settings: Settings) -> Address:
    """Return where another process of the same machine finds this node's wire."""
    listen = settings.listen
    host = _LOOPBACK[listen.host] if listen.host in EVERYWHERE else listen.host
    return Address(host, listen.wire_port)


def folder(data: Path, number: int) -> Path:
    """Return the folder of a process; absolute, whatever the process's own working folder is."""
    return (data / f"{_PREFIX}{number}").absolute()


def is_new(data: Path) -> bool:
    """Tell whether a folder holds no node yet."""
    return not data.is_dir() or all(one.name in NO_DATA for one in data.iterdir())


def check_folder(settings: Settings) -> None:
    """Raise `InvalidSettings` if the folder was used with another number of processes.

    Otherwise a node would be missing without anybody having decided so, or an empty folder would
    form a second cluster beside the one that is there.
    """
    node = settings.node
    used = _used(node.data)
    what = ""
    if node.processes == 1:
        what = _SEVERAL.format(data=node.data, count=max(used)) if used else ""
    elif (node.data / "identity").exists():
        what = _SINGLE.format(data=node.data)
    elif used and max(used) > node.processes:
        what = _FEWER.format(data=node.data, count=max(used))
    elif used and 1 not in used and node.form:
        what = _FIRST_GONE.format(data=folder(node.data, 1))
    if what:
        raise InvalidSettings((Problem("node.processes", what),))


def machine_name() -> str:
    """Return what the machine calls itself."""
    return os.uname().nodename


def _used(data: Path) -> set[int]:
    """Return the numbers of the processes that have been here."""
    found = (path for path in data.glob(f"{_PREFIX}*") if not is_new(path))
    names = (path.name.removeprefix(_PREFIX) for path in found)
    return {int(name) for name in names if name.isdecimal()}


def _higher(port: int | None, shift: int) -> int | None:
    """Return the port moved up; a closed door, and a port still to be chosen, stay as they are."""
    return port + shift if port else port


_NAMELESS: Final = (
    "several processes of a machine need a host label, and this machine's own name would not tell"
    " it from others; choose one with --host"
)

_SINGLE: Final = (
    "{data} holds a node that ran as one process. Start it as that, or choose another folder; its"
    " partitions move to new nodes with `angarium cluster drain`."
)

_SEVERAL: Final = "{data} was used by several processes; start with --processes {count}"

_FEWER: Final = (
    "{data} was used by {count} processes, and each is a member of the cluster: start with"
    " --processes {count}. To have fewer, drain and remove the last ones first"
    " (`angarium cluster drain`, `angarium cluster remove`), then delete their folders."
)

_FIRST_GONE: Final = (
    "{data} is empty while other processes of this machine have data: it would form a second"
    " cluster. Use --join instead of --form."
)
