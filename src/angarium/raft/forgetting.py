"""What witnesses may forget, or pass over, of the log: nothing that others could need of them.

A witness votes and keeps the end of the log, but no state (`replica.witness`). What it acknowledged
may lie nowhere else but with one full voter. So it keeps that until every full voter has it (the
*floor*), and nobody comes to vote who lacks what it may have forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.ids import Index, ReplicaId, is_witness
from angarium.raft.conf_change import ChangeKind, decode_conf_change
from angarium.raft.messages import EntryKind
from angarium.raft.progress import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.raft.conf_change import ConfChange
    from angarium.raft.core import Core

_COMES: Final = (ChangeKind.ADD_VOTER, ChangeKind.ADD_LEARNER)


def floor(core: Core) -> Index:
    """Return up to where a witness may forget the log: every full voter has it on disk.

    So whoever is lost, the others have it, or the witness can give it to them. 0: nothing is said.
    """
    # While a change of membership is on its way somebody may be about to vote who has less.
    if core.pending_conf_index > core.log.applied:
        return Index(0)
    # Of both halves while joint. Listeners that keep up count as well, so that one that is to vote
    # is not overtaken all the time; one that is away or far behind holds nothing up. Planted as
    # floor-of-a-majority.
    return min(
        one.match
        for replica, one in core.tracker.progress.items()
        if not is_witness(replica)
        and (not one.is_learner or (one.recently_active and one.state is REPLICATE))
    )


def lacks_what_is_forgotten(core: Core, change: ConfChange) -> bool:
    """Tell whether somebody would vote who lacks entries that a witness may have forgotten.

    The witness could not give them to it, and would be counted for them all the same: they might
    lie on a single disk. Planted as newcomer-votes-below-the-floor.
    """
    if not core.tracker.has_witness:
        return False
    return any(
        one.kind is ChangeKind.ADD_VOTER
        and not is_witness(one.replica)
        and one.replica not in core.tracker.voters
        and not _has(core, one.replica, core.forgotten_index)
        for one in change.changes
    )


def may_pass_over(core: Core, witness: ReplicaId, index: Index) -> bool:
    """Tell whether a witness that lacks committed entries up to `index` may go on without them.

    Only beside two full voters. What it lacks was committed without its vote, so both have it, and
    with that all from before (Log Matching): it has nothing that one of them could need. Without
    this rule a witness that was away for longer than logs are kept waited for a full voter that
    may be lost for good, and nothing could be committed, not even that one's removal (seed 800400).

    Nobody may come to vote who lacks it, not even by a change that a deposed leader has and we have
    not: so everybody who listens has it, too. Planted as witness-waits-for-the-lost and
    anybody-passes-over.
    """
    membership = core.tracker.membership
    # Who agreed to what is committed; of a joint membership the half that did so from before, too.
    agreed = membership.outgoing or membership.voters
    # One that votes only by now, or in one half, was perhaps not asked, but another in its place.
    if witness not in agreed or witness not in membership.voters or len(agreed) != 3:
        return False
    newcomers = (membership.voters - agreed) | membership.learners | {*_coming(core)}
    return all(is_witness(one) or _has(core, one, index) for one in newcomers)


def _coming(core: Core) -> Iterator[ReplicaId]:
    """Yield who listens or votes by changes in the log that are not in force yet."""
    log = core.log
    if core.pending_conf_index <= log.applied:
        return
    at, behind = Index(log.applied + 1), Index(log.last_index + 1)
    while at < behind:
        entries = log.entries(at, behind, core.config.message_bytes_max)
        for entry in entries:
            if entry.kind is not EntryKind.NORMAL:
                changes = decode_conf_change(entry).changes
                yield from (one.replica for one in changes if one.kind in _COMES)
        at = Index(at + len(entries))


def _has(core: Core, replica: ReplicaId, index: Index) -> bool:
    """Tell whether a member is known to have the log up to `index` on disk."""
    progress = core.tracker.progress.get(replica)
    return progress is not None and progress.match >= index
