"""A node says in words why it should not be relied on, and hears it of the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from angarium.node.joining import Asking
from angarium.node.lacking import Lack, told
from angarium.node.readiness import LOOK_S, REASONS_MAX, Readiness


def a_node(**known: object) -> Any:
    return SimpleNamespace(
        **({"failure": None, "is_open": True, "is_member": True, "asking": Asking()} | known)
    )


def test_a_node_without_a_reason_is_ready() -> None:
    assert Readiness(a_node()).reasons() == ()


def test_every_source_is_asked() -> None:
    readiness = Readiness(a_node(is_member=False))
    readiness.sources += [lambda: ["its clock is off"], lambda: (), lambda: ["its disk rots"]]
    assert readiness.reasons() == ("not a member yet", "its clock is off", "its disk rots")


def test_a_node_that_failed_or_starts_asks_nobody() -> None:
    def never() -> list[str]:
        raise AssertionError

    for node in (a_node(failure=OSError("no room")), a_node(is_open=False)):
        readiness = Readiness(node)
        readiness.sources.append(never)
        assert len(readiness.reasons()) == 1


def test_of_very_many_reasons_only_the_number_is_told() -> None:
    readiness = Readiness(a_node())
    readiness.sources.append(lambda: [f"partition {one} is gone" for one in range(100)])
    reasons = readiness.reasons()
    assert len(reasons) == REASONS_MAX + 1
    assert reasons[-1] == f"and {100 - REASONS_MAX} more reasons"


def test_sources_are_asked_once_however_many_want_to_know() -> None:
    clock = SimpleNamespace(now=100.0)
    node = a_node()
    readiness = Readiness(node, clock=lambda: clock.now)
    asked: list[int] = []
    readiness.sources.append(lambda: [f"asked {asked.append(1) or len(asked)} times"])  # type: ignore[func-returns-value]
    assert [readiness.reasons() for _ in range(5)] == [("asked 1 times",)] * 5
    clock.now += LOOK_S
    assert readiness.reasons() == ("asked 2 times",)
    node.failure = OSError("no room")
    assert readiness.reasons() == ("failed: no room",), "that is told at once"


def test_partitions_with_the_same_trouble_share_a_sentence() -> None:
    # After a start every replica may be catching up; a line for each hid everything else.
    behind = [
        Lack(f"partition {number} of orders", f"is catching up, at entry {number} of 9")
        for number in range(8)
    ]
    few = [Lack(f"partition {one} of jobs", "is not there yet") for one in (0, 1)]
    assert told([few[0], *behind, few[1]]) == [
        "partition 0 of jobs: this node's replica is not there yet",
        "partition 1 of jobs: this node's replica is not there yet",
        "of 8 partitions (partition 0 of orders, partition 1 of orders, partition 2 of orders "
        "and 5 more) "
        "this node's replica is catching up",
    ]
