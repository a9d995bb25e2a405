"""`serf`: the members that a Serf agent knows to be alive.

The agent runs on the node's own machine, or next to it; each machine of the cluster has one, with a
tag `wire` that says where the node there listens. Events of the agent are only a reason to ask it
again: what counts is the list of members.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from typing import TYPE_CHECKING, Final

from angarium.addresses import Address
from angarium.discovery.port import DiscoveryFailed, Found, NothingFound, found
from angarium.discovery.serf_rpc import SerfRpc

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

WIRE_TAG: Final = "wire"
"""The tag that says where a member's node listens: PORT, or HOST:PORT."""

EVENTS: Final = "member-join,member-leave,member-failed,member-update,member-reap"

LOOK_AGAIN_S: Final = 60.0
"""How often the list is asked for without an event: an agent drops those that it cannot send."""

PAUSE_S: Final = 0.1
"""From an event to the question what has changed: they come in crowds."""


class SerfDiscovery:
    """Asks one agent."""

    def __init__(
        self,
        agent: Address,
        *,
        port: int,
        tags: Mapping[str, str] | None = None,
        key: Callable[[], str] = lambda: "",
    ) -> None:
        """Take members that have all of `tags`; those without a tag `wire` are at `port`.

        `key` returns what the agent asks for; it is called for each connection.
        """
        self._agent = agent
        self._port = port
        self._tags = dict(tags or {})
        self._key = key

    @property
    def name(self) -> str:
        """Who is asked."""
        return f"the Serf agent at {self._agent}"

    async def find(self) -> Found:
        """Look once."""
        answer = await self._look()
        if not answer.addresses:
            wanted = " ".join(f"{name}={value}" for name, value in self._tags.items())
            raise NothingFound(
                f"{self.name} knows no member that is alive"
                f"{f' and has the tags {wanted}' if wanted else ''}"
            )
        return answer

    async def follow(self) -> AsyncGenerator[Found, None]:
        """Look whenever the agent says that something has happened."""
        async with SerfRpc(self._agent, self._read_key()) as rpc:
            # First the stream, then the list: what happens in between is not missed.
            await rpc.call("stream", {"Type": EVENTS})
            while True:
                yield await self._look()
                try:
                    async with asyncio.timeout(LOOK_AGAIN_S):
                        await rpc.next_event()
                except TimeoutError:
                    continue
                await asyncio.sleep(PAUSE_S)

    async def _look(self) -> Found:
        # The agent chooses by patterns that have to fit as a whole: few are left to be looked at.
        chosen = {"Status": "alive", "Tags": {one: re.escape(it) for one, it in self._tags.items()}}
        async with SerfRpc(self._agent, self._read_key()) as rpc:
            members = (await rpc.ask("members-filtered", chosen)).get(b"Members")
        listed = members if isinstance(members, list) else []
        return found(where for one in listed if (where := self._address(one)) is not None)

    def _read_key(self) -> str:
        try:
            return self._key()
        except (OSError, ValueError) as error:
            raise DiscoveryFailed(f"the key of {self.name} cannot be read: {error}") from error

    def _address(self, member: object) -> Address | None:
        """Return where a member's node is; None if it does not count, or says nonsense."""
        if not isinstance(member, dict) or member.get(b"Status") != b"alive":
            return None
        told = member.get(b"Tags")
        tags = _texts(told if isinstance(told, dict) else {})
        if any(tags.get(name) != value for name, value in self._tags.items()):
            return None
        wire = tags.get(WIRE_TAG, str(self._port))
        try:
            return Address.parse(wire if ":" in wire else f"{_host(member)}:{wire}")
        except ValueError:
            return None


def _host(member: dict[object, object]) -> str:
    """Return a member's address, in brackets if it is of IPv6; `ValueError` if it has none."""
    packed = member.get(b"Addr")
    if not isinstance(packed, bytes):
        raise ValueError("a member without an address")
    host = ipaddress.ip_address(packed)
    mapped = host.ipv4_mapped if host.version == 6 else None
    return str(mapped or host) if mapped or host.version == 4 else f"[{host}]"


def _texts(tags: dict[object, object]) -> dict[str, str]:
    """Return the tags that are texts; what else somebody has put there is nothing to us."""
    texts = {}
    for name, value in tags.items():
        if isinstance(name, bytes) and isinstance(value, bytes):
            texts[name.decode(errors="replace")] = value.decode(errors="replace")
    return texts
