"""`angarium grant create | list | show | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.cli.output import print_json, print_table
from angarium.cli.resources import grant_in, shown_resource, subject_in
from angarium.cli.session import talk
from angarium.errors import NotFound

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from angarium.api.access import GrantInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client


def create(options: Namespace) -> int:
    """Give a grant."""
    kind, subject = subject_in(options.subject)
    grant = grant_in(options.actions, options.resource, is_deny=options.deny)

    async def work(client: Client, chosen: Choices) -> int:
        print_grants([await client.create_grant(kind, subject, grant)], chosen)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print grants."""
    wanted = None if options.subject is None else subject_in(options.subject)

    async def work(client: Client, chosen: Choices) -> int:
        grants = await client.list_grants()
        shown = [one for one in grants if wanted in {None, (one.subject_kind, one.subject)}]
        print_grants(shown, chosen)
        return 0

    return talk(options, work)


def show(options: Namespace) -> int:
    """Print one grant."""

    async def work(client: Client, chosen: Choices) -> int:
        found = [one for one in await client.list_grants() if one.id == options.id]
        if not found:
            raise NotFound(f"there is no grant {options.id}")
        print_grants(found, chosen)
        return 0

    return talk(options, work)


def delete(options: Namespace) -> int:
    """Take a grant back."""

    async def work(client: Client, _: Choices) -> int:
        await client.delete_grant(options.id)
        return 0

    return talk(options, work)


def print_grants(grants: Sequence[GrantInfo], chosen: Choices) -> None:
    """Print grants as they were written."""
    if chosen.is_json:
        print_json(msgspec.to_builtins(grants))
        return
    print_table(
        ("id", "whose", "effect", "actions", "resource"),
        [
            (
                one.id or None,
                f"{one.subject_kind}:{one.subject}",
                one.grant.effect.value,
                ",".join(one.grant.actions),
                shown_resource(one.grant),
            )
            for one in grants
        ],
        none="There are no grants.",
    )
