"""A disk may be given up while the others have everything, and not before."""

from __future__ import annotations

import pytest

from angarium.ids import NodeId
from angarium.node.losses import Copies, objection

A, B, C, D, E = (NodeId(number) for number in range(1, 6))


def orders(*full: NodeId, replicas: tuple[NodeId, ...] = (A, B, C)) -> Copies:
    return Copies("orders/0", replicas, frozenset(full))


def test_a_disk_may_go_while_a_majority_of_the_others_is_full() -> None:
    assert objection([orders(A, B, C)], without=C) is None
    assert objection([orders(A, B)], without=C) is None


def test_a_refusal_names_the_partition_and_how_many_full_replicas_it_has() -> None:
    reason = objection([orders(A, B, C), orders(A, C)], without=C)
    assert reason is not None
    assert reason.startswith("orders/0 has 1 of 3 full replicas without node 3 (on node 1), and 2")


def test_a_node_that_holds_no_replica_counts_for_nothing() -> None:
    assert objection([orders(A, D, E)], without=C) is not None


def test_a_partition_whose_leader_does_not_answer_keeps_its_disks() -> None:
    reason = objection([orders()])
    assert reason is not None
    assert "0 of 3 full replicas, and 2 are needed" in reason


def test_what_stays_where_it_is_counts_the_node_itself() -> None:
    assert objection([orders(A, C)]) is None


@pytest.mark.parametrize("replicas", [(A,), (A, B)])
def test_one_or_two_copies_hold_nobody_back(replicas: tuple[NodeId, ...]) -> None:
    # Waiting would not bring them back, and all else on the node had better be looked after.
    assert objection([orders(replicas=replicas)], without=A) is None


def test_five_copies_need_three() -> None:
    replicas = (A, B, C, D, E)
    assert objection([orders(A, B, C, replicas=replicas)], without=E) is None
    assert objection([orders(A, B, E, replicas=replicas)], without=E) is not None
