"""The shape of a cluster, put together from what its nodes say."""

from __future__ import annotations

from msgspec.structs import replace

from angarium.api import ClusterStatus, NodeInfo, PartitionInfo, TopicConfig, TopicInfo
from angarium.cli.probe import View
from angarium.cli.topology import lines, topology
from angarium.ids import Index, Micros, NodeId, Offset, TopicId

REGIONS = {1: "eu", 2: "us", 3: "us"}


def view(node: int, *, end: int) -> View:
    """Return what a node sees whose replica ends there; the way to another region takes 80 ms."""
    nodes = tuple(
        NodeInfo(
            id=NodeId(one),
            addresses={"wire": f"127.0.0.1:740{one}"},
            region=region,
            round_trip_ms=None if one == node else 80.0 if region != REGIONS[node] else 0.5,
        )
        for one, region in REGIONS.items()
    )
    status = ClusterStatus(
        cluster_id="c",
        node=NodeId(node),
        catalog_leader=NodeId(1),
        catalog_index=Index(1),
        nodes=nodes,
        topics=1,
        partitions=1,
        feature_level=6,
        version="x",
    )
    partition = PartitionInfo(
        number=0,
        replicas=(NodeId(1),),
        readers=(NodeId(2),),
        leader=NodeId(1),
        home="eu",
        end_offset=Offset(end),
    )
    topic = TopicInfo(
        id=TopicId(1),
        name="orders",
        config=TopicConfig(placement="homed", regions=("eu",)),
        partitions=(partition,),
        created_at=Micros(0),
    )
    return View(status, (topic,))


def test_who_is_where_leads_and_lags() -> None:
    document = topology([view(1, end=100), view(2, end=93)])
    assert [one["region"] for one in document["regions"]] == ["eu", "us"]
    (first,), (second, third) = (one["nodes"] for one in document["regions"])
    assert (first["leads"], first["lag"], first["state"]) == (1, 0, "alive")
    assert (second["reads"], second["lag"]) == (1, 7)
    assert (third["state"], third["lag"]) == ("silent", None)
    assert document["partitions"][0]["lag"] == {"1": 0, "2": 7}
    assert document["round_trips_ms"]["1"] == {"2": 80.0, "3": 80.0}


def test_it_is_drawn_with_the_ways_between_regions() -> None:
    drawn = "\n".join(lines(topology([view(1, end=100), view(2, end=93)])))
    assert "round trips between regions" in drawn
    assert "80.0" in drawn
    assert "orders/0" in drawn


def test_witnesses_are_counted_where_there_are_any() -> None:
    said = [view(1, end=100), view(2, end=100)]
    assert "witnesses" not in "\n".join(lines(topology(said))).lower()
    (topic,) = said[0].topics
    (one,) = topic.partitions
    witnessed = replace(topic, partitions=(replace(one, witness=NodeId(3)),))
    document = topology([View(said[0].status, (witnessed,)), said[1]])
    _, (second, third) = (one["nodes"] for one in document["regions"])
    assert (second["witnesses"], third["witnesses"], third["replicas"]) == (0, 1, 0)
    assert "witnesses" in "\n".join(lines(document)).lower()


def test_without_regions_there_is_nothing_between_them() -> None:
    said = view(1, end=1)
    bare = [NodeInfo(id=one.id, addresses=one.addresses) for one in said.status.nodes]
    status = ClusterStatus(
        cluster_id="c",
        node=NodeId(1),
        catalog_leader=None,
        catalog_index=Index(1),
        nodes=tuple(bare),
        topics=0,
        partitions=0,
        feature_level=6,
        version="x",
    )
    drawn = lines(topology([View(status, ())]))
    assert drawn[0] == "(no region)"
    assert not any("round trips" in line for line in drawn)


def test_a_node_that_answers_here_and_that_no_other_one_hears_is_cut_off() -> None:
    def unheard(seen: View) -> View:
        nodes = [replace(one, alive=one.id != 1) for one in seen.status.nodes]
        return seen._replace(status=replace(seen.status, nodes=tuple(nodes)))

    document = topology([view(1, end=1), unheard(view(2, end=1)), unheard(view(3, end=1))])
    states = {
        one["node"]: one["state"] for region in document["regions"] for one in region["nodes"]
    }
    assert states == {1: "cut off", 2: "alive", 3: "alive"}
