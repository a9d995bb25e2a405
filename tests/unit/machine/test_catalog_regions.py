"""Where partitions live in regions: homes, preferences, readers, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.leader import assert_refused

from angarium.ids import Incarnation, Index, Micros, NodeId, RaftGroupId, Term, TopicId
from angarium.machine.catalog import (
    CatalogMachine,
    Form,
    Labels,
    NodeDrain,
    NodeRegister,
    NodeRemove,
    Partition,
    Reassign,
    Reassigned,
    TopicAlter,
    TopicCreate,
    TopicSettings,
    encode,
)
from angarium.machine.catalog.placement import host_of, hosts_by_region
from angarium.machine.catalog.regions import (
    home_of,
    majority,
    needed_region,
    told_of_loss,
    usual_replication,
)
from angarium.machine.outcomes import Refused
from angarium.node.balance import located, planned
from angarium.node.steering import catalog_voters, led_by, preferred_leader, reassignment

if TYPE_CHECKING:
    from angarium.machine.catalog import CatalogCommand, CatalogOutcome


class Cluster:
    """A catalog with nodes in regions."""

    def __init__(self, *regions: str) -> None:
        self.machine = CatalogMachine()
        self.do(Form(cluster="c", level=6))
        for region in regions:
            self.join(region)

    def do(self, command: CatalogCommand) -> CatalogOutcome:
        index = Index(self.machine.applied_index + 1)
        return self.machine.apply(index, Term(1), encode(command)).outcomes[0]

    def join(self, region: str, host: str = "") -> None:
        number = self.machine.nodes.next_id
        self.do(
            NodeRegister(
                incarnation=Incarnation(number),
                addresses=(),
                labels=Labels(region, "", host),
                level_max=6,
            )
        )

    def create(self, partitions: int = 1, **chosen: object) -> CatalogOutcome:
        chosen.setdefault("replication", 3)
        settings = msgspec.structs.replace(TopicSettings(), **chosen)
        return self.do(TopicCreate(name="t", partitions=partitions, settings=settings))

    def alter(self, **chosen: object) -> CatalogOutcome:
        changed = msgspec.structs.replace(self.settings, **chosen)
        return self.do(TopicAlter(topic=TopicId(1), settings=changed))

    def settle(self) -> None:
        """Do what the catalog's leader does until everything is where it belongs."""
        nodes = self.machine.nodes
        for _ in range(200):
            commands: list[CatalogCommand] = [
                Reassigned(group=one.group, replicas=one.target)
                for one in self.partitions
                if one.target
            ]
            draining = {one.id for one in nodes.by_id.values() if one.draining}
            for one in self.partitions:
                wish = reassignment(self.machine.topics, one, nodes.placeable(), draining)
                if wish is not None:
                    commands.append(wish)
            if not commands:
                return
            for command in commands:
                self.do(command)
        raise AssertionError("it never comes to rest")

    @property
    def settings(self) -> TopicSettings:
        return self.machine.topics.by_id[TopicId(1)].settings

    @property
    def partitions(self) -> list[Partition]:
        return [one for _, one in sorted(self.machine.topics.partitions.items())]

    def regions_of(self, nodes: tuple[NodeId, ...]) -> list[str]:
        return [self.machine.nodes.by_id[one].labels.region for one in nodes]

    def check(self) -> None:
        """Check every rule on everything that is settled."""
        placeable = self.machine.nodes.placeable()
        settings = self.settings
        for one in self.partitions:
            voters = one.target or one.replicas
            assert len(voters) == len(set(voters)) == settings.replication
            by_id = self.machine.nodes.by_id
            assert len({host_of(by_id[voter]) for voter in voters}) == len(voters)
            assert not {*one.readers} & {*voters}
            at = self.regions_of(voters)
            home = home_of(settings, one.number)
            if home:
                assert at.count(home) >= majority(settings.replication), "a majority is at home"
                assert at[0] == home, "the leader is at home"
            regions = set(settings.readers)
            if "*" in regions:
                regions = {node.labels.region for node in placeable} - {""}
            for region in regions & {node.labels.region for node in placeable}:
                there = self.regions_of(one.readers).count(region)
                assert there == (0 if region in at else 1), "one copy to read from in each region"
            assert set(self.regions_of(one.readers)) <= regions


SIX = ("eu", "eu", "eu", "us", "us", "us")
NINE = (*SIX, "as", "as", "as")


def test_homed_partitions_take_turns_and_live_in_their_home_alone() -> None:
    cluster = Cluster(*SIX)
    cluster.create(4, placement="homed", homes=("eu", "us"), readers=("*",))
    cluster.check()
    for one in cluster.partitions:
        home = ("eu", "us")[one.number % 2]
        assert cluster.regions_of(one.replicas) == [home] * 3
        assert cluster.regions_of(one.readers) == [{"eu": "us", "us": "eu"}[home]]
    leaders = [one.replicas[0] for one in cluster.partitions]
    assert len(set(leaders)) == 4, "each node leads one"


def test_a_home_with_too_few_hosts_for_all_has_a_majority() -> None:
    cluster = Cluster("eu", "eu", "us", "us")
    cluster.create(2, placement="homed", homes=("eu", "us"))
    for one in cluster.partitions:
        home = ("eu", "us")[one.number % 2]
        assert sorted(cluster.regions_of(one.replicas)).count(home) == 2
        assert cluster.regions_of(one.replicas)[0] == home
    cluster.join("eu")
    cluster.settle()
    assert cluster.regions_of(cluster.partitions[0].replicas) == ["eu"] * 3, "all go home"
    assert sorted(cluster.regions_of(cluster.partitions[1].replicas)) == ["eu", "us", "us"]


def test_spread_partitions_are_led_in_the_best_region_that_has_nodes() -> None:
    cluster = Cluster(*NINE)
    cluster.create(6, homes=("us", "eu"))
    for one in cluster.partitions:
        assert sorted(cluster.regions_of(one.replicas)) == ["as", "eu", "us"]
        assert cluster.regions_of(one.replicas)[0] == "us"
    assert len({one.replicas[0] for one in cluster.partitions}) == 3, "in turn"
    cluster.alter(homes=("as",))
    cluster.settle()
    assert {cluster.regions_of(one.replicas)[0] for one in cluster.partitions} == {"as"}


@pytest.mark.parametrize(
    ("chosen", "code", "said"),
    [
        ({"placement": "homed"}, "INVALID_ARGUMENT", "needs `regions`"),
        ({"placement": "elsewhere"}, "INVALID_ARGUMENT", "spread or homed"),
        ({"placement": "homed", "homes": ("eu", "eu")}, "INVALID_ARGUMENT", "twice"),
        ({"placement": "homed", "homes": ("*",)}, "INVALID_ARGUMENT", "only `readers`"),
        ({"placement": "homed", "homes": ("eu", "us", "as")}, "INVALID_ARGUMENT", "partitions"),
        ({"placement": "homed", "homes": ("mars",)}, "PRECONDITION_FAILED", "eu, us"),
        ({"homes": ("mars",)}, "PRECONDITION_FAILED", "no node is in region 'mars'"),
        ({"readers": ("mars",)}, "PRECONDITION_FAILED", "no node is in region 'mars'"),
        (
            {"placement": "homed", "homes": ("us",), "replication": 5},
            "PRECONDITION_FAILED",
            "'us' has 2 hosts to offer, and as a home it needs 3",
        ),
    ],
)
def test_what_cannot_hold_is_refused(chosen: dict[str, object], code: str, said: str) -> None:
    cluster = Cluster("eu", "eu", "eu", "us", "us")
    outcome = cluster.create(2, **chosen)
    assert_refused(outcome, code)
    assert isinstance(outcome, Refused)
    assert said in outcome.message
    cluster.create(2)
    assert_refused(cluster.alter(**chosen), code)


def test_a_topic_can_be_given_another_placement() -> None:
    cluster = Cluster(*NINE)
    cluster.create(3)
    cluster.alter(placement="homed", homes=("us",), readers=("*",))
    assert all(one.target for one in cluster.partitions), "by moves"
    cluster.settle()
    cluster.check()
    cluster.alter(placement="spread", homes=(), readers=())
    cluster.settle()
    cluster.check()
    for one in cluster.partitions:
        assert sorted(cluster.regions_of(one.replicas)) == ["as", "eu", "us"]
        assert not one.readers


def test_a_move_by_hand_leaves_the_majority_at_home() -> None:
    cluster = Cluster(*SIX)
    cluster.create(1, placement="homed", homes=("eu",))
    group = RaftGroupId(1)
    abroad = tuple(map(NodeId, (1, 4, 5)))
    assert_refused(cluster.do(Reassign(group=group, replicas=abroad)), "PRECONDITION_FAILED")
    allowed = tuple(map(NodeId, (1, 2, 5)))
    assert not isinstance(cluster.do(Reassign(group=group, replicas=allowed)), Refused)


def test_a_home_is_not_drained_below_its_majority_and_readers_go_all_the_same() -> None:
    cluster = Cluster("eu", "eu", "us", "us")
    cluster.create(1, replication=2, placement="homed", homes=("eu",), readers=("us",))
    (reader,) = cluster.partitions[0].readers
    cluster.do(NodeDrain(node=NodeId(1)))
    cluster.do(NodeDrain(node=reader))
    cluster.settle()
    (partition,) = cluster.partitions
    assert set(partition.replicas) == {1, 2}, "it could go nowhere"
    assert cluster.regions_of(partition.readers) == ["us"]
    assert partition.readers != (reader,)
    assert_refused(cluster.do(NodeRemove(node=NodeId(1))), "PRECONDITION_FAILED")
    assert not isinstance(cluster.do(NodeRemove(node=reader)), Refused)


def test_a_node_with_a_reader_is_not_forgotten_before_it_is_drained() -> None:
    cluster = Cluster("eu", "us")
    cluster.create(1, replication=1, homes=("eu",), readers=("us",))
    assert cluster.partitions[0].readers == (2,)
    assert_refused(cluster.do(NodeRemove(node=NodeId(2))), "PRECONDITION_FAILED")


def test_a_new_region_gets_its_readers() -> None:
    cluster = Cluster(*SIX)
    cluster.create(4, placement="homed", homes=("eu", "us"), readers=("*",))
    cluster.join("as")
    cluster.settle()
    cluster.check()
    assert all(NodeId(7) in one.readers for one in cluster.partitions)


def test_a_voter_that_leaves_becomes_the_reader_of_its_region() -> None:
    cluster = Cluster(*SIX)
    cluster.create(1, placement="homed", homes=("eu",), readers=("*",))
    before = cluster.partitions[0].replicas
    cluster.alter(homes=("us",))
    (partition,) = cluster.partitions
    assert cluster.regions_of(partition.target) == ["us"] * 3
    assert set(partition.readers) < set(before), "it has the records already"


_region = st.sampled_from(["eu", "us", "as"])


@given(
    st.lists(_region, min_size=3, max_size=9),
    st.lists(
        st.one_of(
            st.tuples(st.just("join"), _region),
            st.tuples(st.just("drain"), st.integers(1, 12)),
            st.tuples(st.just("back"), st.integers(1, 12)),
            st.tuples(
                st.just("alter"),
                st.fixed_dictionaries(
                    {},
                    optional={
                        "replication": st.integers(1, 4),
                        "placement": st.sampled_from(["spread", "homed"]),
                        "homes": st.lists(_region, max_size=3, unique=True).map(tuple),
                        "readers": st.sampled_from([(), ("eu",), ("us", "as"), ("*",)]),
                    },
                ),
            ),
        ),
        max_size=12,
    ),
)
@settings(max_examples=200, deadline=None)
def test_whatever_changes_every_rule_holds_once_it_is_settled(
    regions: list[str], steps: list[tuple[str, object]]
) -> None:
    cluster = Cluster(*regions)
    cluster.create(3)
    for what, value in steps:
        if what == "join":
            cluster.join(str(value))
        elif what == "alter":
            assert isinstance(value, dict)
            cluster.alter(**value)
        else:
            assert isinstance(value, int)
            cluster.do(NodeDrain(node=NodeId(value), draining=what == "drain"))
        cluster.settle()
        if not any(node.draining for node in cluster.machine.nodes.by_id.values()):
            cluster.check()
    machine = CatalogMachine()
    machine.restore(cluster.machine.snapshot())
    assert machine.topics.partitions == cluster.machine.topics.partitions


def test_the_catalog_survives_the_loss_of_any_of_three_regions() -> None:
    for count in (3, 5):
        cluster = Cluster(*NINE)
        voters = catalog_voters(cluster.machine.nodes.by_id.values(), voters_max=count)
        assert needed_region([one.labels.region for one in voters]) is None


def test_how_many_replicas_there_are_by_default() -> None:
    hosts = Cluster("eu", "eu", "us").machine.nodes.placeable()
    counted = hosts_by_region(hosts)
    assert usual_replication(3, (), counted) == 3
    assert usual_replication(3, ("eu",), counted) == 3
    assert usual_replication(3, ("eu", "us"), counted) == 1


def test_what_does_not_survive_a_region_is_told() -> None:
    assert needed_region(["eu", "us", "as"]) is None
    assert needed_region(["eu", "us", "us"]) == "us"
    assert needed_region(["eu"]) == "eu"
    assert needed_region(["", "", ""]) is None, "nobody says where it is"
    assert told_of_loss({}, 3) == ""
    assert "3 without eu" in told_of_loss({"eu": 3}, 4)


def test_while_the_first_replica_is_away_another_one_at_home_leads() -> None:
    replicas = tuple(map(NodeId, (1, 2, 3)))
    ranks = {NodeId(1): 0, NodeId(2): 0, NodeId(3): 1}
    here = {NodeId(2), NodeId(3)}

    def chosen(leader: int) -> int:
        return preferred_leader(replicas, ranks, leader=NodeId(leader), is_here=here.__contains__)

    assert chosen(leader=3) == 2, "home, though not to the preferred one"
    assert chosen(leader=2) == 1, "it waits for that one, and hands over to no other"
    here.add(NodeId(1))
    assert chosen(leader=3) == 1


# --- leaders that follow --------------------------------------------------------------------


def following(*regions: str) -> Cluster:
    """Return a cluster whose topic is led in `eu` to begin with, and whose leaders follow."""
    cluster = Cluster(*regions)
    cluster.create(homes=("eu",), leaders_follow=True)
    return cluster


def lead_in(cluster: Cluster, region: str, *, time: int = 5) -> CatalogOutcome:
    """Say that a partition is to be led in a region, as its publishers do."""
    (partition,) = cluster.partitions
    at = dict(zip(cluster.regions_of(partition.replicas), partition.replicas, strict=True))
    wish = msgspec.structs.replace(led_by(partition, at[region]), time=Micros(time))
    return cluster.do(wish)


def led_in(cluster: Cluster) -> str:
    (partition,) = cluster.partitions
    return cluster.regions_of((partition.target or partition.replicas)[:1])[0]


def test_where_publishers_are_followed_to_is_kept() -> None:
    cluster = following("eu", "us", "as")
    assert led_in(cluster) == "eu"
    lead_in(cluster, "us", time=7)
    cluster.settle()
    (partition,) = cluster.partitions
    assert (led_in(cluster), partition.led_in, partition.led_since) == ("us", "us", 7)
    restored = CatalogMachine()
    restored.restore(cluster.machine.snapshot())
    assert restored.topics.partitions == cluster.machine.topics.partitions


def test_who_says_again_that_it_stays_is_heard() -> None:
    cluster = following("eu", "us", "as")
    lead_in(cluster, "eu", time=9)
    cluster.settle()
    (partition,) = cluster.partitions
    assert (partition.target, partition.led_since) == ((), 9)


def test_a_leader_of_the_catalog_whose_clock_is_behind_ends_no_pause() -> None:
    cluster = following("eu", "us", "as")
    lead_in(cluster, "us", time=9)
    cluster.settle()
    lead_in(cluster, "eu", time=4)
    cluster.settle()
    (partition,) = cluster.partitions
    assert (led_in(cluster), partition.led_since) == ("eu", 9)


def test_a_drain_leaves_the_leader_where_it_was_followed_to() -> None:
    cluster = following("eu", "us", "as", "us", "eu", "as")
    lead_in(cluster, "us")
    cluster.settle()
    (partition,) = cluster.partitions
    for leaving in partition.replicas:
        cluster.do(NodeDrain(node=leaving))
        cluster.settle()
        assert led_in(cluster) == "us"


def test_a_rebalance_leaves_the_leader_where_it_was_followed_to() -> None:
    cluster = following("eu", "us", "as")
    lead_in(cluster, "us")
    cluster.settle()
    nodes = cluster.machine.nodes.placeable()
    assert planned(nodes, located(cluster.machine, {})) == []


def test_leaders_that_do_not_follow_any_more_go_back() -> None:
    cluster = following("eu", "us", "as")
    lead_in(cluster, "us")
    cluster.settle()
    cluster.alter(leaders_follow=False)
    cluster.settle()
    assert led_in(cluster) == "eu"


def test_leaders_that_follow_again_do_not_go_where_they_went_long_ago() -> None:
    cluster = following("eu", "us", "as", "us", "eu", "as")
    lead_in(cluster, "us")
    cluster.settle()
    cluster.alter(leaders_follow=False)
    cluster.settle()
    cluster.alter(leaders_follow=True)
    (partition,) = cluster.partitions
    assert (partition.led_in, partition.led_since) == ("", 0)
    cluster.do(NodeDrain(node=partition.replicas[-1]))
    cluster.settle()
    assert led_in(cluster) == "eu", "nobody has published since"


def test_leaders_of_a_homed_topic_do_not_follow() -> None:
    cluster = Cluster("eu", "eu", "eu")
    assert_refused(
        cluster.create(placement="homed", homes=("eu",), leaders_follow=True),
        "INVALID_ARGUMENT",
    )
    cluster.create(placement="homed", homes=("eu",))
    assert_refused(cluster.alter(leaders_follow=True), "INVALID_ARGUMENT")


def test_nothing_is_noted_for_topics_whose_leaders_do_not_follow() -> None:
    cluster = Cluster("eu", "us", "as")
    cluster.create(homes=("eu",))
    lead_in(cluster, "us")
    (partition,) = cluster.partitions
    assert (partition.led_in, partition.led_since) == ("", 0)
