"""What a replica does about a damaged log: RECOVERING.

While it repairs, a replica neither votes nor campaigns nor acknowledges: it may have promised
something about entries it can no longer read. If its hard state is whole and every damaged entry
lies at or below the commit index it knew, those entries are committed, so any peer's copy of them
is the copy: it fetches them and goes on as itself. Otherwise it cannot know what it promised, and
must come back as somebody else (`IdentityLost`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from angarium.errors import CorruptData
from angarium.ids import Index, Term
from angarium.replica.peers import EntriesReply, EntriesRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.ids import RaftGroupId, ReplicaId
    from angarium.log.wal import Damage
    from angarium.raft.messages import Entry


ASKED_MAX: Final = 20
"""Requests to each peer without a new entry. After them a peer that does not answer is given up,
where another one says that its log no longer has the entry."""


class IdentityLost(CorruptData):
    """Damage that nobody else's copy can be trusted to undo: rejoin under a new incarnation."""

    code = "IDENTITY_LOST"


def entries_to_refetch(damage: Damage | None, *, known_commit: Index) -> tuple[Index, Index] | None:
    """Return the first and last index to fetch from peers, or None if nothing is missing.

    Raises `IdentityLost` when the replica may have acknowledged something it lost for good.
    """
    if damage is None:
        return None
    # A vote that is lost cannot be asked back from anybody: peers know whom they elected, not who
    # voted. Voting again in the same term could elect a second leader (Raft §5.2).
    if not damage.hard_state_intact:
        raise IdentityLost("the damaged part of the log may have held a vote")
    first, last = damage.first_damaged_index, damage.last_damaged_index
    # Above the commit index peers may have other entries than the lost ones. This replica
    # acknowledged them, and a leader may have counted that: going on without them would uncommit
    # them.
    if first is None or last is None or last > known_commit:
        raise IdentityLost(
            f"the log is damaged from index {first} to {last or 'an unknown end'}, and only "
            f"{known_commit} is known to be committed"
        )
    return first, last


class Repair:
    """One group's missing entries, being fetched. Stands where the replica will stand."""

    __slots__ = (
        "_asked",
        "_collected",
        "_gone_at",
        "_group",
        "_holes",
        "_id",
        "_next",
        "_peers",
        "_term_max",
        "_turn",
    )

    def __init__(
        self,
        *,
        group: RaftGroupId,
        replica: ReplicaId,
        holes: Sequence[tuple[Index, Index]],
        term_max: Term,
        peers: tuple[ReplicaId, ...],
    ) -> None:
        self._group = group
        self._id = replica
        self._holes = deque(holes)
        """What is still missing, as first and last entries, upward. What is whole in between is not
        asked for: a peer may lack just that."""
        self._next = holes[0][0] if holes else Index(0)
        self._term_max = term_max
        self._peers = [peer for peer in peers if peer != replica]
        self._turn = 0
        self._asked = 0
        """Requests since entries last came."""
        self._gone_at: set[ReplicaId] = set()
        """Peers whose log begins behind the next missing entry."""
        self._collected: list[Entry] = []

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What has been fetched so far, in order."""
        return tuple(self._collected)

    @property
    def is_complete(self) -> bool:
        """True once every missing entry is here."""
        return not self._holes

    def heard_from(self, peer: ReplicaId) -> None:
        """Note a peer that is alive, and therefore worth asking."""
        if peer != self._id and peer not in self._peers:
            self._peers.append(peer)

    def request(self) -> EntriesRequest | None:
        """Return the next question, put to each peer in turn; None while no peer is known."""
        if not self._peers or self.is_complete:
            return None
        peer = self._peers[self._turn % len(self._peers)]
        self._turn += 1
        self._asked += 1
        return EntriesRequest(self._group, self._id, peer, self._next, self._holes[0][1])

    @property
    def is_hopeless(self) -> bool:
        """True once no peer can be expected to have the next missing entry.

        One peer without it is not enough: another one may be under repair as well, for an entry
        that only this replica has. Were both given up, the third one would be no majority.
        """
        is_in_vain = self._asked > ASKED_MAX * len(self._peers)
        return bool(self._gone_at) and (is_in_vain or self._gone_at.issuperset(self._peers))

    def receive(self, reply: EntriesReply) -> bool:
        """Take entries that continue what is here; return whether there were any."""
        if reply.sender not in self._peers or self.is_complete:
            return False  # not asked, or asked more than once
        if reply.compacted and reply.low == self._next:
            self._gone_at.add(reply.sender)
            return False
        before, has_taken = self._next, False
        for entry in reply.entries:
            term = self._collected[-1].term if self._collected else Term(1)
            if not term <= entry.term <= self._term_max:
                break  # terms only grow along a log, up to the newest that this replica knew
            if not self.is_complete and entry.index == self._next:
                self._collected.append(entry)
                self._advance()
                has_taken = True
        if has_taken:
            assert self._next > before or self.is_complete
            self._asked = 0
            self._gone_at.clear()
        return has_taken

    def _advance(self) -> None:
        if self._next < self._holes[0][1]:
            self._next = Index(self._next + 1)
            return
        self._holes.popleft()
        if self._holes:
            self._next = self._holes[0][0]


def in_stretches(entries: Sequence[Entry], *, above: Index) -> Iterator[list[Entry]]:
    """Yield the entries above an index, divided where they do not follow one another."""
    stretch: list[Entry] = []
    for entry in entries:
        if entry.index <= above:
            continue
        if stretch and entry.index != stretch[-1].index + 1:
            yield stretch
            stretch = []
        stretch.append(entry)
    if stretch:
        yield stretch
