"""Which replica a partition goes on with, and when it may."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from angarium.ids import (
    Incarnation,
    Index,
    Micros,
    NodeId,
    Offset,
    RaftGroupId,
    Term,
    replica_id,
    witness_id,
)
from angarium.machine.catalog import Recovery
from angarium.node.recovering import due
from angarium.node.survivors import Survivor, best, confirmation, lost, objection

A, B, C = (replica_id(NodeId(node), Incarnation(7)) for node in (1, 2, 3))
AWAY = {NodeId(2): 90_000, NodeId(3): 61_000}


def seen(node: int, *, term: int = 3, index: int = 10, **more: Any) -> Survivor:
    return Survivor(
        node=NodeId(node),
        replica=replica_id(NodeId(node), Incarnation(7)),
        last_term=Term(term),
        last_index=Index(index),
        commit=Index(index),
        end_offset=Offset(index),
        voters=(A, B, C),
        **{"silent_ms": AWAY, **more},
    )


def test_the_later_term_counts_before_the_longer_log() -> None:
    assert best([seen(1, term=2, index=90), seen(2, term=3, index=10)]) == seen(2, index=10)
    assert best([seen(1, index=11), seen(2, index=12)]) == seen(2, index=12)
    assert best([seen(1, halted="contradicts")]) is None
    assert best([seen(1, index=0)]) is None


def test_a_majority_that_is_silent_for_long_enough_may_be_given_up() -> None:
    assert objection(seen(1), [seen(1)], wait_ms=60_000, name="p") is None
    assert lost(seen(1), [seen(1)]) == (B, C)


@pytest.mark.parametrize(
    ("there", "wait_ms", "said"),
    [
        ([seen(1, leads=True)], 60_000, "has a leader"),
        ([seen(1), seen(2)], 60_000, "which is a majority"),
        ([seen(1)], 62_000, "node 3 has been silent for 61 s only"),
        ([seen(1), seen(4, silent_ms={NodeId(3): 5})], 60_000, "node 3 has been silent for 0 s"),
    ],
)
def test_nothing_is_given_up_too_early(there: list[Survivor], wait_ms: int, said: str) -> None:
    assert said in str(objection(seen(1), there, wait_ms=wait_ms, name="p"))


def test_a_halted_replica_makes_no_majority() -> None:
    assert objection(seen(1), [seen(1), seen(2, halted="stopped")], wait_ms=1, name="p") is None


def test_a_code_stands_for_exactly_one_state() -> None:
    told = {
        confirmation("c", 1, 0, seen(1), (B, C)),
        confirmation("d", 1, 0, seen(1), (B, C)),
        confirmation("c", 2, 0, seen(1), (B, C)),
        confirmation("c", 1, 1, seen(1), (B, C)),
        confirmation("c", 1, 0, seen(1, index=11), (B, C)),
        confirmation("c", 1, 0, seen(1, term=4), (B, C)),
        confirmation("c", 1, 0, seen(1), (B,)),
    }
    assert len(told) == 7
    assert confirmation("c", 1, 0, seen(1), (B, C)) in told


def test_only_who_is_still_void_has_something_to_do() -> None:
    group, fresh = RaftGroupId(5), Incarnation(9)
    recovery = Recovery(
        group=group,
        source=NodeId(1),
        void=(A, B),
        fresh=((NodeId(1), fresh), (NodeId(2), fresh)),
        times=1,
        recovered_at=Micros(1),
    )
    (source,) = due([recovery], node=NodeId(1), own_in=lambda _: A)
    assert source == (group, fresh, True)
    (other,) = due([recovery], node=NodeId(2), own_in=lambda _: B)
    assert other == (group, fresh, False)
    assert not list(due([recovery], node=NodeId(2), own_in=lambda _: replica_id(NodeId(2), fresh)))
    assert not list(due([recovery], node=NodeId(3), own_in=lambda _: C))


def test_nobody_goes_on_with_a_witness_which_makes_a_majority_all_the_same() -> None:
    third = witness_id(C)
    ahead = msgspec.structs.replace(seen(3, term=4, index=99), replica=third)
    left = msgspec.structs.replace(seen(1), voters=(A, B, third))
    assert best([ahead, left]) is left
    assert best([ahead]) is None
    assert lost(left, [ahead, left]) == (B,)
    said = objection(left, [ahead, left], wait_ms=1, name="p")
    assert "which is a majority" in str(said)
