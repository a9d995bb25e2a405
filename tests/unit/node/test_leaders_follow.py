"""When leaders follow their publishers: a clear majority, over time, to a replica that can lead."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from hypothesis import given
from hypothesis import strategies as st

from angarium.errors import PreconditionFailed, Unreachable
from angarium.ids import Micros, NodeId, RaftGroupId, TopicId
from angarium.machine.catalog import Partition
from angarium.node.following import Following
from angarium.node.origins import (
    REGIONS_MAX,
    SLICES,
    UNKNOWN,
    Origins,
    followed_leader,
    followed_region,
    may_follow,
)
from angarium.node.steering import led_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.errors import AngariumError
    from angarium.machine.catalog import Reassign

GROUP = RaftGroupId(1)
EU, US, AS = NodeId(1), NodeId(2), NodeId(3)
WHERE = {EU: "eu", US: "us", AS: "as"}
REGIONS = ("eu", "us", "as", UNKNOWN)

slices = st.dictionaries(st.sampled_from(REGIONS), st.integers(0, 20))


def _end_slice(origins: Origins) -> None:
    """End a slice just in time, whenever that is."""
    if origins._ends is None:
        origins.ended_slice(now=0, length=1)
    if origins._ends is not None:
        origins.ended_slice(now=origins._ends, length=1)


def _leader(
    window: Sequence[Mapping[str, int]], first: NodeId = EU, able: set[NodeId] | None = None
) -> NodeId | None:
    replicas = (first, *(one for one in WHERE if one != first))
    able = set(WHERE) if able is None else able
    return followed_leader(replicas, WHERE, window, could_lead=able.__contains__)


def test_a_region_with_nearly_all_publishes_is_followed() -> None:
    assert _leader([{"us": 9, "eu": 1}] * SLICES) == US


def test_nothing_is_followed_before_the_window_is_full() -> None:
    assert _leader([{"us": 9}] * (SLICES - 1)) is None


def test_a_burst_is_not_followed_however_large() -> None:
    assert _leader([*[{"eu": 1}] * (SLICES - 1), {"us": 1_000_000}]) is None


def test_two_thirds_are_needed_and_a_bare_majority_is_not_enough() -> None:
    assert _leader([{"us": 6, "eu": 4}] * SLICES) is None
    assert _leader([{"us": 7, "eu": 3}] * SLICES) == US


def test_publishers_who_do_not_say_where_they_are_count_against_everybody() -> None:
    assert _leader([{"us": 5, UNKNOWN: 5}] * SLICES) is None
    assert _leader([{UNKNOWN: 100}] * SLICES) is None


def test_a_slice_without_publishes_keeps_everything_as_it_is() -> None:
    assert _leader([{"us": 9}] * (SLICES - 1) + [{}]) is None


def test_a_replica_that_cannot_lead_is_not_followed_to() -> None:
    assert _leader([{"us": 9}] * SLICES, able={EU, AS}) is None


def test_a_region_without_a_replica_is_not_followed() -> None:
    assert _leader([{"mars": 9}] * SLICES) is None


def test_whoever_leads_while_the_preferred_one_is_away_may_become_it() -> None:
    assert _leader([{"us": 9}] * SLICES, first=AS, able={US}) == US


def test_regions_that_clients_make_up_take_no_room() -> None:
    origins = Origins()
    for number in range(10 * REGIONS_MAX):
        origins.count(GROUP, f"region-{number}")
    _end_slice(origins)
    (counts,) = origins.window(GROUP)
    assert len(counts) <= REGIONS_MAX + 1
    assert sum(counts.values()) == 10 * REGIONS_MAX
    assert counts[UNKNOWN] == 9 * REGIONS_MAX


def test_slices_begin_with_a_publish_and_end_when_nobody_publishes() -> None:
    origins = Origins()
    assert origins.ended_slice(now=0, length=1) == []
    origins.count(GROUP, "eu")
    assert origins.ended_slice(now=5, length=1) == []
    assert origins.ended_slice(now=6, length=1) == [GROUP]
    assert origins.window(GROUP) == [{"eu": 1}]
    for at in range(SLICES):
        assert origins.ended_slice(now=7 + at, length=1) == []
    assert origins.window(GROUP) == []


def test_what_was_counted_before_a_standstill_does_not_count() -> None:
    origins = Origins()
    for at in range(SLICES):
        origins.count(GROUP, "us")
        origins.ended_slice(now=at, length=1)
    assert len(origins.window(GROUP)) == SLICES - 1
    origins.count(GROUP, "us")
    assert origins.ended_slice(now=SLICES + 1, length=1) == []
    assert origins.window(GROUP) == []


@given(st.lists(slices, min_size=SLICES, max_size=SLICES))
def test_who_is_followed_has_a_clear_majority_in_all_and_a_majority_in_each(
    window: list[dict[str, int]],
) -> None:
    region = followed_region(window)
    counts: Counter[str] = Counter()
    for one in window:
        counts.update(one)
    clear = [
        name
        for name in WHERE.values()
        if counts.total()
        and counts[name] / counts.total() > 0.66
        and all(one.get(name, 0) > sum(one.values()) / 2 for one in window)
    ]
    assert clear == ([] if region is None else [region])


@given(st.lists(slices, min_size=SLICES, max_size=60), st.integers(0, 12), st.data())
def test_leaders_never_go_back_and_forth(
    told: list[dict[str, int]], pause: int, data: st.DataObject
) -> None:
    """Whatever comes: two changes are a pause apart, and a whole window of one's own counts."""
    origins, led, since, changes = Origins(), EU, Micros(0), []
    for at, counts in enumerate(told, start=100):
        for region, count in counts.items():
            for _ in range(count):
                origins.count(GROUP, region)
        _end_slice(origins)
        able = data.draw(st.sets(st.sampled_from(sorted(WHERE))), label="able")
        now = Micros(at * 1_000_000)
        rested = Partition(GROUP, TopicId(1), 0, tuple(WHERE), (), led_since=since)
        if not may_follow(rested, now=now, pause_s=pause):
            continue
        to = _leader(origins.window(GROUP), first=led, able=able)
        if to is not None:
            assert to in able
            assert to != led
            changes.append(at)
            led, since = to, now
            origins = Origins()  # the next leader has counted nothing yet
    for one, other in pairwise(changes):
        assert other - one >= max(pause, SLICES)


def test_somebody_who_has_just_spoken_is_not_contradicted() -> None:
    partition = Partition(GROUP, TopicId(1), 0, tuple(WHERE), (), led_since=Micros(1_000_000))
    assert not may_follow(partition, now=Micros(300_999_999), pause_s=300)
    assert may_follow(partition, now=Micros(301_000_000), pause_s=300)


def test_a_name_that_no_region_can_have_is_not_kept() -> None:
    origins = Origins()
    for number in range(REGIONS_MAX):
        origins.count(GROUP, f"{number}" + "x" * 4_096)
    _end_slice(origins)
    assert origins.window(GROUP) == [{UNKNOWN: REGIONS_MAX}]


def _looked(error: AngariumError) -> list[RaftGroupId]:
    """Let three partitions follow while the catalog fails so; return who was asked for."""
    asked: list[RaftGroupId] = []

    class Catalog:
        async def submit(self, wish: Reassign) -> None:
            asked.append(wish.group)
            raise error

    config = SimpleNamespace(follow_window_s=SLICES)
    following = Following(cast("Any", SimpleNamespace(config=config, catalog=Catalog())))
    partitions = {
        group: Partition(group, TopicId(1), 0, tuple(WHERE), ())
        for group in map(RaftGroupId, (1, 2, 3))
    }
    following.origins.ended_slice = lambda **_: list(partitions)  # type: ignore[method-assign]
    following._wish = lambda _, one: led_by(one, US)  # type: ignore[method-assign, assignment]
    machine = SimpleNamespace(topics=SimpleNamespace(partitions=partitions))
    asyncio.run(following.look(cast("Any", machine)))
    return asked


def test_a_catalog_that_does_not_answer_is_not_asked_for_every_partition() -> None:
    assert _looked(PreconditionFailed("moved")) == [1, 2, 3]
    assert _looked(Unreachable("no answer")) == [1], "each would wait for a whole timeout"
