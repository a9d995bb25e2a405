"""What group 0 does with its committed entries: it keeps the catalog.

Every node has a replica of it, a few of them as voters, so that each can answer "which topics are
there, and where do they live" from its own memory. Whoever needs to know about changes is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import AngariumError, NotLeader, OutcomeUnknown
from angarium.machine.catalog import CatalogMachine, encode, knows
from angarium.raft.messages import EntryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from angarium.ids import Buffer, Index, Micros, Term
    from angarium.machine.catalog import CatalogCommand, CatalogOutcome
    from angarium.raft.messages import Entry
    from angarium.replica.listener import HostListener
    from angarium.replica.partition import LogEntries
    from angarium.replica.work import Work

    CatalogReply = Callable[[CatalogOutcome | AngariumError], None]


class Catalog:
    """The state of group 0 on one node."""

    is_occupied: Final = False
    is_concluded: Final = True

    def __init__(self, *, saved: Buffer, listener: HostListener) -> None:
        self.machine = CatalogMachine()
        if saved:
            self.machine.restore(saved)
        self._listener = listener
        self._term: Term | None = None
        self._entries: LogEntries | None = None
        self._waiting: dict[Index, tuple[Term, CatalogReply]] = {}

    def attach(self, entries: LogEntries) -> None:
        """Say where new entries go."""
        self._entries = entries

    def submit(self, command: CatalogCommand, *, now: Micros, reply: CatalogReply) -> None:
        """Propose a command; `reply` gets its outcome when it is applied."""
        if self._term is None or self._entries is None:
            reply(NotLeader())
            return
        try:
            index = self._entries.propose(encode(msgspec.structs.replace(command, time=now)))
        except AngariumError as refused:
            reply(refused)
            return
        self._waiting[index] = (self._term, reply)

    # --- what a replica does with it --------------------------------------------------------

    def lead(self, term: Term) -> None:
        """Begin to take commands."""
        self._term = term

    def follow(self) -> None:
        """Stop; nobody can be told what becomes of what is under way."""
        self._term = None
        waiting, self._waiting = self._waiting, {}
        for _, reply in waiting.values():
            reply(OutcomeUnknown("leadership was lost before the entry was known committed"))

    def understands(self, data: Buffer) -> bool:
        """Tell whether the catalog of this release has a meaning for an entry's data."""
        return knows(data)

    def apply(self, entry: Entry) -> None:
        """Take a committed entry."""
        if entry.kind is not EntryKind.NORMAL:
            return
        applied = self.machine.apply(entry.index, entry.term, entry.data)
        self._listener.catalog_changed(applied)
        waiting = self._waiting.pop(entry.index, None)
        if waiting is not None:
            term, reply = waiting
            # The same index under another term is another leader's command.
            ours = term == entry.term and applied.outcomes
            reply(applied.outcomes[0] if ours else NotLeader("another leader's entry came first"))

    def save(self) -> Generator[Work, None, bytes]:
        """Return the state as of now; it stands on no other files."""
        yield from ()
        return self.machine.snapshot()

    def saved(self, index: Index) -> None:
        """Hear that the state as of `index` is durable: nothing waits for it."""

    def restore(self, data: Buffer, index: Index) -> None:  # noqa: ARG002 - the port has it
        """Become what another replica saved."""
        self.machine.restore(data)
        self._listener.catalog_changed(None)


def empty_catalog() -> bytes:
    """Return the state of a catalog that nobody has written to."""
    return CatalogMachine().snapshot()
