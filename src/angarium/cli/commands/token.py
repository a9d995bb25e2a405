"""`angarium token create | list | show | rotate | delete`"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import shown_time
from angarium.cli.output import print_json, print_table
from angarium.cli.resources import grant_in, shown_resource
from angarium.cli.session import talk
from angarium.errors import NotFound
from angarium.ids import Micros

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api.access import Grant, IssuedToken, TokenInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client


def create(options: Namespace) -> int:
    """Issue a token."""
    grants = None if options.only is None else [_narrowed(one) for one in options.only]

    async def work(client: Client, chosen: Choices) -> int:
        owner = await _owner(client, options)
        issued = await client.create_token(
            owner, options.name, until=_until(options.expires), grants=grants
        )
        _print_issued(issued, chosen)
        return 0

    return talk(options, work)


def rotate(options: Namespace) -> int:
    """Give a token another secret; its bounds stay."""

    async def work(client: Client, chosen: Choices) -> int:
        known = await _found(client, options)
        until = known.until if options.expires is None else _until(options.expires)
        issued = await client.create_token(
            known.owner, known.name, until=until, grants=known.grants
        )
        _print_issued(issued, chosen)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print tokens, without their secrets, which nobody has."""

    async def work(client: Client, chosen: Choices) -> int:
        tokens = await client.list_tokens(options.owner)
        if chosen.is_json:
            print_json(msgspec.to_builtins(tokens))
            return 0
        print_table(
            ("owner", "token", "created", "expires", "narrowed"),
            [
                (
                    one.owner,
                    one.name,
                    shown_time(one.created_at),
                    None if one.until is None else shown_time(one.until),
                    one.grants is not None,
                )
                for one in tokens
            ],
            none="There are no tokens.",
        )
        return 0

    return talk(options, work)


def show(options: Namespace) -> int:
    """Print one token and its bounds."""

    async def work(client: Client, chosen: Choices) -> int:
        known = await _found(client, options)
        if chosen.is_json:
            print_json(msgspec.to_builtins(known))
            return 0
        expires = "never" if known.until is None else shown_time(known.until)
        print(f"{known.owner}/{known.name}, created {shown_time(known.created_at)}")
        print(f"expires: {expires}")
        if known.grants is None:
            print("It may do what its owner may.")
            return 0
        print("Of what its owner may do, only this:")
        print_table(
            ("effect", "actions", "resource"),
            [
                (one.effect.value, ",".join(one.actions), shown_resource(one))
                for one in known.grants
            ],
            none="Nothing.",
        )
        return 0

    return talk(options, work)


def delete(options: Namespace) -> int:
    """Revoke a token."""

    async def work(client: Client, _: Choices) -> int:
        await client.delete_token(await _owner(client, options), options.name)
        return 0

    return talk(options, work)


async def _found(client: Client, options: Namespace) -> TokenInfo:
    owner = await _owner(client, options)
    for known in await client.list_tokens(owner):
        if known.name == options.name:
            return known
    raise NotFound(f"{owner!r} has no token {options.name!r}")


async def _owner(client: Client, options: Namespace) -> str:
    owner: str = options.owner or (await client.whoami()).principal.name
    return owner


def _until(expires_ms: int | None) -> Micros | None:
    return None if expires_ms is None else Micros(time.time_ns() // 1_000 + expires_ms * 1_000)


def _narrowed(text: str) -> Grant:
    actions, at, resource = text.partition("@")
    if not at:
        raise Refusal(f"--only {text!r} has no @: write ACTION,...@RESOURCE")
    return grant_in(actions, resource)


def _print_issued(issued: IssuedToken, chosen: Choices) -> None:
    if chosen.is_json:
        print_json(msgspec.to_builtins(issued))
    else:
        print(issued.secret)
