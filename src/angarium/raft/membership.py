"""Who belongs to a group, and how that changes.

Two ways lead from one membership to the next. A *simple* change adds or removes at most one
voter, so that any majority before shares a member with any majority after (thesis, section 4.1).
Anything else *enters a joint* configuration, in which old and new voters must both agree, and
later *leaves* it (section 4.3). Every function here returns a new value or raises
`InvalidConfChange`, and a `Membership` that contradicts itself cannot be built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from angarium.raft.conf_change import ChangeKind, ConfChange
from angarium.raft.errors import ConfChangeFault, InvalidConfChange
from angarium.raft.messages import ConfState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.ids import ReplicaId
    from angarium.raft.conf_change import Change

NOBODY: frozenset[ReplicaId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The voters and learners of a group at one point of its log."""

    voters: frozenset[ReplicaId] = NOBODY
    """Who votes; in a joint configuration, the new half."""
    outgoing: frozenset[ReplicaId] = NOBODY
    """The old half of a joint configuration; empty outside one."""
    learners: frozenset[ReplicaId] = NOBODY
    """Who receives the log without a vote. No voter of either half is among them."""
    learners_next: frozenset[ReplicaId] = NOBODY
    """Voters of the old half that turn into learners when the joint configuration is left."""
    auto_leave: bool = False
    """Whether the leader leaves the joint configuration by itself."""

    renewed: frozenset[ReplicaId] = field(default=NOBODY, compare=False)
    """Replicas that were removed and added again by the change that led here: what was known of
    their logs is void."""

    def __post_init__(self) -> None:
        """Refuse a replica with two parts, and remains of a joint configuration outside one."""
        both = self.learners & (self.voters | self.outgoing)
        if both:
            raise _contradiction(f"{sorted(both)} would vote and learn")
        if not self.learners_next <= self.outgoing:
            raise _contradiction("only voters of the old half wait to become learners")
        if self.auto_leave and not self.is_joint:
            raise _contradiction("there is no joint configuration to leave by itself")
        if not self.voters and (self.learners or self.outgoing):
            raise InvalidConfChange(ConfChangeFault.NO_VOTER_LEFT)

    @property
    def is_joint(self) -> bool:
        """Whether two halves must agree."""
        return bool(self.outgoing)

    @property
    def members(self) -> frozenset[ReplicaId]:
        """Everyone who receives the log."""
        return self.voters | self.outgoing | self.learners

    @property
    def conf_state(self) -> ConfState:
        """The same, as snapshots store it."""
        return ConfState(
            voters=tuple(sorted(self.voters)),
            learners=tuple(sorted(self.learners)),
            voters_outgoing=tuple(sorted(self.outgoing)),
            learners_next=tuple(sorted(self.learners_next)),
            auto_leave=self.auto_leave,
        )


def restored(conf_state: ConfState) -> Membership:
    """Return the membership that a snapshot describes."""
    return Membership(
        voters=frozenset(conf_state.voters),
        outgoing=frozenset(conf_state.voters_outgoing),
        learners=frozenset(conf_state.learners),
        learners_next=frozenset(conf_state.learners_next),
        auto_leave=conf_state.auto_leave,
    )


def changed(current: Membership, change: ConfChange) -> Membership:
    """Return the membership after `change`, by whichever way it asks for."""
    if change.leaves_joint:
        return left_joint(current)
    if change.enters_joint:
        return entered_joint(current, change.changes, auto_leave=change.auto_leave)
    return simply_changed(current, change.changes)


def simply_changed(current: Membership, changes: Iterable[Change]) -> Membership:
    """Return the membership after a single-step change of at most one voter."""
    if current.is_joint:
        raise InvalidConfChange(ConfChangeFault.SIMPLE_WHILE_JOINT)
    draft = _Draft(current)
    draft.apply(changes)
    # Adding or removing one voter keeps every old and every new majority overlapping. With two
    # changes they need not, and both could elect a leader in one term (thesis §4.1).
    if len(current.voters ^ draft.voters) > 1:
        raise InvalidConfChange(ConfChangeFault.SEVERAL_VOTERS)
    return draft.finished()


def entered_joint(
    current: Membership, changes: Iterable[Change], *, auto_leave: bool
) -> Membership:
    """Return the joint configuration of the current voters and those after `changes`."""
    if current.is_joint:
        raise InvalidConfChange(ConfChangeFault.ALREADY_JOINT)
    if not current.voters:
        raise InvalidConfChange(ConfChangeFault.NOTHING_TO_JOIN)
    draft = _Draft(current)
    # From here to `left_joint` every decision needs a majority of both halves (thesis §4.3).
    draft.outgoing = set(current.voters)
    draft.apply(changes)
    draft.auto_leave = auto_leave
    return draft.finished()


def left_joint(current: Membership) -> Membership:
    """Return the new half alone; demoted voters of the old half become learners now."""
    if not current.is_joint:
        raise InvalidConfChange(ConfChangeFault.NOT_JOINT)
    # Replicas that were only in the old half leave here, and not when the joint configuration is
    # entered: their votes were needed until now.
    return Membership(voters=current.voters, learners=current.learners | current.learners_next)


class _Draft:
    """A membership while it is being changed. All changes to voters concern the new half."""

    __slots__ = ("auto_leave", "learners", "learners_next", "outgoing", "removed", "voters")

    def __init__(self, base: Membership) -> None:
        self.voters = set(base.voters)
        self.outgoing = set(base.outgoing)
        self.learners = set(base.learners)
        self.learners_next = set(base.learners_next)
        self.auto_leave = False
        self.removed: set[ReplicaId] = set()

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.replica == 0:
                continue
            match change.kind:
                case ChangeKind.ADD_VOTER:
                    self._make_voter(change.replica)
                case ChangeKind.ADD_LEARNER:
                    self._make_learner(change.replica)
                case ChangeKind.REMOVE:
                    # Removed and added again in one change: a new replica under the old id may
                    # have an empty log, so what the leader knew of it is void (`renewed`).
                    if not self._remove(change.replica):
                        self.removed.add(change.replica)
                case ChangeKind.UPDATE:
                    pass
        # A group without voters can never decide anything again, not even to take a voter in.
        if not self.voters:
            raise InvalidConfChange(ConfChangeFault.NO_VOTER_LEFT)

    def finished(self) -> Membership:
        members = self.voters | self.outgoing | self.learners
        return Membership(
            voters=frozenset(self.voters),
            outgoing=frozenset(self.outgoing),
            learners=frozenset(self.learners),
            learners_next=frozenset(self.learners_next),
            auto_leave=self.auto_leave,
            renewed=frozenset(self.removed & members),
        )

    def _make_voter(self, replica: ReplicaId) -> None:
        self.learners.discard(replica)
        self.learners_next.discard(replica)
        self.voters.add(replica)

    def _make_learner(self, replica: ReplicaId) -> None:
        if replica in self.learners:
            return
        self._remove(replica)
        # A voter of the old half cannot be a learner at the same time; it becomes one when the
        # joint configuration is left.
        if replica in self.outgoing:
            self.learners_next.add(replica)
        else:
            self.learners.add(replica)

    def _remove(self, replica: ReplicaId) -> bool:
        """Take `replica` out of the new half; return whether it stays as a voter of the old."""
        self.voters.discard(replica)
        self.learners.discard(replica)
        self.learners_next.discard(replica)
        return replica in self.outgoing


def _contradiction(detail: str) -> InvalidConfChange:
    return InvalidConfChange(ConfChangeFault.CONTRADICTORY, detail)
