"""What `angarium cluster rebalance` asks for, and prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.component.cli.test_commands_with_a_fake_client import (  # noqa: F401 (fixtures)
    cluster,
    shell,
)

from angarium.api.balance import BalanceInfo, MoveInfo
from angarium.doors.status import Exit
from angarium.ids import NodeId

if TYPE_CHECKING:
    from tests.component.cli.fake_client import FakeCluster
    from tests.component.cli.test_commands_with_a_fake_client import Shell

ONE, TWO, THREE, FOUR = (NodeId(number) for number in (1, 2, 3, 4))
MIB = 1 << 20

COPY = MoveInfo(
    topic="orders",
    partition=2,
    replicas=(ONE, TWO, THREE),
    target=(ONE, TWO, FOUR),
    is_under_way=True,
    stored_bytes=100 * MIB,
    copied_bytes=40 * MIB,
)
LEADER = MoveInfo(topic="payments", partition=0, replicas=(ONE, TWO), target=(TWO, ONE))

BALANCED = "The cluster is balanced; it does not rebalance by itself.\n"


def test_it_begins_with_the_pace_that_was_said_and_shows_moves(
    cluster: FakeCluster,  # noqa: F811
    shell: Shell,  # noqa: F811
) -> None:
    cluster.balance = BalanceInfo(
        is_running=True,
        bytes_per_s=20 * MIB,
        moves=(COPY, LEADER),
        moves_left=2,
        bytes_left=60 * MIB,
        time_left_ms=3_000,
    )
    said = shell("cluster", "rebalance", "--throttle", "20MiB")
    assert cluster.calls == [("rebalance", 20 * MIB), ("closed",)]
    assert said.splitlines()[0] == (
        "Rebalancing: 2 moves left, 60 MiB to copy, 1 under way, at 20 MiB/s at most, about 3.0s."
    )
    assert "orders" in said
    assert "node 3" in said
    assert "node 4" in said
    assert "40%" in said
    assert "led by 2" in said


def test_a_dry_run_only_looks_and_a_balanced_cluster_is_called_so(
    cluster: FakeCluster,  # noqa: F811
    shell: Shell,  # noqa: F811
) -> None:
    assert shell("cluster", "rebalance", "--dry-run") == BALANCED
    told = json.loads(shell("--format", "json", "cluster", "rebalance", "--dry-run"))
    assert (told["is_running"], told["moves"]) == (False, [])
    shell("cluster", "rebalance", "--cancel")
    shell("cluster", "rebalance", "--auto", "on")
    shell("cluster", "rebalance", "--throttle", "none")
    assert [one for one in cluster.calls if one != ("closed",)] == [
        ("describe_balance",),
        ("describe_balance",),
        ("cancel_rebalance",),
        ("set_auto_balance", True),
        ("rebalance", 0),
    ]


def test_watching_ends_when_nothing_is_left(
    cluster: FakeCluster,  # noqa: F811
    shell: Shell,  # noqa: F811
) -> None:
    assert shell("cluster", "rebalance", "--watch") == BALANCED


def test_a_drain_with_a_pace_sets_it_before_anything_moves(
    cluster: FakeCluster,  # noqa: F811
    shell: Shell,  # noqa: F811
) -> None:
    shell("cluster", "drain", "2", "--throttle", "20MiB")
    shell("cluster", "drain", "2", "--throttle", "none")
    said = [one for one in cluster.calls if one[0] in {"rebalance", "drain"}]
    assert said == [
        ("rebalance", 20 * MIB),
        ("drain", 2, True),
        ("rebalance", 0),
        ("drain", 2, True),
    ]
    shell("cluster", "drain", "2", "--undo", "--throttle", "1MB", status=Exit.USAGE)
    assert "--undo moves nothing" in shell.err


def test_how_long_a_drain_takes_is_told_without_a_rebalance(
    cluster: FakeCluster,  # noqa: F811
    shell: Shell,  # noqa: F811
) -> None:
    cluster.balance = BalanceInfo(
        is_running=False, moves=(COPY,), moves_left=1, bytes_left=60 * MIB, time_left_ms=3_000
    )
    said = shell("cluster", "rebalance", "--dry-run").splitlines()[0]
    assert "1 move left, 60 MiB to copy, 1 on the way, about 3.0s;" in said


def test_what_does_not_go_together_is_refused(
    cluster: FakeCluster,  # noqa: F811
    shell: Shell,  # noqa: F811
) -> None:
    shell("cluster", "rebalance", "--dry-run", "--cancel", status=Exit.USAGE)
    assert "--dry-run and --cancel do not go together" in shell.err
    shell("cluster", "rebalance", "--cancel", "--throttle", "1MB", status=Exit.USAGE)
    assert cluster.calls == []
