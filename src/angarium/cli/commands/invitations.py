"""`angarium cluster invite | invitations | uninvite`"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from angarium.cli.grammar.quantities import shown_time
from angarium.cli.output import print_json, print_table
from angarium.cli.session import talk
from angarium.ids import Micros

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api.access import JoinTokenInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client


def create(options: Namespace) -> int:
    """Make a join token, and print it once."""

    async def work(client: Client, chosen: Choices) -> int:
        until = None
        if options.expires is not None:
            until = Micros(time.time_ns() // 1_000 + options.expires * 1_000)
        issued = await client.create_join_token(until=until)
        if chosen.is_json:
            print_json(msgspec.to_builtins(issued))
        else:
            print(issued.secret)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print join tokens, without their secrets, which nobody has."""

    async def work(client: Client, chosen: Choices) -> int:
        tokens = await client.list_join_tokens()
        if chosen.is_json:
            print_json(msgspec.to_builtins(tokens))
            return 0
        now = time.time_ns() // 1_000
        print_table(
            ("number", "made", "good until", "state"),
            [
                (one.id, shown_time(one.created_at), shown_time(one.until), _state(one, now))
                for one in tokens
            ],
            none="There are no join tokens.",
        )
        return 0

    return talk(options, work)


def delete(options: Namespace) -> int:
    """Withdraw a join token."""

    async def work(client: Client, _: Choices) -> int:
        await client.delete_join_token(options.token)
        return 0

    return talk(options, work)


def _state(token: JoinTokenInfo, now: int) -> str:
    if token.used_by is not None:
        return f"used by node {token.used_by}"
    return "expired" if token.until <= now else "good"
