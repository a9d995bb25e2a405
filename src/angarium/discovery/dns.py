"""`dns`: the addresses of a name (A and AAAA), or hosts and ports of a service (SRV).

Every look asks anew, and no answer is kept: a node looks again whenever nobody was found where it
looked, and while all is well as often as the answer says (its TTL).
"""

from __future__ import annotations

import asyncio
import importlib.util
from typing import TYPE_CHECKING, Final

from angarium.addresses import Address
from angarium.discovery.port import DiscoveryFailed, Found, NothingFound, found
from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from dns.asyncresolver import Resolver
    from dns.resolver import Answer

DNS_PORT: Final = 53

SERVER_S_MAX: Final = 1.0
LOOKUP_S_MAX: Final = 3.0
"""How long one server may take for one question, and all of them together."""

HOLDS_S_MIN: Final = 2.0
HOLDS_S_MAX: Final = 300.0
"""How often a name is asked for while all is well, whatever the answer's TTL is."""

TARGETS_MAX: Final = 256
"""Hosts of a service that are looked up; the others are left out."""

ASKED_AT_ONCE_MAX: Final = 16
"""Hosts that are looked up at the same time."""


def check_installed() -> None:
    """Raise `PreconditionFailed` without the extra: when a node starts, not when it looks."""
    if importlib.util.find_spec("dns") is None:
        raise PreconditionFailed("discovery by DNS needs an extra: pip install 'angarium[dns]'")


class DnsDiscovery:
    """Asks for one name."""

    def __init__(self, name: str, *, port: int, servers: Sequence[Address] = ()) -> None:
        """`name` is a service if it begins with an underscore; other names have no port, so theirs
        is `port`. Without `servers`, those of the system (/etc/resolv.conf) are asked."""
        self._name = name
        self._port = port
        self._servers = tuple(servers)

    @property
    def name(self) -> str:
        """Who is asked."""
        return f"DNS ({self._name})"

    async def find(self) -> Found:
        """Look once."""
        from dns.exception import DNSException  # noqa: PLC0415  (an extra)

        try:
            # Made anew each time: the system's servers may be others by now.
            resolver = self._resolver()
            if self._name.startswith("_"):
                return await self._service(resolver)
            return await self._hosts(resolver, self._name, self._port)
        except (DNSException, OSError) as error:
            raise self._failure(error) from error

    async def follow(self) -> AsyncGenerator[Found, None]:
        """Look again and again, as often as the answers say."""
        while True:
            answer = await self.find()
            yield answer
            await asyncio.sleep(answer.holds_s)

    def _resolver(self) -> Resolver:
        from dns.asyncresolver import Resolver  # noqa: PLC0415  (an extra)
        from dns.nameserver import Do53Nameserver  # noqa: PLC0415

        resolver = Resolver(configure=not self._servers)
        if self._servers:
            resolver.nameservers = [Do53Nameserver(*one) for one in self._servers]
        resolver.timeout, resolver.lifetime = SERVER_S_MAX, LOOKUP_S_MAX
        return resolver

    async def _service(self, resolver: Resolver) -> Found:
        answer = await resolver.resolve(self._name, "SRV", search=not self._servers)
        targets = [(str(one.target), one.port) for one in answer][:TARGETS_MAX]
        lookups = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

        async def hosts(target: str, port: int) -> Found | DiscoveryFailed:
            async with lookups:
                try:
                    return await self._hosts(resolver, target, port)
                # A host that was taken away, while the service still names it, hides no other.
                except DiscoveryFailed as failure:
                    return failure

        told = await asyncio.gather(*(hosts(*one) for one in targets))
        answers = [one for one in told if not isinstance(one, Exception)]
        if not answers:
            raise next(one for one in told if isinstance(one, Exception))
        return found(
            [address for one in answers for address in one.addresses],
            holds_s=min(_holds(answer), *(one.holds_s for one in answers)),
        )

    async def _hosts(self, resolver: Resolver, host: str, port: int) -> Found:
        from dns.exception import DNSException  # noqa: PLC0415  (an extra)
        from dns.resolver import NXDOMAIN, NoAnswer  # noqa: PLC0415

        kinds = ("A", "AAAA")
        search = not self._servers and not host.endswith(".")
        told = await asyncio.gather(
            *(resolver.resolve(host, one, search=search) for one in kinds), return_exceptions=True
        )
        answers = [one for one in told if not isinstance(one, BaseException)]
        failures = [one for one in told if isinstance(one, BaseException)]
        for failure in failures:
            if not isinstance(failure, DNSException | OSError):
                raise failure
        if not answers:
            # The grave one: that there is no AAAA says little where the server did not answer.
            grave = [one for one in failures if not isinstance(one, NoAnswer | NXDOMAIN)]
            raise self._failure((grave or failures)[0], host)
        return found(
            [Address(one.address, port) for answer in answers for one in answer],
            holds_s=min(map(_holds, answers)),
        )

    def _failure(self, error: BaseException, host: str = "") -> DiscoveryFailed:
        from dns.resolver import NXDOMAIN, NoAnswer  # noqa: PLC0415  (an extra)

        kind = NothingFound if isinstance(error, NXDOMAIN | NoAnswer) else DiscoveryFailed
        return kind(self._told(error, host))

    def _told(self, error: BaseException, host: str) -> str:
        """Say what is wrong, in words that name the place to mend."""
        from dns import resolver  # noqa: PLC0415  (an extra)

        name = (host or self._name).removesuffix(".")
        who = ", ".join(map(str, self._servers)) or "the servers in /etc/resolv.conf"
        match error:
            case resolver.NXDOMAIN():
                return f"DNS has no name {name} (asked: {who})"
            case resolver.NoAnswer():
                kinds = "SRV" if self._name.startswith("_") and not host else "A or AAAA"
                return f"{name} has no {kinds} records in DNS (asked: {who})"
            case resolver.LifetimeTimeout():
                return f"no DNS server has answered within {LOOKUP_S_MAX:g} s (asked: {who})"
            case resolver.NoNameservers():
                return f"the DNS servers cannot answer for {name} (asked: {who}): {error}"
            case resolver.NoResolverConfiguration():
                return f"there is no DNS server to ask: {error}"
            case _:
                return f"{name} cannot be looked up in DNS (asked: {who}): {error}"


def _holds(answer: Answer) -> float:
    ttl = HOLDS_S_MIN if answer.rrset is None else float(answer.rrset.ttl)
    return min(max(ttl, HOLDS_S_MIN), HOLDS_S_MAX)
