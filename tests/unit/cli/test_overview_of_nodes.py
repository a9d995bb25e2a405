"""The overview: what many nodes say, put together, and what of it is worth a sentence."""

from __future__ import annotations

from dataclasses import replace

from angarium.api import ClusterStatus, PartitionInfo, TopicConfig, TopicInfo
from angarium.cli.dashboard import REASONS_MAX, lines
from angarium.cli.overview import Overview, Seen, changes, leaders_text, overview
from angarium.cli.probe import View
from angarium.ids import Index, Micros, NodeId, Offset, TopicId

NODES = (NodeId(1), NodeId(2), NodeId(3))


def view(
    node: int,
    *,
    leader: int | None,
    ends: tuple[int | None, ...],
    name: str = "demo",
    handed_on: int = 0,
) -> View:
    status = ClusterStatus(
        cluster_id="c",
        node=NodeId(node),
        catalog_leader=None,
        catalog_index=Index(1),
        nodes=(),
        topics=1,
        partitions=len(ends),
        feature_level=1,
        version="0",
    )
    partitions = tuple(
        PartitionInfo(
            number=number,
            replicas=NODES,
            leader=None if leader is None else NodeId(leader),
            start_offset=None if end is None else Offset(0),
            end_offset=None if end is None else Offset(end),
            handed_on=handed_on,
        )
        for number, end in enumerate(ends)
    )
    topic = TopicInfo(
        id=TopicId(1),
        name=name,
        config=TopicConfig(),
        partitions=partitions,
        created_at=Micros(0),
    )
    return View(status, (topic,))


def seen(*views: View | None, endings: tuple[str, ...] = ("", "", "")) -> list[Seen]:
    return [
        Seen(address=f"h:{number}", view=one, node=number, ending=ending)
        for number, (one, ending) in enumerate(zip(views, endings, strict=True), 1)
    ]


def three(
    *, ends: tuple[int, ...] = (10, 10, 10), at: float = 1.0, before: Overview | None = None
) -> Overview:
    views = [view(node, leader=2, ends=(end,)) for node, end in enumerate(ends, 1)]
    return overview(seen(*views), at=at, before=before)


def test_who_lags_is_told_by_the_best_informed_node() -> None:
    now = three(ends=(7, 10, 10))
    assert [node.lag for node in now.nodes] == [3, 0, 0]
    assert [node.leads for node in now.nodes] == [0, 1, 0]
    assert [node.replicas for node in now.nodes] == [1, 1, 1]
    assert now.topics[0].records == 10


def test_a_node_that_claims_to_lead_is_believed_before_those_who_heard_of_another() -> None:
    views = (
        view(1, leader=3, ends=(1,)),
        view(2, leader=2, ends=(1,)),
        view(3, leader=2, ends=(1,)),
    )
    assert overview(seen(*views), at=0.0).topics[0].leaders == (2,)


def test_a_rate_comes_from_two_looks_and_a_stop_shows_at_once() -> None:
    first = three(ends=(10, 10, 10), at=1.0)
    second = three(ends=(110, 110, 110), at=2.0, before=first)
    third = three(ends=(110, 110, 110), at=3.0, before=second)
    assert [one.topics[0].rate for one in (first, second, third)] == [0.0, 100.0, 0.0]


def test_what_is_handed_on_without_being_stored_counts_for_the_rate() -> None:
    def look(one: int, other: int, at: float, before: Overview | None = None) -> Overview:
        views = (
            view(1, leader=2, ends=(10,), handed_on=one),  # it led before
            view(2, leader=2, ends=(10,), handed_on=other),
            view(3, leader=2, ends=(10,)),
        )
        return overview(seen(*views), at=at, before=before)

    first = look(5, 0, 1.0)
    now = look(5, 200, 2.0, first)
    assert (now.topics[0].rate, now.topics[0].records) == (200.0, 10)
    assert look(0, 200, 3.0, now).topics[0].rate == 0.0  # the first was started anew


def test_a_dead_node_is_shown_with_its_end_and_the_topics_stay() -> None:
    before = three()
    gone = seen(None, None, None, endings=("killed by SIGKILL", "", ""))
    now = overview(gone, at=2.0, before=before)
    assert [node.state for node in now.nodes] == ["killed by SIGKILL", "silent", "silent"]
    assert (now.alive, now.topics, now.cluster_id) == (0, before.topics, "c")


def test_changes_are_told_and_sameness_is_not() -> None:
    first = three()
    assert changes(None, first) == [
        "node 1 at h:1: alive",
        "node 2 at h:2: alive",
        "node 3 at h:3: alive",
        "topic demo: led by 2",
    ]
    assert changes(first, three(ends=(99, 99, 99), at=2.0, before=first)) == []
    moved = overview(
        seen(view(1, leader=3, ends=(1,)), None, view(3, leader=3, ends=(1,), name="new")),
        at=2.0,
        before=first,
    )
    assert changes(first, moved) == [
        "node 2 at h:2: silent",
        "topic demo: led by 3",
        "topic new: led by 3",
    ]


def test_many_partitions_are_summed_up_by_leader() -> None:
    views = (view(1, leader=1, ends=(0,) * 13), view(2, leader=1, ends=(0,) * 13))
    pair = [Seen(address=f"h:{n}", view=one) for n, one in enumerate(views)]
    assert leaders_text(overview(pair, at=0.0).topics[0]) == "1 (13)"


def test_the_table_marks_the_dead_and_fits_what_there_is() -> None:
    now = overview(seen(view(1, leader=1, ends=(5,)), None, None), at=0.0)
    block = lines(now, title="Angarium", up_seconds=3_725, footer=["bye"])
    text = [line.text for line in block]
    assert "1 of 3 nodes alive  1:02:05" in text[1]
    assert [line.colour for line in block if "h:" in line.text] == ["", "red", "red"]
    assert text[-1] == "bye"


def test_on_a_low_terminal_resting_topics_give_way_and_the_footer_stays() -> None:
    views = [view(1, leader=1, ends=(0,), name=f"t{number}") for number in range(20)]
    many = View(views[0].status, tuple(one.topics[0] for one in views))
    before = overview([Seen(address="h:1", view=many)], at=0.0)
    busy = view(1, leader=1, ends=(500,), name="t9").topics[0]
    topics = tuple(busy if one.name == "t9" else one for one in many.topics)
    now = overview([Seen(address="h:1", view=View(many.status, topics))], at=1.0, before=before)
    block = [
        line.text
        for line in lines(now, title="Angarium", up_seconds=0, footer=["a", "b"], lines_max=14)
    ]
    assert len(block) == 14
    assert block[-2:] == ["a", "b"]
    assert block[7].startswith("t9 ")
    assert "more: angarium topic list" in block[-4]


def test_very_many_reasons_leave_room_for_the_topics() -> None:
    now = three()
    first = replace(now.nodes[0], unready=tuple(f"reason {number}" for number in range(20)))
    now = replace(now, nodes=(first, *now.nodes[1:]))
    text = [line.text for line in lines(now, title="Angarium", up_seconds=0, footer=["bye"])]
    assert sum("reason " in one for one in text) == REASONS_MAX
    assert "  node 1: 16 more: angarium cluster status" in text
    assert any(one.startswith("demo") for one in text)
