"""`angarium bench` over every protocol: publish to all nodes, read from a follower, and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.doors.cluster_of_doors import run

from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Protocol, Route, Scenario
from angarium.bench.report import lines, side_by_side
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from tests.doors.cluster_of_doors import Doors

    from angarium.bench.report import Report

BRIEF = {"workers": 4, "rate": 400, "warmup_s": 0.1, "duration_s": 0.6}


def measured(doors: Doors, **more: object) -> Report:
    plan = Plan(**{**BRIEF, **more})  # type: ignore[arg-type]
    report = run(measure(plan, ",".join(doors.servers)))
    page = "\n".join(lines(report))
    assert report.is_right, page
    assert report.verdict.lost == 0, page
    assert report.verdict.acknowledged > 20, page
    return report


def test_every_protocol_publishes_to_all_nodes_and_reads_from_a_follower(doors: Doors) -> None:
    reports = [
        measured(doors, protocol=one, route=Route.ALL, sub_target="follower", batch=batch)
        for one in Protocol
        for batch in (1, 5)
    ]
    table = side_by_side(reports)
    assert [line.split()[0] for line in table[-len(reports) :: 2]] == [
        one.value for one in Protocol
    ]
    assert not [line for line in table if "WRONG" in line]


@pytest.mark.parametrize("protocol", [Protocol.GRPC, Protocol.REST])
@pytest.mark.parametrize("scenario", [Scenario.SLOW, Scenario.CRASH, Scenario.ISOLATION])
def test_groups_work_over_every_door(doors: Doors, protocol: Protocol, scenario: Scenario) -> None:
    report = measured(
        doors,
        protocol=protocol,
        scenario=scenario,
        sub_target="follower",
        consumers=2,
        topics=2 if scenario is Scenario.ISOLATION else 1,
    )
    assert report.group is not None
    assert report.group.unsettled == 0


def test_what_is_stored_is_read_back_over_the_protocol_itself(doors: Doors) -> None:
    report = measured(doors, protocol=Protocol.REST, scenario=Scenario.CATCH_UP)
    assert report.as_records_per_s is None
    assert report.records_per_s > 0


def test_targets_are_named_by_the_addresses_of_doors(doors: Doors) -> None:
    node = doors.nodes[1]
    report = measured(
        doors,
        protocol=Protocol.GRAPHQL,
        http_targets=tuple(one.http for one in doors.nodes),
        # By another of its doors: one name serves every protocol.
        sub_target=node.grpc,
    )
    assert report.failures == {}
    with pytest.raises(InvalidArgument, match="no node listens at"):
        measured(doors, sub_target="127.0.0.1:1")


@pytest.mark.parametrize(
    ("protocol", "option"), [(Protocol.GRPC, "grpc_targets"), (Protocol.REST, "http_targets")]
)
def test_a_target_that_is_not_there_is_named_and_not_waited_for(
    doors: Doors, protocol: Protocol, option: str
) -> None:
    for target in ("127.0.0.1:1", "nonsense"):
        with pytest.raises(InvalidArgument, match=f"nothing listens at {target}"):
            measured(doors, protocol=protocol, **{option: (target,)})
    # What is for another protocol is none of its business: `--protocol all` has both.
    other = "http_targets" if option == "grpc_targets" else "grpc_targets"
    measured(doors, protocol=protocol, **{other: ("127.0.0.1:1",)})
