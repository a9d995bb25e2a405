"""The names that a door answers to: a web page must not reach it by a name of the page's own.

A browser lets a page read what comes from the host that the page itself came from, and goes by the
host's *name*. The owner of a name can let it point to this machine after a page has been loaded
(DNS rebinding): all their requests then look like those of a page of our own. What they cannot
change is the name, which every request says (`Host`). So only names that are known to be ours are
answered: those of the settings, this machine's own, and IP addresses, which are nobody's to point
elsewhere.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from angarium.wire.http.request_reader import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.wire.http.messages import Request

EVERY_NAME: Final = "*"
"""Among the names: whatever a request says."""

LOOPBACK: Final = "localhost"
"""It and every name below it is this machine for every browser (RFC 6761)."""

MISDIRECTED: Final = 421
"""What HTTP calls a request for a host that is not served here."""

REMEMBERED_MAX: Final = 1_024
"""Values of `Host` that are remembered. At the bound all are forgotten."""

SHOWN_CHARACTERS_MAX: Final = 100
"""How much of a name that was refused is repeated."""

_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]/@?#\s]+))(?::[0-9]{0,5})?"
)


class Hosts:
    """The host names under which a door may be asked."""

    def __init__(
        self, names: Iterable[str] = (), *, setting: str = "[http] hosts in node.toml"
    ) -> None:
        """Take names (`*.example.org`: all below it); `setting` is where others would be named."""
        plain = [plain_name(one) for one in names]
        self._names = frozenset([LOOPBACK, *plain])
        self._below = (f".{LOOPBACK}", *[one[1:] for one in plain if one.startswith("*.")])
        self._setting = setting
        self.remembered: set[bytes | None] = set()
        """Values of `Host` that were found right."""

    def admit(self, request: Request) -> None:
        """Raise `RequestRefused` if a request is for another host; browsers always say one."""
        said = request.header(b"host")
        if said is None or said in self.remembered or EVERY_NAME in self._names:
            return
        if not self.has(said.decode("latin-1")):
            shown = said.decode("latin-1")[:SHOWN_CHARACTERS_MAX]
            raise RequestRefused(
                f"this broker does not answer to the name {shown!r}, so that web pages cannot reach"
                f" it by names of their own; add it to {self._setting}, or use an IP address",
                status=MISDIRECTED,
            )
        if len(self.remembered) >= REMEMBERED_MAX:
            self.remembered.clear()
        self.remembered.add(said)

    def has(self, authority: str) -> bool:
        """Whether `HOST` or `HOST:PORT` is one of ours, whatever the port."""
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        name = plain_name(found["v6"] or found["name"])
        return name in self._names or name.endswith(self._below) or is_ip_address(name)


def plain_name(name: str) -> str:
    """Return a name as it is compared: in lower case, without the dot that may end it."""
    return name.removesuffix(".").lower()


def is_ip_address(text: str) -> bool:
    """Whether this is an address in itself; browsers write them in the usual way."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
