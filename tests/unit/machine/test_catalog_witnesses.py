"""Who breaks ties: in a third place, on a host of its own, and never with records."""

from __future__ import annotations

import pytest
from tests.unit.machine.leader import assert_refused
from tests.unit.machine.test_catalog_regions import Cluster

from angarium.ids import NodeId, is_witness, node_of
from angarium.machine.catalog import NodeDrain, NodeRemove, Reassign
from angarium.node.balance import located, planned

FIVE = ("eu", "eu", "us", "us", "tie")
TIE = NodeId(5)


def _checked(cluster: Cluster) -> None:
    """Check every rule on everything that is settled."""
    settings = cluster.settings
    for one in cluster.partitions:
        regions = cluster.regions_of(one.target or one.replicas)
        assert len(regions) == settings.replication
        assert not {*regions} & {*settings.witness}
        assert one.witness not in (*one.replicas, *one.target, *one.readers)
        if settings.witness:
            (region,) = cluster.regions_of((one.witness,))
            assert region in settings.witness
        else:
            assert not one.witness


def test_a_witness_is_in_its_region_and_nothing_else_is() -> None:
    cluster = Cluster(*FIVE)
    cluster.create(8, replication=4, witness=("tie",), readers=("*",))
    _checked(cluster)
    for one in cluster.partitions:
        assert one.witness == TIE
        assert sorted(cluster.regions_of(one.replicas)) == ["eu", "eu", "us", "us"]
        assert one.readers == (), "the only node there votes, and has nothing to read"
        assert [node_of(it) for it in one.founders if is_witness(it)] == [TIE]
        assert len(one.founders) == 5


def test_two_regions_and_a_witness_survive_the_loss_of_either() -> None:
    cluster = Cluster("eu", "us", "tie")
    cluster.create(replication=2, witness=("tie",))
    (one,) = cluster.partitions
    assert len({*cluster.regions_of((*one.replicas, one.witness))}) == 3


def test_the_first_region_with_a_free_host_has_the_witness() -> None:
    cluster = Cluster(*FIVE, "more")
    cluster.create(replication=2, witness=("more", "tie"))
    assert cluster.partitions[0].witness == NodeId(6)
    cluster.do(NodeDrain(node=NodeId(6)))
    cluster.settle()
    assert cluster.partitions[0].witness == TIE
    _checked(cluster)


def test_a_witness_leaves_a_drained_node_if_another_is_there() -> None:
    cluster = Cluster(*FIVE)
    cluster.create(4, replication=2, witness=("tie",))
    cluster.do(NodeDrain(node=TIE))
    cluster.settle()
    assert {one.witness for one in cluster.partitions} == {TIE}
    assert_refused(cluster.do(NodeRemove(node=TIE)), "PRECONDITION_FAILED")
    cluster.join("tie")
    cluster.settle()
    assert {one.witness for one in cluster.partitions} == {NodeId(6)}
    assert {one.founders for one in cluster.partitions} == {()}, "nobody begins it anew"
    assert not any(one.target for one in cluster.partitions)
    cluster.do(NodeRemove(node=TIE))
    assert TIE not in cluster.machine.nodes.by_id


def test_a_topic_is_given_a_witness_and_loses_it() -> None:
    cluster = Cluster(*FIVE)
    cluster.create(4, replication=3)
    cluster.alter(replication=2, witness=("tie",))
    cluster.settle()
    _checked(cluster)
    assert {one.witness for one in cluster.partitions} == {TIE}
    assert {len(one.replicas) for one in cluster.partitions} == {2}
    cluster.alter(replication=3, witness=())
    cluster.settle()
    _checked(cluster)


def test_drains_and_rebalances_keep_records_out_of_its_region() -> None:
    cluster = Cluster("eu", "eu", "us", "us", "tie", "tie", "tie")
    cluster.create(12, replication=2, witness=("tie",))
    moves = planned(cluster.machine.nodes.placeable(), located(cluster.machine, {}))
    for move in moves:
        assert "tie" not in cluster.regions_of(move.target)
    cluster.do(NodeDrain(node=NodeId(1)))
    cluster.settle()
    _checked(cluster)
    group = cluster.partitions[0].group
    wish = Reassign(group=group, replicas=(NodeId(2), NodeId(5)))
    assert_refused(cluster.do(wish), "PRECONDITION_FAILED")


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ({"replication": 3, "witness": ("tie",)}, "INVALID_ARGUMENT"),
        ({"replication": 2, "witness": ("*",)}, "INVALID_ARGUMENT"),
        ({"replication": 2, "witness": ("eu",), "homes": ("eu",)}, "INVALID_ARGUMENT"),
        ({"replication": 2, "witness": ("moon",)}, "PRECONDITION_FAILED"),
        ({"replication": 6, "witness": ("tie",)}, "PRECONDITION_FAILED"),
    ],
)
def test_what_makes_no_sense_is_refused(chosen: dict[str, object], code: str) -> None:
    assert_refused(Cluster(*FIVE).create(1, **chosen), code)
