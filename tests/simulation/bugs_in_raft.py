"""Bugs planted where replicas agree: votes, quorums, replication, membership, reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import scripted, usual, watched

from angarium.ids import NO_REPLICA, Index
from angarium.log.wal import Wal
from angarium.raft import (
    leading,
    quorum,
    read_index,
    reconfiguration,
    replication,
    stepping,
    tracker,
)
from angarium.raft.core import LEADER
from angarium.raft.log import RaftLog
from angarium.raft.messages import HardState, MessageKind
from angarium.raft.quorum import vote_result
from angarium.raft.tracker import Tracker
from angarium.replica.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import RaftGroupId, ReplicaId, Term
    from angarium.raft.core import Core
    from angarium.raft.messages import Entry, Message
    from angarium.raft.quorum import VoteResult


def _leader_does(kind: MessageKind, handler: Any) -> Replaced:
    """Let leaders treat messages of `kind` by another rule."""
    tables = [list(table) for table in stepping._HANDLERS]
    tables[LEADER][kind] = handler
    return Replaced(stepping, "_HANDLERS", tuple(map(tuple, tables)))


# --- votes ----------------------------------------------------------------------------------


@bug(seeds_max=20, run=scripted("forgetful-voter"))
def vote_not_persisted() -> Iterator[Replaced]:
    """The vote is not written down, so that a voter may vote twice in one term."""
    original = Wal.append

    def append(
        self: Wal,
        group: RaftGroupId,
        entries: Sequence[Entry] = (),
        hard_state: HardState | None = None,
        *,
        reserve: bool = False,
    ) -> None:
        if hard_state is not None:
            hard_state = HardState(hard_state.term, NO_REPLICA, hard_state.commit)
        original(self, group, entries, hard_state, reserve=reserve)

    yield Replaced(Wal, "append", append)


@bug(seeds_max=20, run=usual)
def up_to_date_check_skipped() -> Iterator[Replaced]:
    """A voter grants its vote to a candidate whose log ends earlier than its own."""

    def is_up_to_date(self: RaftLog, *, last_index: Index, last_term: Term) -> bool:
        return True

    yield Replaced(RaftLog, "is_up_to_date", is_up_to_date)


# --- replication ----------------------------------------------------------------------------


@bug(seeds_max=20, run=scripted("late-loser"))
def append_without_previous_entry() -> Iterator[Replaced]:
    """A follower takes entries without comparing the term of the entry before them."""
    original = RaftLog.accept

    def accept(
        self: RaftLog,
        entries: Sequence[Entry],
        *,
        prev_index: Index,
        prev_term: Term,
        commit: Index,
    ) -> bool:
        own = self.term_at(prev_index)
        term = prev_term if own is None else own
        return original(self, entries, prev_index=prev_index, prev_term=term, commit=commit)

    yield Replaced(RaftLog, "accept", accept)


@bug(seeds_max=20, run=scripted("late-loser"))
def conflicting_suffix_kept() -> Iterator[Replaced]:
    """A follower keeps its own entries where the leader has others, and takes only longer ones."""

    def beyond_agreement(self: RaftLog, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [entry for entry in entries if entry.index > self.last_index]

    yield Replaced(RaftLog, "_beyond_agreement", beyond_agreement)


@bug(seeds_max=20, run=scripted("figure-8"))
def old_term_committed_by_counting() -> Iterator[Replaced]:
    """A leader counts replicas for entries of earlier terms, too (figure 8 of the paper)."""

    def advance_commit(core: Core) -> bool:
        index = core.tracker.committed()
        if index <= core.log.committed:
            return False
        core.log.commit_to(index)
        return True

    for module in (replication, leading, reconfiguration):
        yield Replaced(module, "advance_commit", advance_commit)


@bug(seeds_max=20, run=scripted("late-loser"))
def quorum_off_by_one() -> Iterator[Replaced]:
    """An entry counts as committed when one replica too few has it."""

    def majority_index(indexes: list[Index]) -> Index:
        indexes.sort()
        return indexes[min((len(indexes) + 1) // 2, len(indexes) - 1)]

    yield Replaced(quorum, "majority_index", majority_index)
    yield Replaced(tracker, "majority_index", majority_index)


@bug(seeds_max=20, run=scripted("slow-leader"))
def leader_counts_itself_before_its_fsync() -> Iterator[Replaced]:
    """A leader takes its own entries for stored before they are on its own disk."""
    original = Replica._append

    def append(self: Replica, message: Message) -> None:
        own = tuple(one for one in message.responses if one.to == self.id)
        others = tuple(one for one in message.responses if one.to != self.id)
        original(self, msgspec.structs.replace(message, responses=others))
        self.persisted(own)

    yield Replaced(Replica, "_append", append)


@bug(seeds_max=60, run=usual)
def paused_follower_never_probed_again() -> Iterator[Replaced]:
    """A leader whose probe was lost waits for its answer for ever."""

    def on_heartbeat_response(core: Core, m: Message) -> None:
        progress = core.tracker.progress.get(m.sender)
        if progress is not None:
            progress.recently_active = True
            if m.context:
                read_index.acknowledge(core, m)

    yield _leader_does(MessageKind.HEARTBEAT_RESPONSE, on_heartbeat_response)


# --- reads ----------------------------------------------------------------------------------


@bug(seeds_max=20, run=scripted("slow-handover"))
def serving_before_an_own_entry_is_committed() -> Iterator[Replaced]:
    """A new leader serves at once, though it does not know yet what its predecessors committed."""

    def watch_leadership(self: Replica) -> None:
        raft = self.raft
        if self._leading is not None and not (raft.is_leader and raft.term == self._leading):
            self._leading = None
            self._state.follow()
            self._reads.abandon(raft.leader)
        if self._leading is None and raft.is_leader:
            self._leading = raft.term
            self._state.lead(raft.term)

    yield Replaced(Replica, "_watch_leadership", watch_leadership)
    yield _leader_does(MessageKind.READ_INDEX, read_index._confirm)


@bug(seeds_max=60, run=watched)
def read_index_without_a_quorum() -> Iterator[Replaced]:
    """A leader answers reads without asking whether it still leads."""

    def confirm(core: Core, request: Message) -> None:
        read_index._answer(core, request, core.log.committed)

    yield Replaced(read_index, "_confirm", confirm)


# --- membership -----------------------------------------------------------------------------


@bug(seeds_max=10, run=scripted("split-change"))
def joint_change_decided_by_the_new_half() -> Iterator[Replaced]:
    """While the membership changes only the new voters are asked, not the old ones as well."""

    def committed(self: Tracker) -> Index:
        return quorum.majority_index([self.progress[voter].match for voter in self._incoming])

    def agreed(self: Tracker, numbers: dict[ReplicaId, Index]) -> Index:
        return quorum.committed_index(self._incoming, numbers)

    def result_of(self: Tracker, votes: dict[ReplicaId, bool]) -> VoteResult:
        return vote_result(self._incoming, votes)

    yield Replaced(Tracker, "committed", committed)
    yield Replaced(Tracker, "agreed", agreed)
    yield Replaced(Tracker, "result_of", result_of)


@bug(seeds_max=20, run=scripted("lonely-learner"))
def learner_counted_as_voter() -> Iterator[Replaced]:
    """What learners have acknowledged counts towards the majority of the voters."""

    def committed(self: Tracker) -> Index:
        matches = sorted((one.match for one in self.progress.values()), reverse=True)
        return matches[len(self._incoming) // 2]

    yield Replaced(Tracker, "committed", committed)
