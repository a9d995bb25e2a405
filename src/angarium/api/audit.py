"""Audit records: the form in which a cluster keeps who did what, for whoever reads the topic.

The value of a record of `angarium.audit` is one `AuditRecord` as JSON. Its hash is the SHA-256 of
exactly those bytes, so it can be checked without knowing this form; docs/reference/audit.md has the
whole rule.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

AUDIT_TOPIC: Final = "angarium.audit"
"""Where they are. It has one partition, nodes alone write to it, and `audit.read` lets one read."""

HASH_HEADER: Final = "sha256"
"""The header of a record that has the hash of its value, in hex: what was changed by mistake, or
by somebody who did not think of it, is found without any other record."""

NO_HASH: Final = "0" * 64
"""What the first record of a writer names in the place of one before it."""


class AuditEvent(StrEnum):
    """What a record is about."""

    ACTION = "action"
    """An administrative call: it was let through, or it failed after that."""
    DENIAL = "denial"
    """A call, or something that was open, that was not allowed."""
    ACCESS = "access"
    """Records were read or published; only with `[audit] record = "data"`."""
    LOGIN = "login"
    """Somebody could not prove who it is."""
    RECOVERY = "recovery"
    """An administrator was made by the node itself: the first one, or one who was lost."""
    NODE = "node"
    """A node came in, or was not let in."""
    CERTIFICATE = "certificate"
    """A node took new certificate files, or could not use them."""
    AUDIT = "audit"
    """About the records themselves: a writer begins or ends, records were dropped."""


class AuditOutcome(StrEnum):
    """How it went."""

    ALLOWED = "allowed"
    """Let through. If it did not succeed then, a record with `failed` follows."""
    DENIED = "denied"
    FAILED = "failed"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How far a writer had read the topic when it wrote: a promise about everything before."""

    offset: int
    """The newest record that it had read."""
    hash: str
    """Of that record."""
    digest: str
    """Over all records up to it: `digest(n) = SHA-256(digest(n - 1) + hash(n))`, from 32 zeros."""


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One audit record. Fields that say nothing are left out of the JSON; those of the chain never
    are, because no writer writes their defaults."""

    time: str
    """When, by the clock of the node: ISO 8601, UTC."""
    node: int
    """Which node decided, and wrote this."""
    writer: str = ""
    """One run of that node's process: a number of its own behind the node's."""
    number: int = -1
    """Counts the records of a writer, without a gap, from 0."""
    previous: str = ""
    """The hash of the record before it of the same writer; 64 zeros in the first one."""
    seen: Seen | None = None
    """None: the topic was empty, or the writer could not tell."""
    event: AuditEvent
    outcome: AuditOutcome
    who: str = ""
    """The principal. Empty: nobody, or a name that is no user's."""
    proof: str = ""
    """How it proved who it is, or tried to."""
    token: str = ""
    """The name of the token that was the proof."""
    address: str = ""
    """The other side's host."""
    door: str = ""
    """Which door: wire, grpc, http, geo; empty for what the node did by itself."""
    what: str = ""
    """The method of the contract, or what else was done."""
    action: str = ""
    """What was asked of the table of permissions."""
    kind: str = ""
    """What kind of thing `resource` is."""
    resource: str = ""
    rule: str = ""
    """Which grant decided, or why none did."""
    details: str = ""
    """What else the call said, or what went wrong; no secret."""
    count: int = 1
    """How many of the kind this record stands for."""
    since: str = ""
    """Of several: when the first one was. `time` is when the last one was."""


_decoder: Final = msgspec.json.Decoder(AuditRecord)
_encoder: Final = msgspec.json.Encoder()


def encoded(record: AuditRecord) -> bytes:
    """Return the value that is published."""
    return _encoder.encode(record)


def decoded(value: bytes) -> AuditRecord | None:
    """Return the record in a value; None if there is none."""
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError:
        return None
