"""Bugs planted where it is decided in which regions partitions live, and who only listens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import following, placed, scripted

from angarium.machine.catalog import topics
from angarium.machine.catalog.regions import Wish, reading_regions
from angarium.machine.catalog.topics import Topics
from angarium.node import origins
from angarium.node.balance.layout import Layout
from angarium.node.liveness import Beats
from angarium.node.steering import next_change
from angarium.testing.sim import beats, operator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.machine.catalog import Node, Partition, TopicSettings


@bug(seeds_max=20, run=placed)
def homes_forgotten_by_a_rebalance() -> Iterator[Replaced]:
    """Replicas of a homed partition go to whichever node has fewest, wherever it is."""
    original = Layout._is_allowed

    def is_allowed(layout: Layout, setting: Any, before: Any, after: Any) -> bool:
        regions, _, *others = setting
        return original(layout, (regions, False, *others), before, after)

    yield Replaced(Layout, "_is_allowed", is_allowed)


@bug(seeds_max=20, run=placed)
def home_without_a_majority() -> Iterator[Replaced]:
    """A homed partition is placed like one whose leader only should be at home."""

    def wish_of(settings: TopicSettings, number: int) -> Wish:
        home = settings.homes[number % len(settings.homes)] if settings.homes else ""
        return Wish(settings.replication, (home,) if home else ())

    def wish_for(settings: TopicSettings, partition: Partition) -> Wish:
        return wish_of(settings, partition.number)

    yield Replaced(topics, "wish_of", wish_of)
    yield Replaced(topics, "wish_for", wish_for)


@bug(seeds_max=20, run=placed)
def reader_left_behind_by_a_drain() -> Iterator[Replaced]:
    """A node that is drained gives its votes away, and keeps the copies to read from."""

    def is_astray(*_: Any) -> bool:
        return False

    def beside(self: Topics, partition: Partition, voters: Any, nodes: Any) -> Any:
        readers, witness = original(self, partition, voters, nodes)
        return partition.readers or readers, witness

    original = Topics._beside
    yield Replaced(Topics, "is_astray", is_astray)
    yield Replaced(Topics, "_beside", beside)


@bug(seeds_max=20, run=placed)
def region_without_its_readers() -> Iterator[Replaced]:
    """Where every region is to have a copy to read from, one of them is left out."""

    def regions(settings: TopicSettings, nodes: list[Node]) -> tuple[str, ...]:
        return reading_regions(settings, nodes)[1:]

    yield Replaced(topics, "reading_regions", regions)


@bug(seeds_max=20, run=placed)
def readers_made_voters() -> Iterator[Replaced]:
    """Who has caught up is given a vote, though it was only to listen."""

    def change(state: Any, *, voters: Any, learners: Any, **rest: Any) -> Any:
        return next_change(state, voters={*voters, *learners}, learners=(), **rest)

    yield Replaced(operator, "next_change", change)


@bug(seeds_max=10, run=following)
def followed_without_a_pause() -> Iterator[Replaced]:
    """Leaders follow at once, whoever has just said where to lead."""

    def may_follow(*_: Any, **__: Any) -> bool:
        return True

    yield Replaced(origins, "may_follow", may_follow)


@bug(seeds_max=10, run=following)
def burst_followed() -> Iterator[Replaced]:
    """What was published in the last moment decides where to lead."""

    def followed_region(window: Any) -> str | None:
        counts = {region: count for region, count in window[-1].items() if region}
        return max(counts, key=counts.__getitem__, default=None)

    yield Replaced(origins, "followed_region", followed_region)


@bug(seeds_max=5, run=scripted("followed-behind"))
def followed_to_one_that_lags() -> Iterator[Replaced]:
    """Leaders follow to whichever replica is there, however much it lacks."""

    def lacks_little(*_: Any) -> bool:
        return True

    yield Replaced(operator, "lacks_little", lacks_little)


@bug(seeds_max=2, run=scripted("silent-cut"))
def silence_never_shows() -> Iterator[Replaced]:
    """Only a connection that ends tells that a node is gone, and packets that vanish end none."""

    def is_silent(*_: Any) -> bool:
        return False

    yield Replaced(Beats, "is_silent", is_silent)


@bug(seeds_max=2, run=scripted("silent-cut"))
def pause_taken_for_a_cut() -> Iterator[Replaced]:
    """The shortest election timeout is all that a node may be silent."""

    def patience_s(*, election_s: float, **_: Any) -> float:
        return election_s

    yield Replaced(beats, "patience_s", patience_s)


@bug(seeds_max=2, run=scripted("silent-cut"))
def silence_of_one_counted_for_all() -> Iterator[Replaced]:
    """A node that hears from any other one takes all of them for alive."""
    original = Beats.look

    def look(self: Beats, nodes: Any, *, heard: Any) -> None:
        original(self, nodes, heard=nodes if heard else ())

    yield Replaced(Beats, "look", look)
