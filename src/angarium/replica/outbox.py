"""What a host wants done, collected while it handles its inputs.

The host fills it; whoever drives the host (the node's event loop, or the simulator) empties it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.replica.damage import DamageBook, Fate
from angarium.replica.listener import HostListener
from angarium.replica.scrutiny import Refusals

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.errors import CorruptData
    from angarium.ids import RaftGroupId, ReplicaId
    from angarium.log.segments import SegmentDamage
    from angarium.raft.messages import Message
    from angarium.replica.peers import PeerMessage
    from angarium.replica.replica import Replica
    from angarium.replica.work import Work


class Outbox:
    """Messages to send now, and answers that wait for the next sync."""

    __slots__ = (
        "_syncs_begun",
        "_syncs_done",
        "_under_way",
        "awaits_catalog",
        "broken",
        "chores",
        "commit_news",
        "compares_numbers",
        "damage",
        "hurt",
        "is_news_awaited",
        "listener",
        "peer_messages",
        "raft_messages",
        "refusals",
        "touched",
        "waiting_for_sync",
        "woken",
    )

    def __init__(self, listener: HostListener | None = None) -> None:
        self.listener = HostListener() if listener is None else listener
        """Hears what happens in the replicas, as it happens."""
        self.awaits_catalog = False
        """True while no partition is served here: since this start the catalog has not said which
        replicas are void, and a majority of void ones would acknowledge what nobody keeps."""
        self.compares_numbers = True
        """Whether a replica stops where a leader numbers records otherwise than it would. False
        while entries may come that earlier releases have refused and passed over."""
        self.raft_messages: list[tuple[RaftGroupId, Message]] = []
        self.commit_news: dict[tuple[RaftGroupId, ReplicaId], Message] = {}
        """Appends without entries, by whom they are for: they only tell how far is committed, and
        the next append with entries tells the same. They may wait for it."""
        self.is_news_awaited = False
        """Whether some of them may wait for a moment only, and not until the next tick."""
        self.peer_messages: list[PeerMessage] = []
        self.refusals = Refusals(self.listener)
        """What came in and was not believed."""
        self.waiting_for_sync: list[tuple[Replica, tuple[Message, ...]]] = []
        self._under_way: list[tuple[Replica, tuple[Message, ...]]] = []
        self._syncs_begun = 0
        self._syncs_done = 0
        self.chores: list[Generator[Work, None, None]] = []
        """Work that blocks and that somebody waits for: to be done soon, each in its own time."""
        self.damage = DamageBook(self.listener)
        """What was found damaged, mended or lost in any of the groups."""
        self.broken: list[tuple[Replica, CorruptData]] = []
        """Replicas that met damage when a caller other than the host was at work with them."""
        self.hurt: set[RaftGroupId] = set()
        """Groups in whose segments damage was found. It is mended even while they rest."""
        self.touched: set[RaftGroupId] = set()
        """Groups to which something happened since housekeeping last looked at them."""
        self.woken: list[RaftGroupId] = []
        """Groups that rested and to which something happened."""

    def send(self, group: RaftGroupId, message: Message) -> None:
        """Send a Raft message to the replica it names."""
        self.raft_messages.append((group, message))

    def send_append(self, group: RaftGroupId, message: Message, *, is_awaited: bool) -> None:
        """Send an append; one without entries may wait, and is dropped if another one comes.

        It waits for a moment if it is awaited, and else until the next tick at the latest.
        """
        if not message.entries:
            self.commit_news[group, message.to] = message
            if is_awaited:
                self.is_news_awaited = True
            return
        if self.commit_news:
            self.commit_news.pop((group, message.to), None)
        self.raft_messages.append((group, message))

    def release_commit_news(self) -> None:
        """Send the appends without entries that have waited long enough."""
        self.is_news_awaited = False
        news, self.commit_news = self.commit_news, {}
        self.raft_messages += [(group, message) for (group, _), message in news.items()]

    def note_damage(self, group: RaftGroupId, damage: SegmentDamage) -> None:
        """Have damage to a partition's segments mended, and told."""
        self.hurt.add(group)
        what = f"records {damage.from_offset} to {damage.to_offset - 1}: {damage.reason}"
        self.damage.note(Fate.FOUND, group, what)

    def tell(self, message: PeerMessage) -> None:
        """Send a message outside of Raft."""
        self.peer_messages.append(message)

    def after_sync(self, replica: Replica, responses: tuple[Message, ...]) -> int:
        """Ask for a sync, and let `replica` deliver `responses` once it has happened.

        Returns the number of that sync.
        """
        self.waiting_for_sync.append((replica, responses))
        return self.next_sync

    @property
    def next_sync(self) -> int:
        """The number of the sync that covers whatever is handed to the WAL now."""
        return self._syncs_begun + 1

    def once_synced(self, sync: int, replica: Replica, responses: tuple[Message, ...]) -> bool:
        """Let `replica` deliver `responses` with those of `sync`; False if that is done already.

        For answers that promise nothing beyond what `sync` covers, so that they cost no other.
        """
        if sync <= self._syncs_done:
            return False
        # The sync may be under way already: then its answers are let out together with these.
        with_those = self._under_way if sync <= self._syncs_begun else self.waiting_for_sync
        with_those.append((replica, responses))
        return True

    def take_raft_messages(self) -> list[tuple[RaftGroupId, Message]]:
        """Empty the outbox of Raft messages."""
        taken, self.raft_messages = self.raft_messages, []
        return taken

    def take_peer_messages(self) -> list[PeerMessage]:
        """Empty the outbox of the other messages."""
        taken, self.peer_messages = self.peer_messages, []
        return taken

    def take_chores(self) -> list[Generator[Work, None, None]]:
        """Take the work that blocks."""
        taken, self.chores = self.chores, []
        return taken

    def take_waiting(self) -> list[tuple[Replica, tuple[Message, ...]]]:
        """Take the answers that the sync about to start will allow; more may join them."""
        self._under_way, self.waiting_for_sync = self.waiting_for_sync, []
        self._syncs_begun += 1
        return self._under_way

    def sync_done(self) -> None:
        """Hear that the sync under way is done."""
        self._syncs_done = self._syncs_begun
        self._under_way = []
