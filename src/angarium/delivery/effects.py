"""What comes out of delivery: what to send to whom, what to commit, and when to ask again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from angarium.ids import Micros

if TYPE_CHECKING:
    from angarium.machine.changes import Change


class Held(NamedTuple):
    """Records that a member says it holds from an earlier leader, or an earlier connection."""

    start: int
    end: int
    attempt: int = 1


class Delivery(NamedTuple):
    """Records that were lent to a member: send them."""

    member: str
    ranges: tuple[int, ...]
    """First offset, past the last offset, and so on, upward."""
    attempt: int
    """Which attempt it is, for all of them."""
    lease_micros: int


class Taken(NamedTuple):
    """Records that are not a member's any more; what it says about them will be refused."""

    member: str
    ranges: tuple[int, ...]


class Proposal(NamedTuple):
    """A change to commit. Its fate is to be told by `GroupDelivery.confirmed`."""

    number: int
    change: Change


class DeadLetterDue(NamedTuple):
    """A dead letter that is promised: store it with this sequence, then say `buried`.

    They come in the order of their sequences, and again from each new leader until they are known
    to be stored. A record that has been trimmed away meanwhile still needs its letter, however
    empty: the sequences after it could not be stored without.
    """

    offset: int
    sequence: int
    attempts: int
    reason: str
    first_at: int
    """When it first failed; 0 if nobody knows any more, as after a seek."""
    last_at: int


class Accepted(NamedTuple):
    """A settlement that is taken."""

    records: int
    """How many records it settles; those settled before do not count."""
    ticket: int = 0
    """What `Answer` will name when it is committed; 0 if there is nothing to wait for."""


class Answer(NamedTuple):
    """The fate of an accepted settlement."""

    ticket: int
    code: str = ""
    """Empty: it is committed. Otherwise why not; the records are on loan as before."""
    message: str = ""


class Waiting(NamedTuple):
    """What keeps a group from lending, though there are records and members."""

    what: str
    until: Micros
    """0: that does not depend on the time."""


class Effects(msgspec.Struct):
    """What is to be done after a step."""

    deliveries: list[Delivery] = []
    taken: list[Taken] = []
    proposals: list[Proposal] = []
    """In this order, in one entry."""
    dead_letters: list[DeadLetterDue] = []
    answers: list[Answer] = []
    behind: list[str] = []
    """Members to be told that records the group has not seen were trimmed away."""
    wake_at: Micros | None = None
    """When to step again if nothing happens before; None: no need."""
