"""Where to find a first node: what was given, or the environment, or this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVERS_VARIABLE: Final = "ANGARIUM_SERVERS"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 7400


class Address(NamedTuple):
    """Where a node listens for the wire protocol."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def bootstrap_addresses(servers: Sequence[str]) -> tuple[Address, ...]:
    """Return the addresses in `servers`, or in `ANGARIUM_SERVERS`, or this machine's default.

    Each text may hold several addresses with commas between them.
    """
    texts = servers or (os.environ.get(SERVERS_VARIABLE) or f"{DEFAULT_HOST}:{DEFAULT_PORT}",)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(
                f"an address is text; write Client('node1:7400', 'node2:7400'), not {text!r}"
            )
    names = [name.strip() for text in texts for name in text.split(",")]
    found = tuple(dict.fromkeys(parsed_address(name) for name in names if name))
    if not found:
        raise InvalidArgument("no node address was given; try 127.0.0.1:7400")
    return found


def parsed_address(text: str) -> Address:
    """Return the address in "host:port", "host", "[v6]:port"; `InvalidArgument` if it is none."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
        is_formed = bool(bracket) and (not rest or rest.startswith(":"))
    else:
        host, _, port = text.partition(":")
        is_formed = ":" not in port
    if not is_formed or not host:
        raise InvalidArgument(
            f"{text!r} is not an address; write host:port, for instance node1:7400"
        )
    if not port:
        return Address(host, DEFAULT_PORT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise InvalidArgument(f"{port!r} is not a port; write host:port")
    return Address(host, int(port))
