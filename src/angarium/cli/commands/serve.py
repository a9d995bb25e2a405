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
    "join_token_file": ("node", "join_token_file"),
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

_TARGETS: Final = {"dns": "dns_name", "serf": "serf_agent", "kubernetes": "kubernetes_service"}
"""Which setting says whom each method of discovery asks."""

_SECRETS: Final = ("_token", "_password", "_secret")
"""How the names of settings end whose values are not shown, not even as a hash: who has the hash of
a weak secret can guess it."""

_HIDDEN: Final = "(set, not shown)"


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
    given = {
        setting: Given(value, f"--{flag.replace('_', '-')}")
        for flag, setting in _FLAGS.items()
        if (value := getattr(options, flag)) is not None
    }
    return given | discovery_flags(options.discover)


def discovery_flags(text: str | None) -> dict[tuple[str, str], Given]:
    """Return what --discover METHOD, or METHOD:WHERE, stands for."""
    if text is None:
        return {}
    method, _, where = text.partition(":")
    given = {("discovery", "method"): Given(method, "--discover")}
    target = _TARGETS.get(method)
    if where and target is not None:
        given["discovery", target] = Given(where, "--discover")
    return given


def _print(settings: Settings) -> None:
    rows = []
    for section in fields(settings):
        content = getattr(settings, section.name)
        for one in fields(content):
            value = getattr(content, one.name)
            # Of users only the names: their hashes are nobody's to see.
            shown = ",".join(map(str, value)) if isinstance(value, tuple | dict) else value
            if value and one.name.endswith(_SECRETS):
                shown = _HIDDEN
            rows.append(
                (f"{section.name}.{one.name}", str(shown), variable(section.name, one.name))
            )
    print_table(("setting", "value", "variable"), rows, none="")
