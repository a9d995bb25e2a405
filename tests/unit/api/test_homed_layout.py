"""Where publishers of a homed topic write to: near, in the next region, or not at all."""

from __future__ import annotations

from typing import Any

from angarium.api import PartitionInfo, TopicConfig, TopicInfo
from angarium.api.homes import HOME_LOST_S, Homes
from angarium.api.layout import Layout, layout_of
from angarium.batch import key_hash
from angarium.ids import Micros, NodeId, TopicId

REGIONS = ("eu", "us", "ap")


def topic(partitions: int = 6, *, gone: tuple[str, ...] = (), **config: Any) -> TopicInfo:
    """Return a topic homed in three regions; nobody leads anything in those that are gone."""
    homes = [REGIONS[number % 3] for number in range(partitions)]
    return TopicInfo(
        id=TopicId(1),
        name="orders",
        config=TopicConfig(placement="homed", regions=REGIONS, **config),
        partitions=tuple(
            PartitionInfo(
                number=number,
                replicas=(NodeId(1),),
                leader=None if home in gone else NodeId(1),
                home=home,
            )
            for number, home in enumerate(homes)
        ),
        created_at=Micros(0),
    )


def test_a_publisher_writes_to_the_partitions_of_its_region() -> None:
    layout = layout_of(topic(), "us")
    assert layout.partitions == (1, 4)
    assert layout.region == "us"
    assert {layout.of_key(str(n).encode()) for n in range(50)} == {1, 4}
    assert [layout.in_turn(n) for n in range(4)] == [1, 4, 1, 4]


def test_a_publisher_without_a_region_writes_to_all() -> None:
    assert layout_of(topic()) == Layout.over(6)


def test_a_topic_that_is_not_homed_has_one_layout_for_all() -> None:
    spread = TopicInfo(
        id=TopicId(1),
        name="orders",
        config=TopicConfig(),
        partitions=topic().partitions,
        created_at=Micros(0),
    )
    assert layout_of(spread, "us") == Layout.over(6)


def test_who_has_no_home_writes_to_the_first_region_and_a_lost_one_to_the_next() -> None:
    assert layout_of(topic(), "mars").region == "eu"
    assert layout_of(topic(2), "ap").region == "eu", "no partition lives in ap"
    assert layout_of(topic(), "us", lost={"us"}).region == "ap"
    assert layout_of(topic(), "us", lost={"us", "ap"}).region == "eu"
    assert layout_of(topic(), "us", lost=set(REGIONS)).region == "us", "it waits at home"


def test_each_partition_has_one_that_stands_in_for_it() -> None:
    home = layout_of(topic(7), "eu")
    away = layout_of(topic(7), "eu", lost={"eu"})
    assert home.partitions == (0, 3, 6)
    assert away.partitions == (1, 4, 1)
    for number in range(100):
        key = str(number).encode()
        slot = home.partitions.index(home.of_key(key))
        assert away.of_key(key) == away.partitions[slot], "records of a key stay together"


def test_refusing_topics_stay_at_home() -> None:
    assert layout_of(topic(home_lost="refuse"), "us", lost={"us"}).partitions == (1, 4)


def test_global_keys_have_one_partition_wherever_it_lives() -> None:
    info = topic(key_order="global")
    layouts = [layout_of(info, region) for region in REGIONS]
    for number in range(50):
        key = str(number).encode()
        assert {one.of_key(key) for one in layouts} == {key_hash(key) % 6}
    assert layouts[1].pins_keys
    assert [layouts[1].in_turn(n) for n in range(2)] == [1, 4], "without a key they stay near"
    lost = layout_of(info, "us", lost={"us"})
    assert lost.of_key(b"a") == layouts[0].of_key(b"a")
    assert lost.partitions == (2, 5)


def test_a_region_is_lost_when_nobody_has_led_there_for_a_while() -> None:
    homes = Homes()
    homes.learn(topic(), now=0.0)
    assert homes.lost(now=0.0) == frozenset()
    homes.learn(topic(gone=("us",)), now=10.0)
    assert homes.are_doubtful
    assert homes.lost(now=10.0 + HOME_LOST_S - 0.1) == frozenset()
    homes.learn(topic(gone=("us",)), now=12.0)
    assert homes.lost(now=10.0 + HOME_LOST_S) == {"us"}
    homes.learn(topic(), now=20.0)
    assert homes.lost(now=20.0) == frozenset(), "and is there again at once"


def test_a_majority_that_is_gone_is_not_waited_for() -> None:
    info = topic(gone=("us",))
    told = TopicInfo(
        id=info.id,
        name=info.name,
        config=info.config,
        partitions=tuple(
            PartitionInfo(
                number=one.number,
                replicas=one.replicas,
                leader=one.leader,
                home=one.home,
                trouble="" if one.leader else "partition 1 of orders has 1 of 3 replicas",
            )
            for one in info.partitions
        ),
        created_at=info.created_at,
    )
    homes = Homes()
    homes.learn(told, now=0.0)
    assert homes.lost(now=0.0) == {"us"}
