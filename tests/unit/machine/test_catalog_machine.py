"""Group 0: nodes, topics, placement, producer ids, and the feature level."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.leader import assert_refused

from angarium.errors import CorruptData
from angarium.ids import Epoch, Incarnation, Index, Micros, NodeId, RaftGroupId, Term, TopicId
from angarium.machine import NAMED_FROM, Done, PartitionLimits
from angarium.machine.catalog import (
    CatalogApplied,
    CatalogCommand,
    CatalogMachine,
    CatalogOutcome,
    Form,
    Formed,
    Labels,
    LevelRaise,
    LevelRaised,
    Moving,
    NodeDrain,
    NodeRegister,
    NodeRegistered,
    NodeRemove,
    ProducerBlock,
    ProducerClose,
    ProducerOpen,
    ProducerOpened,
    ProducerShare,
    ProducerShared,
    ProducersIssued,
    Reassign,
    Reassigned,
    TopicAlter,
    TopicCreate,
    TopicDelete,
    TopicMade,
    TopicSettings,
    encode,
    name_fault,
)


class Catalog:
    """A catalog that is fed one command after the other."""

    def __init__(self, *, nodes: int = 0, formed: bool = True) -> None:
        self.machine = CatalogMachine()
        self.index = 0
        self.applied = CatalogApplied(index=Index(0))
        if formed:
            self.do(Form(cluster="one"))
        for number in range(nodes):
            self.join(number)

    def do(self, command: CatalogCommand) -> CatalogOutcome:
        self.index += 1
        timed = msgspec.structs.replace(command, time=Micros(self.index))
        self.applied = self.machine.apply(Index(self.index), Term(1), encode(timed))
        return self.applied.outcomes[0]

    def join(self, number: int, *, region: str = "", zone: str = "", host: str = "") -> NodeId:
        outcome = self.do(
            NodeRegister(
                incarnation=Incarnation(1_000 + number),
                addresses=(("wire", f"10.0.0.{number}:7400"),),
                labels=Labels(region, zone, host),
            )
        )
        assert isinstance(outcome, NodeRegistered)
        return outcome.node

    def replicas(self) -> list[tuple[NodeId, ...]]:
        return [one.replicas for one in self.machine.topics.partitions.values()]


def _settings(replication: int = 1) -> TopicSettings:
    return TopicSettings(replication=replication)


# --- the cluster and its nodes -------------------------------------------------------------------


def test_a_cluster_is_formed_once() -> None:
    catalog = Catalog(formed=False)
    assert_refused(catalog.do(NodeDrain(node=NodeId(1))), "PRECONDITION_FAILED")
    assert catalog.do(Form(cluster="one")) == Formed("one")
    assert catalog.do(Form(cluster="one")) == Done(changed=False)
    assert_refused(catalog.do(Form(cluster="two")), "ALREADY_EXISTS")
    assert catalog.machine.cluster == "one"


def test_node_ids_go_upward_and_are_never_reused() -> None:
    catalog = Catalog(nodes=2)
    assert catalog.do(NodeRemove(node=NodeId(2))) == Done()
    assert catalog.do(NodeRemove(node=NodeId(2))) == Done(changed=False)
    assert catalog.join(7) == 3


def test_a_node_that_asks_again_gets_the_same_id() -> None:
    catalog = Catalog(nodes=2)
    assert catalog.join(1) == 2
    assert len(catalog.machine.nodes.by_id) == 2


def test_a_wiped_node_keeps_its_id_and_is_somebody_else() -> None:
    catalog = Catalog(nodes=2)
    back = NodeRegister(node=NodeId(1), incarnation=Incarnation(77), addresses=())
    assert catalog.do(back) == NodeRegistered(NodeId(1))
    assert catalog.machine.nodes.by_id[NodeId(1)].incarnation == 77
    assert catalog.applied.nodes == (1,)
    stranger = NodeRegister(node=NodeId(9), incarnation=Incarnation(78), addresses=())
    assert_refused(catalog.do(stranger), "NOT_FOUND")


def test_a_node_that_holds_replicas_cannot_be_removed() -> None:
    catalog = Catalog(nodes=2)
    catalog.do(TopicCreate(name="t", settings=_settings(2)))
    assert_refused(catalog.do(NodeRemove(node=NodeId(1))), "PRECONDITION_FAILED")


def test_the_level_is_raised_when_every_node_can() -> None:
    catalog = Catalog()
    for number, level in ((1, 3), (2, 2)):
        catalog.do(NodeRegister(incarnation=Incarnation(number), addresses=(), level_max=level))
    assert_refused(catalog.do(LevelRaise(level=3)), "PRECONDITION_FAILED", "node 2")
    assert catalog.machine.nodes.level == 1
    assert catalog.do(LevelRaise(level=2)) == LevelRaised(2)
    assert_refused(catalog.do(LevelRaise(level=1)), "PRECONDITION_FAILED", "does not go down")
    again = NodeRegister(node=NodeId(2), incarnation=Incarnation(2), addresses=(), level_max=3)
    catalog.do(again)
    assert catalog.do(LevelRaise(level=3)) == LevelRaised(3)


def test_a_node_of_a_release_too_old_or_too_new_is_told_what_to_do() -> None:
    catalog = Catalog()
    catalog.do(NodeRegister(incarnation=Incarnation(1), addresses=(), level_max=2))
    catalog.do(LevelRaise(level=2))
    old = NodeRegister(incarnation=Incarnation(3), addresses=(), level_max=1)
    assert_refused(catalog.do(old), "PRECONDITION_FAILED", "start the node with a newer release")
    new = NodeRegister(incarnation=Incarnation(4), addresses=(), level_min=3, level_max=4)
    assert_refused(catalog.do(new), "PRECONDITION_FAILED", "upgrade the other nodes")
    downgraded = NodeRegister(node=NodeId(1), incarnation=Incarnation(1), addresses=())
    assert_refused(catalog.do(downgraded), "PRECONDITION_FAILED", "newer release")
    assert [one.level_max for one in catalog.machine.nodes.by_id.values()] == [2]


def test_a_cluster_begins_at_the_level_it_is_formed_with() -> None:
    machine = CatalogMachine()
    machine.apply(Index(1), Term(1), encode(Form(cluster="c", level=0)))
    assert not machine.cluster
    machine.apply(Index(2), Term(1), encode(Form(cluster="c", level=3)))
    assert (machine.cluster, machine.nodes.level) == ("c", 3)
    machine.apply(Index(3), Term(1), encode(Form(cluster="c", level=4)))
    assert machine.nodes.level == 3


# --- topics ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a..b", ".a", "a.", "a/b", "a b", "a\n", "ä", "a*", "x" * 201, "angarium.dlq"],
)
def test_names_that_would_be_bad_paths_or_labels_are_refused(name: str) -> None:
    assert name_fault(name)
    assert_refused(Catalog(nodes=1).do(TopicCreate(name=name)), "INVALID_ARGUMENT")


@pytest.mark.parametrize("name", ["a", "orders", "shop.orders-2024_eu", "A.b.C", "x" * 200])
def test_plain_names_are_fine(name: str) -> None:
    assert name_fault(name) is None


def test_the_cluster_may_make_topics_of_its_own() -> None:
    catalog = Catalog(nodes=1)
    own = TopicCreate(name="angarium.dlq", settings=_settings(), internal=True)
    assert isinstance(catalog.do(own), TopicMade)


def test_topic_and_group_ids_are_never_reused() -> None:
    catalog = Catalog(nodes=1)
    made = catalog.do(TopicCreate(name="t", partitions=2, settings=_settings()))
    assert made == TopicMade(TopicId(1), (RaftGroupId(1), RaftGroupId(2)))
    assert catalog.do(TopicDelete(topic=TopicId(1))) == Done()
    assert catalog.applied.groups == (1, 2)
    again = catalog.do(TopicCreate(name="t", settings=_settings()))
    assert again == TopicMade(TopicId(2), (RaftGroupId(3),))
    assert_refused(catalog.do(TopicDelete(topic=TopicId(1))), "NOT_FOUND")


def test_making_the_same_topic_twice_gives_the_one_that_is_there() -> None:
    catalog = Catalog(nodes=1)
    create = TopicCreate(name="t", settings=_settings())
    catalog.do(create)
    assert catalog.do(create) == TopicMade(TopicId(1), (RaftGroupId(1),), repeated=True)
    assert catalog.applied.groups == ()
    other = TopicCreate(name="t", partitions=2, settings=_settings())
    assert_refused(catalog.do(other), "ALREADY_EXISTS")


def test_partitions_can_be_added_and_never_taken_away() -> None:
    catalog = Catalog(nodes=1)
    catalog.do(TopicCreate(name="t", partitions=2, settings=_settings()))
    grown = catalog.do(TopicAlter(topic=TopicId(1), partitions=3))
    assert grown == TopicMade(TopicId(1), (RaftGroupId(1), RaftGroupId(2), RaftGroupId(3)))
    assert_refused(catalog.do(TopicAlter(topic=TopicId(1), partitions=1)), "INVALID_ARGUMENT")
    changed = TopicSettings(replication=1, retention_micros=5, limits=PartitionLimits(groups_max=3))
    catalog.do(TopicAlter(topic=TopicId(1), settings=changed))
    assert catalog.machine.topics.by_id[TopicId(1)].settings == changed


def test_impossible_settings_are_refused() -> None:
    catalog = Catalog(nodes=3)
    for bad in (
        TopicSettings(replication=0),
        TopicSettings(replication=8),
        TopicSettings(replication=1, retention_bytes=0),
        TopicSettings(replication=1, batch_bytes_max=0),
    ):
        assert_refused(catalog.do(TopicCreate(name="t", settings=bad)), "INVALID_ARGUMENT")
    many = TopicCreate(name="t", partitions=1_025, settings=_settings())
    assert_refused(catalog.do(many), "TOO_LARGE")


# --- places ------------------------------------------------------------------------------------


def test_too_few_hosts_are_an_error_and_leave_no_trace() -> None:
    catalog = Catalog()
    catalog.join(1, host="h")
    catalog.join(2, host="h")
    assert_refused(catalog.do(TopicCreate(name="t", settings=_settings(2))), "PRECONDITION_FAILED")
    assert catalog.machine.topics.next_group == 1


def test_no_two_replicas_share_a_host() -> None:
    catalog = Catalog()
    for number in range(9):
        catalog.join(number, host=f"h{number % 3}")
    catalog.do(TopicCreate(name="t", partitions=30, settings=_settings(3)))
    nodes = catalog.machine.nodes.by_id
    for replicas in catalog.replicas():
        assert len({nodes[one].labels.host for one in replicas}) == 3


def test_replicas_spread_over_zones_before_anything_else() -> None:
    catalog = Catalog()
    for number, zone in enumerate(["a", "a", "a", "a", "b", "c"]):
        catalog.join(number, zone=zone)
    catalog.do(TopicCreate(name="t", partitions=12, settings=_settings(3)))
    nodes = catalog.machine.nodes.by_id
    for replicas in catalog.replicas():
        assert {nodes[one].labels.zone for one in replicas} == {"a", "b", "c"}


@pytest.mark.parametrize(("nodes", "replication"), [(3, 3), (5, 3), (7, 2)])
def test_replicas_and_leaders_are_balanced(nodes: int, replication: int) -> None:
    catalog = Catalog(nodes=nodes)
    partitions = nodes * 10
    catalog.do(TopicCreate(name="t", partitions=partitions, settings=_settings(replication)))
    held = Counter(one for replicas in catalog.replicas() for one in replicas)
    led = Counter(replicas[0] for replicas in catalog.replicas())
    assert max(held.values()) - min(held.values()) <= 1
    assert max(led.values()) - min(led.values()) <= 2
    assert sum(led.values()) == partitions


def test_leaders_prefer_the_home_of_their_partition() -> None:
    catalog = Catalog()
    for number in range(6):
        catalog.join(number, region=["east", "west"][number % 2])
    homed = TopicSettings(replication=3, homes=("east", "west"), placement="homed")
    catalog.do(TopicCreate(name="geo", partitions=6, settings=homed))
    nodes = catalog.machine.nodes.by_id
    regions = [nodes[replicas[0]].labels.region for replicas in catalog.replicas()]
    assert regions == ["east", "west"] * 3


def test_draining_moves_only_what_has_to_move() -> None:
    catalog = Catalog(nodes=4)
    catalog.do(TopicCreate(name="t", partitions=8, settings=_settings(3)))
    catalog.do(NodeDrain(node=NodeId(2)))
    for group, partition in list(catalog.machine.topics.partitions.items()):
        outcome = catalog.do(Reassign(group=group))
        if NodeId(2) in partition.replicas:
            assert isinstance(outcome, Moving)
            assert NodeId(2) not in outcome.target
            assert len(set(outcome.target) & set(partition.replicas)) == 2
            assert_refused(
                catalog.do(Reassigned(group=group, replicas=partition.replicas)),
                "PRECONDITION_FAILED",
            )
            arrived = tuple(reversed(outcome.target))
            assert catalog.do(Reassigned(group=group, replicas=arrived)) == Done()
            assert catalog.machine.topics.partitions[group].replicas == outcome.target
        else:
            assert outcome == Done(changed=False)
    assert catalog.do(NodeRemove(node=NodeId(2))) == Done()


def test_a_partition_can_be_sent_to_named_nodes() -> None:
    catalog = Catalog(nodes=4)
    catalog.do(TopicCreate(name="t", settings=_settings(2)))
    group = RaftGroupId(1)
    there = tuple(one for one in map(NodeId, range(1, 5)) if one not in catalog.replicas()[0])
    assert catalog.do(Reassign(group=group, replicas=there)) == Moving(group, there)
    for bad in ((NodeId(1),), (NodeId(1), NodeId(1)), (NodeId(1), NodeId(9))):
        assert_refused(catalog.do(Reassign(group=group, replicas=bad)), "PRECONDITION_FAILED")
    # Both where it is and where it goes are in use until it has arrived.
    assert_refused(catalog.do(NodeRemove(node=there[0])), "PRECONDITION_FAILED")
    back = catalog.machine.topics.partitions[group].replicas
    assert catalog.do(Reassign(group=group, replicas=back)) == Moving(group, back)
    assert catalog.machine.topics.partitions[group].target == ()


def test_another_replication_moves_every_partition() -> None:
    catalog = Catalog(nodes=3)
    catalog.do(TopicCreate(name="t", partitions=3, settings=_settings(1)))
    catalog.do(TopicAlter(topic=TopicId(1), settings=_settings(3)))
    for partition in catalog.machine.topics.partitions.values():
        assert len(partition.target) == 3
        assert partition.replicas[0] in partition.target


# --- producers -----------------------------------------------------------------------------------


def test_producer_ids_are_issued_once() -> None:
    catalog = Catalog()
    blocks = [catalog.do(ProducerBlock(count=count)) for count in (10, 1, 500)]
    issued = [one for one in blocks if isinstance(one, ProducersIssued)]
    assert issued[0].first == 1
    assert all(one.past == other.first for one, other in pairwise(issued))
    for count in (0, -1, 1 << 40):
        assert_refused(catalog.do(ProducerBlock(count=count)), "TOO_LARGE")


def test_a_named_producer_keeps_its_id_and_gets_a_new_epoch() -> None:
    catalog = Catalog()
    assert catalog.do(ProducerOpen(name="p")) == ProducerOpened(NAMED_FROM, Epoch(0))
    assert catalog.do(ProducerOpen(name="p")) == ProducerOpened(NAMED_FROM, Epoch(1))
    assert catalog.do(ProducerClose(name="p")) == Done()
    reopened = catalog.do(ProducerOpen(name="p"))
    assert isinstance(reopened, ProducerOpened)
    assert reopened.producer == NAMED_FROM + 1


def test_a_shared_producer_is_made_once_and_keeps_its_epoch() -> None:
    catalog = Catalog()
    assert catalog.do(ProducerShare(name="p", base=3)) == ProducerShared(NAMED_FROM, Epoch(0), 3)
    assert catalog.do(ProducerShare(name="p", base=4)) == ProducerShared(NAMED_FROM, Epoch(0), 3)
    assert catalog.do(ProducerOpen(name="p")) == ProducerOpened(NAMED_FROM, Epoch(1))
    assert catalog.do(ProducerShare(name="p")) == ProducerShared(NAMED_FROM, Epoch(1), 0)


def test_of_two_that_replace_one_epoch_of_a_shared_producer_both_get_the_same_new_one() -> None:
    catalog = Catalog()
    catalog.do(ProducerShare(name="p"))
    unfit = ProducerShare(name="p", base=7, replaces=Epoch(0))
    assert catalog.do(unfit) == ProducerShared(NAMED_FROM, Epoch(1), 7)
    late = ProducerShare(name="p", base=9, replaces=Epoch(0))
    assert catalog.do(late) == ProducerShared(NAMED_FROM, Epoch(1), 7)


# --- the machine's own promises --------------------------------------------------------------


def test_malformed_entries_change_nothing() -> None:
    catalog = Catalog(nodes=1)
    before = catalog.machine.running_hash
    for data in (b"\x40", b"\x40\x02\x90", b"\x01\x01", b"\x44\x01\xff"):
        catalog.index += 1
        applied = catalog.machine.apply(Index(catalog.index), Term(1), data)
        assert_refused(applied.outcomes[0], "INVALID_COMMAND")
    assert catalog.machine.running_hash != before


def test_the_clock_never_goes_back() -> None:
    catalog = Catalog(nodes=1)
    before = catalog.machine.clock
    early = encode(ProducerBlock(time=Micros(0), count=1))
    applied = catalog.machine.apply(Index(99), Term(1), early)
    assert isinstance(applied.outcomes[0], ProducersIssued)
    assert catalog.machine.clock == before


_node = st.integers(1, 5).map(NodeId)
_group = st.integers(1, 9).map(RaftGroupId)
_topic = st.integers(1, 4).map(TopicId)
_some_settings = st.builds(
    TopicSettings,
    replication=st.integers(0, 3),
    homes=st.sampled_from([(), ("r0",), ("r1", "r0")]),
    placement=st.sampled_from(["spread", "homed"]),
    readers=st.sampled_from([(), ("r0",), ("*",)]),
)
_commands: st.SearchStrategy[CatalogCommand] = st.one_of(
    st.builds(Form, cluster=st.sampled_from(["a", "b"])),
    st.builds(
        NodeRegister,
        node=st.one_of(st.none(), _node),
        incarnation=st.integers(1, 6).map(Incarnation),
        addresses=st.just((("wire", "a"),)),
        labels=st.builds(
            Labels,
            region=st.sampled_from(["r0", "r1"]),
            zone=st.sampled_from(["z0", "z1"]),
            host=st.sampled_from(["", "h0", "h1"]),
        ),
        level_max=st.integers(1, 3),
    ),
    st.builds(NodeDrain, node=_node, draining=st.booleans()),
    st.builds(NodeRemove, node=_node),
    st.builds(
        TopicCreate,
        name=st.sampled_from(["t", "u", "v.w", "bad/name"]),
        partitions=st.integers(0, 3),
        settings=_some_settings,
    ),
    st.builds(
        TopicAlter,
        topic=_topic,
        partitions=st.one_of(st.none(), st.integers(1, 4)),
        settings=st.one_of(st.none(), _some_settings),
    ),
    st.builds(TopicDelete, topic=_topic),
    st.builds(
        Reassign,
        group=_group,
        replicas=st.lists(_node, max_size=3).map(tuple),
        leaving=st.lists(_node, max_size=1).map(tuple),
    ),
    st.builds(Reassigned, group=_group, replicas=st.lists(_node, max_size=3).map(tuple)),
    st.builds(ProducerBlock, count=st.integers(0, 50)),
    st.builds(ProducerOpen, name=st.sampled_from(["p", "q"])),
    st.builds(
        ProducerShare,
        name=st.sampled_from(["p", "q"]),
        base=st.integers(0, 3),
        replaces=st.none() | st.integers(0, 2),
    ),
    st.builds(ProducerClose, name=st.sampled_from(["p", "q"])),
    st.builds(LevelRaise, level=st.integers(0, 3)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_commands, st.booleans()), max_size=40))
def test_a_catalog_restored_at_any_point_continues_alike(
    work: list[tuple[CatalogCommand, bool]],
) -> None:
    straight, restored = Catalog(nodes=3), Catalog(nodes=3)
    for command, restart in work:
        if restart:
            fresh = CatalogMachine()
            fresh.restore(restored.machine.snapshot())
            restored.machine = fresh
        assert straight.do(command) == restored.do(command)
        assert straight.applied == restored.applied
        assert straight.machine.running_hash == restored.machine.running_hash
        _check(straight.machine)
    assert straight.machine.snapshot() == restored.machine.snapshot()


def _check(machine: CatalogMachine) -> None:
    topics, nodes = machine.topics, machine.nodes.by_id
    held: Counter[NodeId] = Counter()
    for partition in topics.partitions.values():
        used = {*partition.replicas, *partition.target, *partition.readers}
        held.update(used)
        assert used <= set(nodes), "a node in use is not removed"
        assert len(set(partition.replicas)) == len(partition.replicas)
        assert partition.group < topics.next_group
        assert partition.group in topics.by_id[partition.topic].groups
    assert held == Counter({node: n for node, n in topics.loads.replicas.items() if n})
    assert sum(topics.loads.leaders.values()) == len(topics.partitions)
    assert sorted(topics.by_name.values()) == sorted(topics.by_id)


def test_every_cut_of_a_catalog_snapshot_is_noticed() -> None:
    catalog = Catalog(nodes=2)
    catalog.do(TopicCreate(name="t", settings=_settings(2)))
    data = catalog.machine.snapshot()
    for length in range(len(data)):
        with pytest.raises(CorruptData):
            CatalogMachine().restore(data[:length])
