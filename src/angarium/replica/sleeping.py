"""Idle groups go quiet: nobody ticks them, and a word from node to node vouches for their leader.

A leader whose followers have everything, and to which nothing happens, tells them to rest and
rests itself. From then on the group costs nothing. Every few ticks each node sends one message to
each node that rests under its leadership, however many groups that is. A node that no longer hears
it wakes the groups that rest under the silent one, and they elect another leader as ever. Any Raft
message, proposal or read wakes a group, too.

Resting changes nothing about safety: it is only a clock that stands still.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from angarium.ids import node_of
from angarium.replica.peers import Rest, Vouch

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId, ReplicaId
    from angarium.replica.config import ReplicaConfig
    from angarium.replica.outbox import Outbox
    from angarium.replica.replica import Replica


class _Resting(NamedTuple):
    """One group that rests."""

    replica: Replica
    leader: ReplicaId
    peers: list[ReplicaId]
    """Those who rest under this host's own leadership."""


class Sleepers:
    """The groups of one host that rest, and who vouches for them."""

    def __init__(self, outbox: Outbox, config: ReplicaConfig) -> None:
        self._outbox = outbox
        self._config = config
        self._resting: dict[RaftGroupId, _Resting] = {}
        self._silence: dict[ReplicaId, int] = {}
        """Ticks since each leader under whom a group rests here was heard."""
        self._led: Counter[tuple[ReplicaId, ReplicaId]] = Counter()
        """How many groups rest under each leader of this host at each peer."""
        self._ticks = 0

    def __len__(self) -> int:
        return len(self._resting)

    def rests(self, group: RaftGroupId) -> bool:
        """Tell whether `group` need not be ticked."""
        return group in self._resting

    def silent_ticks(self, group: RaftGroupId) -> int:
        """Return how long nobody has vouched for the leader of a group that rests, in ticks."""
        resting = self._resting.get(group)
        return 0 if resting is None else self._silence.get(resting.leader, 0)

    # --- going to rest ----------------------------------------------------------------------

    def consider(self, replica: Replica) -> bool:
        """Put a leader to rest if nothing is left to do in its group; tell whether it rests."""
        if not replica.may_rest():
            return False
        state = replica.raft.conf_state
        me = replica.id
        peers = [one for one in (*state.voters, *state.learners) if one != me]
        for peer in peers:
            self._outbox.tell(
                Rest(replica.group, me, peer, replica.raft.term, replica.raft.last_index)
            )
            self._led[me, peer] += 1
        self._add(replica, leader=me, peers=peers)
        return True

    def hear_rest(self, message: Rest, replica: Replica) -> None:
        """Rest under a leader that says so, if this replica has all that the leader has."""
        raft = replica.raft
        if (
            # Only a follower that has everything may stop its clock: one that lacks an entry, or
            # follows somebody else, has to be able to campaign.
            raft.term == message.term
            and raft.leader == message.sender
            and raft.last_index == raft.commit == message.index
            and not replica.is_applying
        ):
            self._silence[message.sender] = 0
            self._add(replica, leader=message.sender, peers=[])

    def _add(self, replica: Replica, *, leader: ReplicaId, peers: list[ReplicaId]) -> None:
        self.wake(replica.group)
        replica.is_resting = True
        self._resting[replica.group] = _Resting(replica, leader, peers)

    # --- waking up --------------------------------------------------------------------------

    def wake(self, group: RaftGroupId) -> None:
        """Let a group be ticked again."""
        resting = self._resting.pop(group, None)
        if resting is None:
            return
        # Any sign of life wakes: being awake costs some heartbeats, resting under a leader that is
        # gone costs an election.
        resting.replica.woken()
        for peer in resting.peers:
            pair = resting.leader, peer
            self._led[pair] -= 1
            if not self._led[pair]:
                del self._led[pair]

    def hear_vouch(self, message: Vouch) -> None:
        """Hear that a leader elsewhere is alive."""
        if message.sender in self._silence:
            self._silence[message.sender] = 0

    def tick(self) -> None:
        """Vouch for the groups that rest under this host, and wake those nobody vouches for."""
        self._ticks += 1
        if self._ticks % self._config.vouch_ticks == 0:
            for leader, peer in self._led:
                self._outbox.tell(Vouch(leader, peer))
        for leader in list(self._silence):
            # Counted in ticks, above `vouch_patience_ticks` as an election timeout would be: the
            # leader may be gone.
            self._silence[leader] += 1
            if self._silence[leader] > self._config.vouch_patience_ticks:
                del self._silence[leader]
                self.wake_led_by(leader)

    def wake_shared_with(self, node: NodeId) -> None:
        """Wake every group that rests together with a node that left or came back.

        If it left, nobody has to wait until its silence shows. If it came back, as a new process,
        it knows of no leader, and a leader that rests would not tell it.
        """
        for group, resting in list(self._resting.items()):
            if node_of(resting.leader) == node or any(
                node_of(one) == node for one in resting.peers
            ):
                self.wake(group)

    def wake_led_by(self, leader: ReplicaId) -> None:
        """Wake every group that rests under `leader`, which has fallen silent."""
        for group in [one for one, it in self._resting.items() if it.leader == leader]:
            self.wake(group)
