"""Bugs planted where it is decided which replicas count, and which disk may be given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.bugs_in_the_log import older_snapshot_agreed_with
from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import scripted

from angarium.log.halts import Halts
from angarium.node.recollections import Recollections
from angarium.replica import opening
from angarium.replica.fullness import Fullness
from angarium.replica.replica import Replica
from angarium.testing.sim import operator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Index, NodeId, RaftGroupId, ReplicaId
    from angarium.raft import RaftNode


@bug(seeds_max=5, run=scripted("replaced-one-by-one"))
def groups_at_rest_are_not_steered() -> Iterator[Replaced]:
    """A group rests on the word of a member that is gone, and is left alone as long as it rests."""
    original = Replica.may_rest

    def may_rest(replica: Replica) -> bool:
        state = replica.raft.conf_state
        replica._fullness.heard.update(state.voters, state.learners)
        return original(replica)

    def woken(replica: Replica) -> None:
        replica.is_resting = False

    def doubt(_: Replica, __: NodeId) -> None:
        pass

    def needs_steering(*_: Any, is_resting: bool, is_moving: bool = False, **__: Any) -> bool:
        return not is_resting or is_moving

    yield Replaced(Replica, "may_rest", may_rest)
    yield Replaced(Replica, "woken", woken)
    yield Replaced(Replica, "doubt", doubt)
    yield Replaced(operator, "needs_steering", needs_steering)


@bug(seeds_max=5, run=scripted("replaced-one-by-one"))
def empty_replica_stands_for_its_group() -> Iterator[Replaced]:
    """A replica that nobody has filled is called ready, and answers readers with nothing."""

    def shortfall(_: Fullness, __: RaftNode, ___: Index) -> str:
        return ""

    yield Replaced(Fullness, "shortfall", shortfall)


@bug(seeds_max=10, run=scripted("replaced-when-allowed"))
def next_disk_given_up_too_early() -> Iterator[Replaced]:
    """A disk may go although a partition has too few full replicas without it."""

    def objection(*_: Any, **__: Any) -> None:
        return None

    yield Replaced(operator, "objection", objection)


@bug(seeds_max=10, run=scripted("rolled-back"))
def older_copy_let_in() -> Iterator[Replaced]:
    """A node whose disk was replaced by an older copy of itself is greeted like any other."""

    def objection(_: Recollections, __: ReplicaId, ___: int) -> None:
        return None

    yield Replaced(Recollections, "objection", objection)


@bug(seeds_max=10, run=scripted("rolled-back"))
def older_snapshot_taken() -> Iterator[Replaced]:
    """A snapshot is opened although the log that goes on from it has forgotten more."""

    yield Replaced(opening, "_agreed_hard_state", older_snapshot_agreed_with)


@bug(seeds_max=5, run=scripted("contradicted"))
def halt_forgotten_by_a_restart() -> Iterator[Replaced]:
    """A replica that contradicted its leader takes part again when its process has restarted."""

    def note(_: Halts, __: RaftGroupId, ___: str) -> None:
        pass

    yield Replaced(Halts, "note", note)
