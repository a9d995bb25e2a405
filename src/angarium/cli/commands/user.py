"""`angarium user hash`: a password becomes a line of node.toml."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING

from angarium.app.settings import UserSettings
from angarium.cli.complaints import Refusal
from angarium.security import PasswordHash

if TYPE_CHECKING:
    from argparse import Namespace


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
