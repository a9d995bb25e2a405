"""Which moves make nodes even, and that none of them breaks a rule on the way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.ids import Incarnation, NodeId, RaftGroupId, TopicId
from angarium.machine.catalog import Labels
from angarium.machine.catalog.placement import Loads, chosen_replicas, host_of
from angarium.machine.catalog.regions import Wish
from angarium.machine.catalog.values import Node, Partition
from angarium.node.balance import LocatedPartition, Move, next_moves, planned
from angarium.node.balance.layout import Layout
from angarium.node.balance.plan import COPIES_MAX, COPIES_TO_ONE_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB = 1 << 20


def node(number: int, labels: Labels | None = None) -> Node:
    return Node(NodeId(number), Incarnation(number), (), labels or Labels(), 1, 5)


def nodes_of(count: int) -> list[Node]:
    return [node(number) for number in range(1, count + 1)]


def located(
    group: int,
    *replicas: int,
    size: int = 0,
    regions: tuple[str, ...] = (),
    is_homed: bool = False,
    readers: tuple[int, ...] = (),
) -> LocatedPartition:
    return LocatedPartition(
        RaftGroupId(group),
        tuple(map(NodeId, replicas)),
        size,
        regions,
        is_homed,
        tuple(map(NodeId, readers)),
    )


def placed_on(
    nodes: Sequence[Node], partitions: int, replication: int = 3, *, size: int = 0
) -> list[LocatedPartition]:
    """Return partitions as the catalog puts them on these nodes."""
    loads, found = Loads(), []
    for number in range(1, partitions + 1):
        group = RaftGroupId(number)
        replicas = chosen_replicas(nodes, Wish(replication), group=group, loads=loads)
        assert replicas is not None
        loads.add(Partition(group, TopicId(1), number, replicas, ()), 1)
        found.append(LocatedPartition(group, replicas, size))
    return found


def carried_out(
    partitions: Sequence[LocatedPartition], moves: Sequence[Move]
) -> list[LocatedPartition]:
    now = {one.group: one for one in partitions}
    for move in moves:
        assert now[move.group].replicas == move.replicas, "a step begins where the last one ended"
        now[move.group] = now[move.group]._replace(replicas=move.target)
    return list(now.values())


def replicas_by_node(nodes: Sequence[Node], partitions: Sequence[LocatedPartition]) -> list[int]:
    held = ((*partition.replicas, *partition.readers) for partition in partitions)
    counts = Counter(one for some in held for one in some)
    return [counts[one.id] for one in nodes]


def leaders_by_node(nodes: Sequence[Node], partitions: Sequence[LocatedPartition]) -> list[int]:
    counts = Counter(partition.replicas[0] for partition in partitions)
    return [counts[one.id] for one in nodes]


def stored_by_node(nodes: Sequence[Node], partitions: Sequence[LocatedPartition]) -> list[int]:
    counts: Counter[NodeId] = Counter()
    for partition in partitions:
        for one in partition.replicas:
            counts[one] += partition.stored_bytes
    return [counts[one.id] for one in nodes]


def apart(counts: Sequence[int]) -> int:
    return max(counts) - min(counts)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[LocatedPartition]]:
    """Draw nodes with or without labels, and partitions anywhere on different hosts."""
    count = draw(st.integers(1, 9))
    zones = draw(st.sampled_from([[""], ["a", "b"], ["a", "b", "c"]]))
    regions = draw(st.sampled_from([[""], ["eu"], ["eu", "us"]]))
    shares_hosts = draw(st.booleans())
    nodes = [
        node(
            number,
            Labels(
                draw(st.sampled_from(regions)),
                draw(st.sampled_from(zones)),
                f"h{draw(st.integers(0, 3))}" if shares_hosts else "",
            ),
        )
        for number in range(1, count + 1)
    ]
    hosts: dict[str, list[Node]] = {}
    for one in nodes:
        hosts.setdefault(host_of(one), []).append(one)
    partitions = []
    for number in range(1, draw(st.integers(0, 24)) + 1):
        names = draw(st.permutations(sorted(hosts)))[: draw(st.integers(1, min(3, len(hosts))))]
        replicas = [draw(st.sampled_from(hosts[name])).id for name in names]
        size = draw(st.sampled_from([0, 1, 300, 2_000])) * MIB
        led_in = tuple(draw(st.permutations(regions)))[: draw(st.integers(0, 2))]
        others = [one.id for one in nodes if one.id not in replicas]
        partition = LocatedPartition(
            RaftGroupId(number),
            tuple(replicas),
            size,
            led_in,
            is_homed=bool(led_in) and draw(st.booleans()),
            readers=tuple(others[: draw(st.integers(0, 1))]),
            is_fixed=draw(st.integers(0, 9)) == 0,
        )
        partitions.append(partition)
    return nodes, partitions


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_every_step_keeps_a_majority_the_hosts_and_the_spread(
    cluster: tuple[list[Node], list[LocatedPartition]],
) -> None:
    nodes, partitions = cluster
    by_id = {one.id: one for one in nodes}
    layout = Layout(nodes, partitions)
    for move in planned(nodes, partitions):
        assert len(move.target) == len(set(move.target)) == len(move.replicas)
        assert len(set(move.replicas) - set(move.target)) <= 1, "one replica at a time"
        hosts = {host_of(by_id[one]) for one in move.target}
        assert len(hosts) == len(move.target), "no two replicas share a host"
        partition = layout.partitions[move.group]
        assert not partition.is_fixed
        assert not {*move.target} & {*partition.readers} - {*move.replicas}, "it has a copy"
        before = [by_id[one].labels.region for one in move.replicas]
        after = [by_id[one].labels.region for one in move.target]
        if partition.is_homed:
            home = partition.regions[0]
            assert after.count(home) >= before.count(home), "nothing leaves its home"
        else:
            assert layout.crowding(move.target) <= layout.crowding(move.replicas)
            best = next((one for one in partition.regions if one in before), None)
            if best is not None:
                ranks = [partition.regions.index(one) for one in after if one in partition.regions]
                assert min(ranks) <= partition.regions.index(best)


@given(clusters())
@settings(max_examples=150, deadline=None)
def test_a_plan_makes_nothing_less_even_and_nothing_is_left_after_it(
    cluster: tuple[list[Node], list[LocatedPartition]],
) -> None:
    nodes, partitions = cluster
    plan = planned(nodes, partitions)
    assert plan == planned(nodes, partitions), "the same input gives the same moves"
    after = carried_out(partitions, plan)
    layout, then = Layout(nodes, partitions), Layout(nodes, after)
    crowded = sorted(layout.crowding(layout.replicas[one.group]) for one in partitions)
    if crowded == sorted(then.crowding(then.replicas[one.group]) for one in partitions):
        before = sum(count**2 for count in replicas_by_node(nodes, partitions))
        assert sum(count**2 for count in replicas_by_node(nodes, after)) <= before
    # Made anew it may see what the first one left for later; but it comes to an end.
    for _ in range(10):
        if not plan:
            break
        plan = planned(nodes, after)
        after = carried_out(after, plan)
    assert planned(nodes, after) == []


@given(
    st.integers(1, 8),
    st.integers(0, 40),
    st.integers(1, 3),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_without_labels_replicas_and_leaders_are_even_within_one(
    count: int, partitions: int, replication: int, data: st.DataObject
) -> None:
    nodes = nodes_of(count)
    ids = [one.id for one in nodes]
    width = min(replication, count)
    drawn = [
        LocatedPartition(
            RaftGroupId(number), tuple(data.draw(st.permutations(ids))[:width]), stored_bytes=0
        )
        for number in range(1, partitions + 1)
    ]
    after = carried_out(drawn, planned(nodes, drawn))
    assert apart(replicas_by_node(nodes, after)) <= 1
    led = leaders_by_node(nodes, after)
    # Where replicas allow it: a node can lead only what it has.
    assert apart(led) <= 1 or min(led) == min(replicas_by_node(nodes, after))


@given(st.integers(4, 8), st.integers(1, 30))
@settings(max_examples=50, deadline=None)
def test_a_plan_made_anew_after_each_move_needs_no_more_moves(count: int, partitions: int) -> None:
    nodes = nodes_of(count)
    now = placed_on(nodes[:3], partitions)
    first = [one for one in planned(nodes, now) if one.arriving is not None]
    copies = 0
    for _ in range(10 * len(now) + 10):
        plan = planned(nodes, now)
        if not plan:
            break
        copies += plan[0].arriving is not None
        now = carried_out(now, plan[:1])
    assert planned(nodes, now) == []
    assert copies <= len(first)


def test_a_balanced_cluster_is_left_alone() -> None:
    nodes = nodes_of(5)
    partitions = carried_out(placed_on(nodes, 20), planned(nodes, placed_on(nodes, 20)))
    assert planned(nodes, partitions) == []
    assert planned([], []) == []


def test_a_newcomer_gets_its_share_and_not_one_replica_more_is_moved() -> None:
    nodes = nodes_of(4)
    before = placed_on(nodes[:3], 12)
    plan = planned(nodes, before)
    # 36 replicas on four nodes are nine each: nine move, all of them to the newcomer.
    assert [one.arriving for one in plan if one.arriving is not None] == [NodeId(4)] * 9
    after = carried_out(before, plan)
    assert replicas_by_node(nodes, after) == [9, 9, 9, 9]
    assert leaders_by_node(nodes, after) == [3, 3, 3, 3]


def test_what_is_on_its_way_counts_as_arrived_and_is_left_alone() -> None:
    nodes = nodes_of(4)
    before = placed_on(nodes[:3], 12)
    first = planned(nodes, before)[0]
    begun = [
        one._replace(replicas=first.target, is_fixed=True) if one.group == first.group else one
        for one in before
    ]
    rest = planned(nodes, begun)
    assert first.group not in {one.group for one in rest}
    assert sum(one.arriving is not None for one in rest) == 8


def test_a_partition_on_a_node_that_is_drained_is_somebody_elses_to_move() -> None:
    partitions = [located(1, 9, 1), located(2, 1, 2), located(3, 1, 2)]
    assert all(one.group != 1 for one in planned(nodes_of(3), partitions))


def test_replicas_go_where_a_zone_has_none() -> None:
    nodes = [node(number, Labels("eu", zone)) for number, zone in enumerate("aabbcc", start=1)]
    crowded = [located(number, 1, 2, 3) for number in range(1, 7)]
    after = carried_out(crowded, planned(nodes, crowded))
    for one in after:
        assert {nodes[replica - 1].labels.zone for replica in one.replicas} == {"a", "b", "c"}
    assert replicas_by_node(nodes, after) == [3, 3, 3, 3, 3, 3]


def test_a_leader_goes_home() -> None:
    nodes = [node(1, Labels("eu")), node(2, Labels("us")), node(3, Labels("us"))]
    (move,) = planned(nodes, [located(1, 2, 1, 3, regions=("eu",))])
    assert (move.arriving, move.target[0]) == (None, NodeId(1))


def test_a_homed_partition_stays_at_home_however_full_that_is() -> None:
    nodes = [node(number, Labels("eu" if number < 4 else "us")) for number in range(1, 7)]
    crowded = [
        located(number, 1, 2, 3, regions=("eu",), is_homed=True, readers=(4,))
        for number in range(1, 7)
    ]
    after = carried_out(crowded, planned(nodes, crowded))
    assert all(set(one.replicas) == {1, 2, 3} for one in after)
    assert sorted(one.replicas[0] for one in after) == [1, 1, 2, 2, 3, 3]


def test_large_partitions_are_swapped_for_small_ones() -> None:
    nodes = nodes_of(2)
    large = [located(number, 1, size=1_000 * MIB) for number in range(1, 5)]
    small = [located(number, 2, size=MIB) for number in range(5, 9)]
    after = carried_out([*large, *small], planned(nodes, [*large, *small]))
    assert apart(stored_by_node(nodes, after)) < 256 * MIB
    assert replicas_by_node(nodes, after) == [4, 4]


def test_a_little_more_or_less_on_disk_moves_nothing() -> None:
    nodes = nodes_of(2)
    partitions = [located(1, 1, size=1_100 * MIB), located(2, 2, size=1_000 * MIB)]
    assert planned(nodes, partitions) == []


def test_a_few_copies_begin_at_a_time_and_leaders_wait_for_them() -> None:
    nodes = nodes_of(6)
    before = placed_on(nodes[:3], 24)
    plan = planned(nodes, before)
    begun = next_moves(plan, [])
    assert len(begun) == COPIES_MAX
    assert max(Counter(one.arriving for one in begun).values()) <= COPIES_TO_ONE_MAX
    assert len({one.group for one in begun}) == len(begun)
    moving = [
        Partition(one.group, TopicId(1), 0, one.replicas, (), target=one.target) for one in begun
    ]
    assert next_moves(plan, moving) == []
    leaders = [one for one in plan if one.arriving is None]
    assert next_moves(leaders, moving) == []
    assert next_moves(leaders, []) == leaders
