"""`angarium serve`: one node in this process, or several, each in a process of its own."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.app.parent import die_with
from angarium.app.processes import check_folder, machine_name, processes_of
from angarium.app.sources import Given, load_settings, variable
from angarium.cli.complaints import Refusal
from angarium.cli.output import print_table

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.app.settings import Settings

_FLAGS: Final = {
    "data": ("node", "data"),
    "form": ("node", "form"),
    "join": ("node", "join"),
    "processes": ("node", "processes"),
    "host": ("node", "host"),
    "listen": ("listen", "host"),
    "advertise": ("advertise", "host"),
    "wire_port": ("listen", "wire_port"),
    "grpc_port": ("listen", "grpc_port"),
    "http_port": ("listen", "http_port"),
    "insecure": ("listen", "insecure"),
    "authentication": ("security", "authentication"),
    "log_level": ("log", "level"),
    "log_format": ("log", "format"),
}
"""Which setting a flag stands for."""


def run(options: Namespace) -> int:
    """Run a node, or several, until told to stop."""
    if options.parent is not None and not die_with(options.parent):
        raise Refusal(f"the parent process {options.parent} has ended")
    settings = load_settings(
        file=Path(options.config) if options.config else None,
        environment=os.environ,
        flags=flags_of(options),
    )
    if options.check:
        _print(settings)
        return 0
    check_folder(settings)
    if settings.node.processes > 1:
        from angarium.cli.local.supervisor import supervise  # noqa: PLC0415

        return supervise(processes_of(settings, machine=machine_name()), settings.log)
    # A mistake in the settings is found without loading the node and everything below it.
    from angarium.app.composition import parts  # noqa: PLC0415
    from angarium.app.serving import serve  # noqa: PLC0415

    return serve(lambda signals: parts(settings, signals), settings.log)


def flags_of(options: Namespace) -> dict[tuple[str, str], Given]:
    """Return the settings that were given as flags."""
    return {
        setting: Given(value, f"--{flag.replace('_', '-')}")
        for flag, setting in _FLAGS.items()
        if (value := getattr(options, flag)) is not None
    }


def _print(settings: Settings) -> None:
    rows = []
    for section in fields(settings):
        content = getattr(settings, section.name)
        for one in fields(content):
            value = getattr(content, one.name)
            # Of users only the names: their hashes are nobody's to see.
            shown = ",".join(map(str, value)) if isinstance(value, tuple | dict) else value
            rows.append(
                (f"{section.name}.{one.name}", str(shown), variable(section.name, one.name))
            )
    print_table(("setting", "value", "variable"), rows, none="")
