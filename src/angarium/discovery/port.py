"""The port: what every adapter can be asked, and within which bounds it answers."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from angarium.addresses import Address

ADDRESSES_MAX: Final = 1_000
"""So many addresses are taken from one answer; the others are left out. No cluster is larger, and
each may be dialled."""

LOOK_S_MAX: Final = 5.0
"""How long one look may take. Whoever looks does so again."""


class DiscoveryFailed(AngariumError):
    """Where to look cannot be found out now; the message says what is wrong, and what to do."""

    code = "DISCOVERY_FAILED"
    retriable = True


class NothingFound(DiscoveryFailed):
    """Somebody was asked, and knows of no node: the first one of a cluster hears this."""


class Found(NamedTuple):
    """What one look has found."""

    addresses: tuple[Address, ...]
    """Wire addresses of nodes, each once."""
    holds_s: float = 60.0
    """How long that may be taken for true before somebody looks again."""


class Discovery(Protocol):
    """Somebody who knows where nodes are. Holds no connection but while one of these runs."""

    @property
    def name(self) -> str:
        """Who is asked, for logs and errors."""

    async def find(self) -> Found:
        """Look once, within `LOOK_S_MAX`. Raises `NothingFound`, or why nobody can be asked."""

    def follow(self) -> AsyncGenerator[Found, None]:
        """Yield what there is, and again whenever that may have changed; it may be nothing.

        Ends with `DiscoveryFailed` when nobody can be asked any more; the caller begins anew.
        """


def found(addresses: Iterable[Address], *, holds_s: float = 60.0) -> Found:
    """Return an answer that keeps its bounds."""
    kept = dict.fromkeys(one for one in addresses if one.port)
    return Found(tuple(islice(kept, ADDRESSES_MAX)), holds_s)
