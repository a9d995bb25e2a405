"""Read-index requests on their way: asked at any replica, answered by the leader.

A leader serves no read before an entry of its own term is committed, for until then it does not
know how far its predecessors had committed (paper, section 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import NO_REPLICA, Index
from angarium.raft.messages import Message, MessageKind
from angarium.raft.read_only import ReadState
from angarium.raft.replication import broadcast_heartbeat

if TYPE_CHECKING:
    from angarium.raft.core import Core


def on_read_request(core: Core, m: Message) -> None:
    """Serve a read as the leader: at once if we decide alone, else when it is confirmed."""
    # A new leader has every committed entry and does not know yet which of its entries those are.
    # Its commit index may lie behind what its predecessor has told clients (Raft §8, thesis §6.4).
    # Planted as serving-before-an-own-entry-is-committed.
    if core.log.term_at(core.log.committed) == core.term:
        _confirm(core, m)
    elif len(core.postponed_reads) < core.config.pending_reads_max:
        core.postponed_reads.append(m)


def release_postponed(core: Core) -> None:
    """Serve the reads that waited for the first commit of our term, if that has come."""
    if core.postponed_reads and core.log.term_at(core.log.committed) == core.term:
        postponed, core.postponed_reads = core.postponed_reads, []
        for request in postponed:
            _confirm(core, request)


def acknowledge(core: Core, m: Message) -> None:
    """Count a heartbeat's echo, and answer the reads it confirms."""
    # The echo answers a heartbeat that left after the read had arrived, so we still led at some
    # time after it. Heartbeats that were sent before carry a smaller number and do not count.
    core.reads.acknowledge(m.sender, m.context)
    answer_confirmed(core)


def answer_confirmed(core: Core) -> None:
    """Answer the reads that enough voters have confirmed, those in force now."""
    for request, index in core.reads.confirmed(core.tracker):
        _answer(core, request, index)


def forward_read(core: Core, m: Message) -> None:
    """Pass a read on to the leader, as a follower."""
    if core.leader != NO_REPLICA:
        core.messages.append(
            Message(
                kind=MessageKind.READ_INDEX,
                to=core.leader,
                sender=m.sender or core.id,
                context=m.context,
            )
        )


def on_read_response(core: Core, m: Message) -> None:
    """Take the leader's answer to a read of ours."""
    core.read_states.append(ReadState(m.index, m.context))


def _confirm(core: Core, request: Message) -> None:
    # A lease saves the round trip and trusts clocks instead (thesis §6.4.1): `check_quorum` keeps
    # others from electing somebody before it has run out.
    has_lease = core.config.lease_reads and not core.reads.lease_is_void
    # Everybody else must ask: a leader that was deposed without knowing it would answer from a
    # state that others have moved on from. Planted as read-index-without-a-quorum.
    if has_lease or core.tracker.is_singleton:
        _answer(core, request, core.log.committed)
    elif len(core.reads) < core.config.pending_reads_max:
        # The commit index as of now, not as of the confirmation: the read must see what was
        # committed before it began, and need not wait for more.
        core.reads.add(request, core.log.committed)
        # We confirm ourselves by asking at all.
        core.reads.acknowledge(core.id, core.reads.heartbeat_context())
        broadcast_heartbeat(core)


def _answer(core: Core, request: Message, index: Index) -> None:
    if request.sender in (NO_REPLICA, core.id):
        core.read_states.append(ReadState(index, request.context))
    else:
        core.messages.append(
            Message(
                kind=MessageKind.READ_INDEX_RESPONSE,
                to=request.sender,
                sender=core.id,
                term=core.term,
                index=index,
                context=request.context,
            )
        )
