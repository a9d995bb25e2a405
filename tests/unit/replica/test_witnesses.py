"""What a witness makes of its leader's snapshots: it takes only where they end, and not always."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import Index, NodeId, RaftGroupId, Term, witness_id
from angarium.raft.messages import ConfState, Message, MessageKind, Snapshot

if TYPE_CHECKING:
    from angarium.replica.witness import WitnessReplica

GROUP = RaftGroupId(1)
FIRST, SECOND, THIRD = NodeId(1), NodeId(2), NodeId(3)
END = Index(500)


@pytest.fixture
def witness() -> WitnessReplica:
    """Return the witness of a group whose full voters have said nothing yet."""
    several = SeveralHosts((FIRST, SECOND, THIRD))
    voters = [several.hosts[FIRST].id, several.hosts[SECOND].id]
    voters.append(witness_id(several.hosts[THIRD].id))
    several.hosts[THIRD].form_group(GROUP, voters)
    found = several.hosts[THIRD].witnesses[GROUP]
    assert found.snapshot_index < END
    return found


def offer(witness: WitnessReplica, *, passed_over: Index, term: int | None = None) -> Index:
    """Let a leader offer what it has at `END`; return where the witness's log begins after it."""
    state = witness.raft.conf_state
    leader = min(state.voters)
    message = Message(
        kind=MessageKind.SNAPSHOT,
        to=witness.id,
        sender=leader,
        term=Term(witness.raft.term + 1 if term is None else term),
        index=passed_over,
        snapshot=Snapshot(END, Term(1), ConfState(voters=state.voters), b"a whole state"),
    )
    witness.receive(message)
    witness.process()
    return Index(witness.first_index - 1)


def test_a_witness_takes_no_snapshot_of_what_full_voters_may_lack(
    witness: WitnessReplica,
) -> None:
    before = witness.first_index - 1
    assert offer(witness, passed_over=Index(0)) == before
    assert offer(witness, passed_over=Index(END - 1)) == before


def test_a_witness_passes_over_what_its_leader_says_that_both_have(
    witness: WitnessReplica,
) -> None:
    assert offer(witness, passed_over=END) == END


def test_a_deposed_leader_may_let_nobody_pass_over_anything(witness: WitnessReplica) -> None:
    before = witness.first_index - 1
    vote = Message(
        kind=MessageKind.HEARTBEAT,
        to=witness.id,
        sender=max(one for one in witness.raft.conf_state.voters if one != witness.id),
        term=Term(witness.raft.term + 5),
    )
    witness.receive(vote)
    assert offer(witness, passed_over=END, term=witness.raft.term - 1) == before


def test_a_witness_takes_no_snapshot_while_it_writes_one(witness: WitnessReplica) -> None:
    before = witness.first_index - 1
    witness.is_busy = True
    assert offer(witness, passed_over=END) == before
    witness.is_busy = False
    assert offer(witness, passed_over=END) == END
