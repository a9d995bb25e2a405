"""Backups: what a cluster tells of itself for one, and takes back from one.

Records are read by plain fetches. Everything else that a backup needs and no other method tells is
here: positions of groups with all that makes them up, and users with the hashes of their secrets.
`angarium.backup` writes it down and reads it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from angarium.api.groups import GroupConfig
from angarium.ids import Buffer, Micros, Offset
from angarium.kinds import GroupKind

if TYPE_CHECKING:
    from angarium.api.topics import TopicConfig, TopicInfo


class RestoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of one partition to bring back, with the offsets and times that they had."""

    topic: str
    partition: int
    next_offset: Offset
    """Where the partition ends behind it; offsets between the last batch and it stay empty."""
    start_offset: Offset = Offset(0)
    """What lies below had been trimmed before the backup, and is again."""
    batches: tuple[Buffer, ...] = ()
    """As they were stored; the first begins where the partition ends now."""


class Restored(msgspec.Struct, frozen=True, array_like=True):
    """It is committed."""

    next_offset: Offset
    """Where the partition ends now."""


class KeptAttempt(msgspec.Struct, frozen=True, array_like=True):
    """A record that failed, and is to be tried again."""

    offset: Offset
    attempts: int
    not_before: Micros
    reason: str = ""
    delay: int | None = None
    """How long (µs) it waits at most after it is restored; None in backups of earlier releases."""


class KeptPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where a group stands in one partition, with all that makes it up."""

    group: str
    kind: GroupKind
    config: GroupConfig
    floor: Offset
    """Everything below is settled."""
    ranges: tuple[int, ...] = ()
    """Settled above it: first offset, past the last offset, and so on, ascending."""
    attempts: tuple[KeptAttempt, ...] = ()
    paused: bool = False


class KeptPositions(msgspec.Struct, frozen=True, kw_only=True):
    """The groups of one partition."""

    topic: str
    partition: int
    positions: tuple[KeptPosition, ...] = ()


class KeptVerifier(msgspec.Struct, frozen=True, array_like=True):
    """What SCRAM checks a password with."""

    mechanism: str
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"KeptVerifier({self.mechanism}, …)"


class KeptUser(msgspec.Struct, frozen=True, array_like=True):
    """A user, with the hash of its password."""

    name: str
    roles: tuple[str, ...] = ()
    scrypt: str = ""
    verifiers: tuple[KeptVerifier, ...] = ()
    is_locked: bool = False

    def __repr__(self) -> str:
        return f"KeptUser({self.name!r}, …)"


class KeptRole(msgspec.Struct, frozen=True, array_like=True):
    """A role that is not built in."""

    name: str
    about: str = ""


class KeptGranted(msgspec.Struct, frozen=True, array_like=True):
    """What a grant says."""

    actions: tuple[str, ...]
    kind: str
    name: str = ""
    is_prefix: bool = True
    is_deny: bool = False


class KeptGrant(msgspec.Struct, frozen=True, array_like=True):
    """A grant, and whose it is."""

    is_role: bool
    subject: str
    granted: KeptGranted


class KeptToken(msgspec.Struct, frozen=True, array_like=True):
    """A token; its secret only as a digest."""

    owner: str
    name: str
    digest: bytes
    until: Micros | None = None
    grants: tuple[KeptGranted, ...] | None = None

    def __repr__(self) -> str:
        return f"KeptToken({self.owner!r}, {self.name!r}, …)"


class KeptQuota(msgspec.Struct, frozen=True, array_like=True):
    """A quota."""

    kind: str
    subject: str
    limits: tuple[tuple[str, int], ...] = ()


class KeptAccounts(msgspec.Struct, frozen=True, kw_only=True):
    """Users, roles, grants, tokens and quotas. No secret is among it, only what checks one."""

    users: tuple[KeptUser, ...] = ()
    roles: tuple[KeptRole, ...] = ()
    grants: tuple[KeptGrant, ...] = ()
    tokens: tuple[KeptToken, ...] = ()
    quotas: tuple[KeptQuota, ...] = ()


class AccountsRestored(msgspec.Struct, frozen=True, kw_only=True):
    """What came of accounts that were to be restored."""

    made: int = 0
    kept: tuple[str, ...] = ()
    """What was there under the same name, and stays as it is: "user alice", "token bob/ci"."""


class BackupBroker(Protocol):
    """The part of the contract that backups need. Everything may be asked for twice."""

    async def read_positions(self, topic: str, partition: int) -> KeptPositions:
        """Return the groups of a partition, as its leader knows them."""

    async def read_accounts(self) -> KeptAccounts:
        """Return users, roles, grants, tokens and quotas, with hashes of secrets."""

    async def restore_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic, also one for dead letters, whose name is the cluster's own;
        `AlreadyExists` if there is another one of that name."""

    async def restore_records(self, request: RestoreRequest) -> Restored:
        """Bring batches back at their offsets; `OffsetOutOfRange` unless the partition ends where
        the first of them begins."""

    async def restore_positions(self, kept: KeptPositions) -> None:
        """Bring groups forward to where they stood; one that is further on stays there."""

    async def restore_accounts(self, accounts: KeptAccounts) -> AccountsRestored:
        """Make what is not there; what is there stays as it is, and gets the grants it lacks."""
