"""Frames that nobody in the cluster has sent: forged, or from a member that has gone mad.

Two kinds of strangers are tried. An *outsider* has found a node's port and speaks in the name of
members: terms, votes, acknowledgements, entries, commits, everything plausible, for it knows how
the group stands. A *madman* is a member by its own name that says what cannot be. What neither may
achieve is any effect at all. A member that lies within the bounds of the possible is not among
them: no protocol without authentication survives that one.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from angarium.ids import Incarnation, Index, NodeId, Offset, ReplicaId, Term, replica_id
from angarium.raft.messages import ConfState, Entry, Message, MessageKind, Snapshot
from angarium.replica.peers import ChunkReply, EntriesReply, PeerMessage, Rest, Vouch
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.node import Said

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.raft import RaftNode
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

OUTSIDER: Final = NodeId(99)

GAP: Final = 40 * MILLISECOND
"""Mean time between two attempts."""

ABSURD_TERMS: Final = (2**63 - 1, 2**62, 2**40)


class Strangers:
    """Speaks to random nodes about random groups until told to stop."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(seed)
        self.sent = 0

    def start(self) -> None:
        """Begin, a moment after everybody else."""
        self._world.scheduler.after(300 * MILLISECOND, self._speak)

    def _speak(self) -> None:
        if not self._world.faults.active:
            return
        rng = self._rng
        self._world.scheduler.after(rng.randrange(GAP // 4, 2 * GAP), self._speak)
        target = rng.choice(list(self._world.nodes.values()))
        group = rng.choice(self._world.groups)
        if target.host is None or target.is_paused or group not in target.host.replicas:
            return
        raft = target.host.replicas[group].raft
        members = [one for one in raft.conf_state.voters if one != raft.id]
        if members:
            said = (self._outsider if rng.random() < 0.7 else self._madman)(raft, members, group)
            self.sent += 1
            self._world.note("stranger", "says to", target.name, said.via, said.said)
            self._hear(target, said)

    def _hear(self, target: SimNode, said: Said) -> None:
        life = target.life
        try:
            target.receive(said)
        except Exception as broken:
            self._world.history.incidents.append(f"a stranger broke {target.name}: {broken!r}")
        if target.life != life:
            self._world.history.incidents.append(f"a stranger ended the process of {target.name}")

    # --- who says what ----------------------------------------------------------------------

    def _outsider(self, raft: RaftNode, members: list[ReplicaId], group: RaftGroupId) -> Said:
        rng = self._rng
        via = replica_id(OUTSIDER, Incarnation(rng.getrandbits(48)))
        victim = rng.choice(members)
        if rng.random() < 0.2:
            return Said(via, group, self._beside_raft(raft, victim, group))
        if rng.random() < 0.1:
            # In its own name, which no group knows: an answer, or a word of no meaning here.
            return Said(via, group, self._impossible(raft, via))
        return Said(via, group, self._possible(raft, victim))

    def _madman(self, raft: RaftNode, members: list[ReplicaId], group: RaftGroupId) -> Said:
        sender = self._rng.choice(members)
        return Said(sender, group, self._impossible(raft, sender))

    def _possible(self, raft: RaftNode, sender: ReplicaId) -> Message:
        """Return what `sender` itself might say, with consequences."""
        rng = self._rng
        term, last = raft.term, raft.last_index
        newer = Term(term + rng.randrange(1, 3))
        said: dict[MessageKind, dict[str, object]] = {
            MessageKind.APPEND_RESPONSE: {"term": term, "index": last},
            MessageKind.VOTE_RESPONSE: {"term": term},
            MessageKind.PRE_VOTE_RESPONSE: {"term": Term(term + 1)},
            MessageKind.HEARTBEAT: {"term": rng.choice((term, newer)), "commit": last},
            MessageKind.VOTE: {
                "term": newer,
                "index": Index(last + 9),
                "log_term": term,
                "context": b"transfer",
            },
            MessageKind.APPEND: {
                "term": newer,
                "index": last,
                "log_term": term,  # as it mostly is
                "entries": (Entry(newer, Index(last + 1), b""),),
                "commit": Index(last + 1),
            },
            MessageKind.TIMEOUT_NOW: {"term": term},
            MessageKind.HEARTBEAT_RESPONSE: {"term": term, "context": b"\1" + bytes(7)},
        }
        kind = rng.choice(list(said))
        return Message(kind=kind, to=raft.id, sender=sender, **said[kind])  # type: ignore[arg-type]

    def _impossible(self, raft: RaftNode, sender: ReplicaId) -> Message:
        """Return what nobody can have said who keeps the rules."""
        rng = self._rng
        term, last = raft.term, raft.last_index
        # One without a log takes any term that there can be: it has nothing to compare with.
        absurd = Term(rng.choice(ABSURD_TERMS if last else ABSURD_TERMS[:1]))
        entries = (Entry(term, Index(last + 7), b"?"), Entry(term, Index(last + 3), b"!"))
        nonsense = Snapshot(Index(last + 5), absurd, ConfState(voters=(raft.id,)), b"?")
        kind, parts = rng.choice(
            (
                (rng.choice(_WITH_TERMS), {"term": absurd}),
                (MessageKind.HEARTBEAT, {"term": term, "commit": Index(last + 10**6)}),
                (MessageKind.HEARTBEAT, {"commit": last}),
                (MessageKind.APPEND, {"term": term, "index": last, "entries": entries}),
                (MessageKind.PROPOSE, {"entries": entries}),
                (MessageKind.TRANSFER_LEADER, {}),
                (MessageKind.SNAPSHOT, {"term": term, "snapshot": nonsense}),
            )
        )
        return Message(kind=kind, to=raft.id, sender=sender, **parts)

    def _beside_raft(self, raft: RaftNode, victim: ReplicaId, group: RaftGroupId) -> PeerMessage:
        last = raft.last_index
        return self._rng.choice(
            (
                Vouch(victim, raft.id),
                Rest(group, victim, raft.id, raft.term, last),
                EntriesReply(group, victim, raft.id, last, (), True),
                ChunkReply(group, victim, raft.id, raft.commit, Offset(0), 0, b"?", True),
            )
        )


_WITH_TERMS: Final = (
    MessageKind.HEARTBEAT,
    MessageKind.APPEND,
    MessageKind.VOTE,
    MessageKind.APPEND_RESPONSE,
)
