"""Bugs planted in what readers at the nearest replica are promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import far_apart, homed

from angarium.replica.freshness import Freshness
from angarium.testing.sim.nearby import Nearby

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.requests import FetchRequest, HighWaterReply


@bug(seeds_max=10, run=far_apart)
def staleness_counted_from_the_answer() -> Iterator[Replaced]:
    """A replica counts how stale it is from its leader's answer, not from its own question."""
    original = Nearby.heard

    def heard(nearby: Nearby, reply: HighWaterReply) -> None:
        asked = nearby._asked.get(reply.number)
        if asked is not None:
            nearby._asked[reply.number] = asked._replace(at=nearby._world.scheduler.now)
        original(nearby, reply)

    yield Replaced(Nearby, "heard", heard)


@bug(seeds_max=10, run=far_apart)
def staleness_of_what_has_not_come_yet() -> Iterator[Replaced]:
    """A replica says to be as fresh as its leader's answer before it has what that speaks of."""
    original = Freshness.staleness

    def staleness(fresh: Freshness, *, now: int, end: int) -> int | None:
        del end
        return original(fresh, now=now, end=2**62)

    yield Replaced(Freshness, "staleness", staleness)


@bug(seeds_max=10, run=homed)
def staleness_bound_not_kept() -> Iterator[Replaced]:
    """A replica answers although it is, or may be, staler than the reader allows."""

    def may_answer(_: Nearby, request: FetchRequest, replica: PartitionReplica) -> bool:
        return replica.end_offset >= request.at_least

    yield Replaced(Nearby, "may_answer", may_answer)


@bug(seeds_max=10, run=homed)
def readers_are_shown_less_than_before() -> Iterator[Replaced]:
    """A replica that lacks what a reader has seen, or has written, answers with what it has."""
    original = Nearby.may_answer

    def may_answer(nearby: Nearby, request: FetchRequest, replica: PartitionReplica) -> bool:
        return original(nearby, request._replace(at_least=0), replica)

    yield Replaced(Nearby, "may_answer", may_answer)
