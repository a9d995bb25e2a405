"""Why a node that is being drained keeps what it has."""

from __future__ import annotations

from angarium.api import NodeInfo, PartitionInfo, TopicConfig, TopicInfo
from angarium.cli.draining import stuck
from angarium.ids import Micros, NodeId, TopicId

EU, US, TIE, MORE = (NodeId(one) for one in (1, 2, 3, 4))
REGIONS = {EU: "eu", US: "us", TIE: "tie"}

WITNESSED = TopicInfo(
    id=TopicId(1),
    name="orders",
    config=TopicConfig(replication=2, witness=("tie",)),
    partitions=(PartitionInfo(number=0, replicas=(EU, US), witness=TIE),),
    created_at=Micros(0),
)


def nodes(draining: NodeId, *, more: str = "") -> list[NodeInfo]:
    """Return three nodes, one of which is being drained, and perhaps one more in a region."""
    where = REGIONS | ({MORE: more} if more else {})
    return [
        NodeInfo(id=one, addresses={}, region=region, draining=one == draining)
        for one, region in where.items()
    ]


def test_a_witness_goes_to_another_host_of_its_region() -> None:
    assert stuck(TIE, nodes(TIE, more="tie"), [WITNESSED]) == ""
    said = stuck(TIE, nodes(TIE, more="us"), [WITNESSED])
    assert "orders/0 has its witness there, and no other host in tie is free" in said


def test_a_replica_does_not_go_where_the_witness_is() -> None:
    assert stuck(US, nodes(US, more="us"), [WITNESSED]) == ""
    said = stuck(US, nodes(US), [WITNESSED])
    assert said == "orders needs 2 hosts outside of tie and 1 are left"
    assert stuck(US, nodes(US, more="tie"), [WITNESSED]) != ""


def test_a_node_without_anything_is_not_stuck() -> None:
    assert stuck(MORE, nodes(MORE, more="us"), [WITNESSED]) == ""
