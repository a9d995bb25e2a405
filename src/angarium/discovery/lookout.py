"""A node's lookout: everybody who can be asked where other nodes are.

While a node runs, its lookout follows them, and tells whoever listens which addresses are gone and
which are back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.discovery.port import LOOK_S_MAX, DiscoveryFailed
from angarium.retrying import Backoff, Tries
from angarium.telemetry.exposition import Family, Sample, gauge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from angarium.addresses import Address
    from angarium.discovery.port import Discovery, Found

PAUSES: Final = Backoff(first_s=0.5, longest_s=15.0)
"""Between two attempts to follow a source that cannot be asked."""

_log = logging.getLogger(__name__)


class Look(NamedTuple):
    """Where to look now."""

    addresses: tuple[Address, ...]
    failures: tuple[DiscoveryFailed, ...] = ()
    """Why some of those who were asked have added nothing."""


class Lookout:
    """Where one node looks for others. Its owner runs `run` as a task."""

    def __init__(self, sources: Sequence[Discovery] = ()) -> None:
        self.sources = tuple(sources)
        self.on_gone: Callable[[Collection[Address]], None] = lambda _: None
        """Hears which addresses somebody does not have any more."""
        self.on_back: Callable[[Collection[Address]], None] = lambda _: None
        """Hears which ones are there again, or for the first time."""
        self._known: dict[Discovery, frozenset[Address]] = {}
        self._failures: dict[Discovery, str] = {}
        self._counts: Counter[str] = Counter()

    async def look(self) -> Look:
        """Ask everybody where others may be now; those in the settings come first."""
        told = await asyncio.gather(*map(self._ask, self.sources))
        addresses = [
            one for answer in told if not isinstance(answer, Exception) for one in answer.addresses
        ]
        failures = [answer for answer in told if isinstance(answer, Exception)]
        return Look(tuple(dict.fromkeys(addresses)), tuple(failures))

    async def _ask(self, source: Discovery) -> Found | DiscoveryFailed:
        try:
            async with asyncio.timeout(LOOK_S_MAX):
                answer = await source.find()
        except TimeoutError:
            failure = DiscoveryFailed(f"{source.name} did not answer within {LOOK_S_MAX:g} s")
            return self._failed(source, failure)
        except DiscoveryFailed as failure:
            return self._failed(source, failure)
        except Exception as error:  # whoever is asked is somebody else's: it must not harm us
            return self._failed(source, _unforeseen(source, error))
        self._succeeded(source)
        return answer

    async def run(self) -> None:
        """Follow everybody until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for source in self.sources:
                tasks.create_task(self._follow(source))

    async def _follow(self, source: Discovery) -> None:
        tries = Tries(PAUSES)
        while True:
            try:
                async with aclosing(source.follow()) as following:
                    async for answer in following:
                        tries.succeeded()
                        self._succeeded(source)
                        self._take(source, answer)
            # What it said last stays: that it cannot be asked says nothing about nodes.
            except DiscoveryFailed as failure:
                self._failed(source, failure)
            except Exception as error:
                self._failed(source, _unforeseen(source, error))
            await tries.pause()

    def _take(self, source: Discovery, answer: Found) -> None:
        # Each for itself: that the settings still list an address says nothing about now.
        before = self._known.get(source, frozenset())
        now = self._known[source] = frozenset(answer.addresses)
        if now - before:
            self.on_back(now - before)
        gone = before - now
        if gone:
            told = {"addresses": sorted(map(str, gone)), "left": len(now)}
            _log.info("addresses are gone, says %s", source.name, extra=told)
            self.on_gone(gone)

    def _succeeded(self, source: Discovery) -> None:
        self._counts["found"] += 1
        if self._failures.pop(source, None) is not None:
            _log.info("%s can be asked again where nodes are", source.name)

    def _failed(self, source: Discovery, failure: DiscoveryFailed) -> DiscoveryFailed:
        self._counts["failed"] += 1
        # Once per reason: the same is tried again every few seconds.
        if self._failures.get(source) != str(failure):
            self._failures[source] = str(failure)
            _log.warning("where nodes are cannot be found out: %s; trying again", failure)
        return failure

    def families(self) -> Iterable[Family]:
        """Return metrics."""
        yield gauge(
            "angarium_discovery_addresses",
            "Addresses of nodes, as those who are asked for them said last.",
            len(frozenset().union(*self._known.values())),
        )
        yield Family(
            "angarium_discovery_looks_total",
            "counter",
            "Answers to the question where nodes are, by outcome.",
            tuple(Sample(self._counts[one], (("outcome", one),)) for one in ("found", "failed")),
        )


def _unforeseen(source: Discovery, error: Exception) -> DiscoveryFailed:
    return DiscoveryFailed(f"{source.name} was not understood ({type(error).__name__}: {error})")
