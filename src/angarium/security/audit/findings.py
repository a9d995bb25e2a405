"""What a check of audit records comes to."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from angarium.api.audit import Seen


class Trouble(StrEnum):
    """What is wrong with a record."""

    REMOVED = "removed"
    CHANGED = "changed"
    REORDERED = "reordered"
    REPEATED = "repeated"
    PUT_IN = "put in"
    UNREADABLE = "unreadable"
    """No audit record at all, in the place of one or beside them."""
    ALTERED = "altered"
    """Something among several records is not as it was; which of the above cannot be told."""
    CUT_OFF = "cut off"
    """The end of the topic is gone: an anchor saw more."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong."""

    trouble: Trouble
    sentence: str
    """For people."""
    offset: int
    """Where: the record itself, or the first offset that is concerned."""
    until_offset: int | None = None
    """The last one, where there are several."""
    writer: str = ""
    number: int | None = None
    """Which record of the writer, or the first of several."""
    until_number: int | None = None


class WriterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one writer."""

    writer: str
    records: int
    first_number: int
    last_number: int
    has_ended: bool
    """Whether it said that it ends. One that did not still runs, was killed, or its last records
    were removed before anybody had seen them."""
    lost: int = 0
    """How many records it says it had to drop."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    records: int
    first_offset: int | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    """What could not be checked, and what is worth knowing."""
    writers: tuple[WriterSummary, ...]
    unvouched: int
    """How many of the newest records no other record vouches for yet: to take those away would not
    show."""
    head: Seen | None
    """The newest record and the digest up to it: what to keep elsewhere."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings
