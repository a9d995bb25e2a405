"""`angarium user`: accounts in the cluster, and the line of node.toml for those of a listener."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from angarium.api.access import SubjectKind
from angarium.app.security_settings import UserSettings
from angarium.cli.commands.grant import print_grants
from angarium.cli.complaints import Refusal
from angarium.cli.output import print_json, print_table
from angarium.cli.session import talk
from angarium.errors import PermissionDenied
from angarium.security import PasswordHash

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api.access import UserInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client


def create(options: Namespace) -> int:
    """Make a user."""
    password = None if options.no_password else _password()

    async def work(client: Client, chosen: Choices) -> int:
        user = await client.create_user(options.name, password=password, roles=options.role)
        _print_users([user], chosen)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print all users."""

    async def work(client: Client, chosen: Choices) -> int:
        _print_users(list(await client.list_users()), chosen)
        return 0

    return talk(options, work)


def show(options: Namespace) -> int:
    """Print one user, its tokens, and its grants where they may be seen."""

    async def work(client: Client, chosen: Choices) -> int:
        user = await client.describe_user(options.name)
        tokens = await client.list_tokens(user.name)
        try:
            grants = [
                one
                for one in await client.list_grants()
                if (one.subject_kind, one.subject) == (SubjectKind.USER, user.name)
            ]
        except PermissionDenied:
            grants = []
        if chosen.is_json:
            content = {"user": user, "grants": grants, "tokens": tokens}
            print_json(msgspec.to_builtins(content))
            return 0
        _print_users([user], chosen)
        print()
        print_grants(grants, chosen)
        print()
        print_table(
            ("token", "narrowed"),
            [(one.name, one.grants is not None) for one in tokens],
            none="It has no tokens.",
        )
        return 0

    return talk(options, work)


def alter(options: Namespace) -> int:
    """Give a user other roles, lock or unlock it."""
    roles = [] if options.no_roles else options.role
    is_locked = True if options.lock else False if options.unlock else None
    if roles is None and is_locked is None:
        raise Refusal("nothing to change: give --role, --no-roles, --lock or --unlock")

    async def work(client: Client, chosen: Choices) -> int:
        user = await client.alter_user(options.name, roles=roles, is_locked=is_locked)
        _print_users([user], chosen)
        return 0

    return talk(options, work)


def rotate(options: Namespace) -> int:
    """Set another password."""
    password = _password()

    async def work(client: Client, _: Choices) -> int:
        name = options.name or (await client.whoami()).principal.name
        await client.alter_user(name, password=password)
        print(f"{name} has another password.")
        return 0

    return talk(options, work)


def delete(options: Namespace) -> int:
    """Remove a user."""
    if not options.yes:
        if not sys.stdin.isatty():
            raise Refusal(
                f"{options.name} would be deleted; use --yes to do it without being asked"
            )
        print(f"Delete {options.name}? Type yes: ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip() != "yes":
            raise Refusal("nothing was deleted")

    async def work(client: Client, _: Choices) -> int:
        await client.delete_user(options.name)
        return 0

    return talk(options, work)


def recover(options: Namespace) -> int:
    """Have a stopped node make an administrator when it starts."""
    from angarium.app.administrators import prepare_recovery  # noqa: PLC0415 - loads a node

    prepare_recovery(Path(options.data), options.name, _password())
    print(f"Start the node again: it makes {options.name} an administrator with this password.")
    return 0


def print_hash(options: Namespace) -> int:
    """Read a password, and print its hash."""
    name = options.name
    text = str(PasswordHash.of(_password()))
    if name is None:
        print(text)
        return 0
    try:
        UserSettings(hashes={name: text})
    except ValueError as error:
        raise Refusal(str(error).partition(": ")[2]) from None
    # Quoted unless TOML takes the name as it is.
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    quoted = name.replace("\\", r"\\").replace('"', r"\"")
    print(f'{name if is_bare else chr(34) + quoted + chr(34)} = "{text}"')
    return 0


def _print_users(users: list[UserInfo], chosen: Choices) -> None:
    if chosen.is_json:
        print_json(msgspec.to_builtins(users))
        return
    print_table(
        ("user", "roles", "password", "tokens", "locked"),
        [
            (one.name, ",".join(one.roles) or None, one.has_password, one.tokens, one.is_locked)
            for one in users
        ],
        none="There are no users. `angarium user create NAME` makes one.",
    )


def _password() -> str:
    if not sys.stdin.isatty():
        password = sys.stdin.readline().removesuffix("\n")
    else:
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise Refusal("the two passwords differ")
    if not password:
        raise Refusal("an empty password lets everybody in; there was none on standard input")
    return password
