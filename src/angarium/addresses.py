"""HOST:PORT, as people write it."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

PORT_MAX: Final = 65_535

_HOSTS: Final = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")


class Address(NamedTuple):
    """Where somebody listens. Port 0 asks for a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return it as `parse` reads it; IPv6 hosts stand in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the address that `text` names; `ValueError` says what is wrong with it."""
        host, colon, port = text.strip().rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        if not colon or not bare or (":" in bare and bare == host):
            raise ValueError(f'"{text}" is not HOST:PORT; write for example 127.0.0.1:7400')
        if any(one.isspace() or not one.isprintable() for one in bare):
            raise ValueError(f"{text!r} has a host that no machine can have")
        if not (port.isascii() and port.isdecimal() and int(port) <= PORT_MAX):
            raise ValueError(f'"{port}" is not a port; ports go from 0 to {PORT_MAX}')
        return cls(bare, int(port))

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine can reach it. A name other than localhost may not be."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def dialled(text: str) -> Address | None:
    """Return where to dial; None for a text that names no address, or port 0 of one.

    For what another process says: it may say anything, and earlier releases wrote IPv6 hosts
    without brackets.
    """
    host, _, port = text.rpartition(":")
    try:
        found = Address.parse(f"[{host}]:{port}" if ":" in host and host[0] != "[" else text)
    except ValueError:
        return None
    return found if found.port else None


def names_hosts(text: str) -> bool:
    """Whether a text names hosts, without a port: one, all below one (`*.example.org`), or `*`."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "*" or _HOSTS.fullmatch(text) is not None
    return True


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses in a list with commas; `ValueError` for none or a wrong one."""
    found = tuple(Address.parse(one) for one in text.split(",") if one.strip())
    if not found:
        raise ValueError("there is no address in it; write for example 127.0.0.1:7400")
    return found
