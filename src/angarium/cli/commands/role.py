"""`angarium role create | list | show | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.cli.commands.grant import print_grants
from angarium.cli.output import print_json, print_table
from angarium.cli.session import talk
from angarium.errors import NotFound

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from angarium.api.access import RoleInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client


def create(options: Namespace) -> int:
    """Make a role."""

    async def work(client: Client, chosen: Choices) -> int:
        _print_roles([await client.create_role(options.name, about=options.about)], chosen)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print all roles."""

    async def work(client: Client, chosen: Choices) -> int:
        _print_roles(await client.list_roles(), chosen)
        return 0

    return talk(options, work)


def show(options: Namespace) -> int:
    """Print one role and its grants."""

    async def work(client: Client, chosen: Choices) -> int:
        for role in await client.list_roles():
            if role.name == options.name:
                if chosen.is_json:
                    print_json(msgspec.to_builtins(role))
                else:
                    print_grants(role.grants, chosen)
                return 0
        raise NotFound(f"there is no role {options.name!r}")

    return talk(options, work)


def delete(options: Namespace) -> int:
    """Remove a role."""

    async def work(client: Client, _: Choices) -> int:
        await client.delete_role(options.name, force=options.force)
        return 0

    return talk(options, work)


def _print_roles(roles: Sequence[RoleInfo], chosen: Choices) -> None:
    if chosen.is_json:
        print_json(msgspec.to_builtins(roles))
        return
    print_table(
        ("role", "built in", "grants", "about"),
        [(one.name, one.is_built_in, len(one.grants), one.about or None) for one in roles],
        none="No role may be seen.",
    )
