"""Users, roles, grants, tokens, quotas. What they allow is decided elsewhere; here they are kept.

Of secrets only what checks them is here: hashes and verifiers of passwords, digests of tokens.
Every change has an index, which is the version of the whole policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import msgspec

from angarium.errors import AlreadyExists, InvalidArgument, NotFound, RoleHeld
from angarium.ids import Index
from angarium.machine.catalog import access_commands as commands
from angarium.machine.catalog.access_values import (
    GrantMade,
    GrantRow,
    RoleRow,
    TokenRow,
    UserRow,
)
from angarium.machine.catalog.quotas import QuotaTable
from angarium.machine.outcomes import Done, Refused, limited, oversized, refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.machine.catalog.access_values import Granted

USERS_MAX: Final = 10_000
ROLES_MAX: Final = 1_000
GRANTS_MAX: Final = 20_000
TOKENS_MAX: Final = 20_000
"""Rows of each kind. At the limit a new one is refused."""

TOKENS_OF_USER_MAX: Final = 100
"""Tokens of one user. At the limit a new one is refused: delete one first."""

NAME_CHARACTERS_MAX: Final = 128
"""Of a user, a role, a token. A longer name is refused."""

RESOURCE_CHARACTERS_MAX: Final = 256
ABOUT_CHARACTERS_MAX: Final = 256
SECRET_BYTES_MAX: Final = 1_024
"""Of one hash or verifier, all its parts together."""

ROLES_OF_USER_MAX: Final = 32
ACTIONS_MAX: Final = 64
GRANTS_OF_TOKEN_MAX: Final = 64
VERIFIERS_MAX: Final = 8

HOLDERS_NAMED_MAX: Final = 10
"""Users that a refusal to delete a role names; of further ones it says how many there are."""

DIGEST_BYTES: Final = 32
"""Of a token: SHA-256."""

DELETE: Final = 0x7F
"""The last of the control characters of ASCII, which no name has."""

AccessOutcome: TypeAlias = GrantMade | Done | Refused


class AccessTables:
    """Who may come in, and the grants they were given."""

    __slots__ = (
        "grants",
        "next_grant",
        "quotas",
        "roles",
        "tokens",
        "tokens_by_digest",
        "users",
        "version",
    )

    def __init__(self) -> None:
        self.users: dict[str, UserRow] = {}
        self.roles: dict[str, RoleRow] = {}
        self.grants: dict[int, GrantRow] = {}
        self.tokens: dict[tuple[str, str], TokenRow] = {}
        """By owner and name."""
        self.tokens_by_digest: dict[bytes, tuple[str, str]] = {}
        self.quotas = QuotaTable()
        self.next_grant = 1
        self.version = Index(0)
        """The index of the last entry that changed anything here."""

    def perform(self, index: Index, command: commands.AccessCommand) -> AccessOutcome:
        """Carry out a command, and note that the policy has changed if it has."""
        outcome = self._outcome(command)
        is_idle = isinstance(outcome, Done) and not outcome.changed
        is_repeated = isinstance(outcome, GrantMade) and outcome.repeated
        if not (isinstance(outcome, Refused) or is_idle or is_repeated):
            self.version = index
        return outcome

    def _outcome(self, command: commands.AccessCommand) -> AccessOutcome:
        outcome: AccessOutcome
        match command:
            case commands.UserPut():
                outcome = self._put_user(command)
            case commands.UserDelete():
                outcome = self._delete_user(command.name)
            case commands.RolePut():
                outcome = self._put_role(command)
            case commands.RoleDelete():
                outcome = self._delete_role(command)
            case commands.GrantPut():
                outcome = self._put_grant(command)
            case commands.GrantDelete():
                outcome = self._delete_grant(command.grant)
            case commands.TokenPut():
                outcome = self._put_token(command)
            case commands.TokenDelete():
                outcome = self._delete_token((command.owner, command.name))
            case commands.QuotaPut():
                outcome = self.quotas.put(command, self.users)
            case commands.QuotaDelete():
                outcome = self.quotas.delete(command)
            case _:
                assert_never(command)
        return outcome

    # --- users ----------------------------------------------------------------------------------

    def _put_user(self, command: commands.UserPut) -> Done | Refused:
        known = self.users.get(command.name)
        verdict = _judged_user(command)
        if verdict is not None:
            return verdict
        if command.is_new and known is not None:
            return refused(AlreadyExists, f"there is a user {command.name!r} already")
        if known is None:
            if not command.is_new:
                return refused(NotFound, f"there is no user {command.name!r}")
            if len(self.users) >= USERS_MAX:
                return limited("USERS_MAX", f"the cluster has {USERS_MAX} users")
            known = UserRow(name=command.name, created_at=command.time)
        for role in command.roles_needed:
            if role not in self.roles:
                return refused(NotFound, f"there is no role {role!r}")
        changes = {
            field: value
            for field in ("roles", "scrypt", "verifiers", "is_locked")
            if (value := getattr(command, field)) is not None
        }
        row = msgspec.structs.replace(known, **changes)
        is_same = row == self.users.get(row.name)
        self.users[row.name] = row
        return Done(changed=not is_same)

    def _delete_user(self, name: str) -> Done | Refused:
        if self.users.pop(name, None) is None:
            return refused(NotFound, f"there is no user {name!r}")
        self._forget_grants(name, is_role=False)
        self.quotas.forget("user", name)
        for key in [one for one in self.tokens if one[0] == name]:
            self._forget_token(key)
        return Done()

    # --- roles and grants -----------------------------------------------------------------------

    def _put_role(self, command: commands.RolePut) -> Done | Refused:
        verdict = _judged_name(command.name, "a role's name")
        if verdict is not None:
            return verdict
        if len(command.about) > ABOUT_CHARACTERS_MAX:
            return oversized("ABOUT_CHARACTERS_MAX", "the sentence about a role is too long")
        known = self.roles.get(command.name)
        if command.is_new and known is not None:
            return refused(AlreadyExists, f"there is a role {command.name!r} already")
        if known is None and not command.is_new:
            return refused(NotFound, f"there is no role {command.name!r}")
        if known is None and len(self.roles) >= ROLES_MAX:
            return limited("ROLES_MAX", f"the cluster has {ROLES_MAX} roles")
        if known is None and command.is_unheld:
            self._take_role(command.name)
            self.quotas.forget("role", command.name)  # set while the former one was being deleted
        row = RoleRow(name=command.name, about=command.about)
        self.roles[row.name] = row
        return Done(changed=row != known)

    def _delete_role(self, command: commands.RoleDelete) -> Done | Refused:
        name = command.name
        if name not in self.roles:
            return refused(NotFound, f"there is no role {name!r}")
        if command.holders is commands.Holders.PROTECT and (held := self._held_by(name)):
            return refused(RoleHeld, _held(name, held))
        if command.holders is commands.Holders.LOSE:
            self._take_role(name)
        del self.roles[name]
        self._forget_grants(name, is_role=True)
        self.quotas.forget("role", name)
        return Done()

    def _held_by(self, role: str) -> list[str]:
        """Return the users that hold a role, by name."""
        return sorted(user.name for user in self.users.values() if role in user.roles)

    def _take_role(self, role: str) -> None:
        """Take a role from every user that holds it."""
        for name in self._held_by(role):
            user = self.users[name]
            left = tuple(one for one in user.roles if one != role)
            self.users[name] = msgspec.structs.replace(user, roles=left)

    def _put_grant(self, command: commands.GrantPut) -> GrantMade | Refused:
        verdict = _judged_grants((command.granted,))
        if verdict is not None:
            return verdict
        if command.subject not in (self.roles if command.is_role else self.users):
            kind = "role" if command.is_role else "user"
            return refused(NotFound, f"there is no {kind} {command.subject!r}")
        for row in self.grants.values():
            if (row.is_role, row.subject, row.granted) == (
                command.is_role,
                command.subject,
                command.granted,
            ):
                return GrantMade(row.id, repeated=True)
        if len(self.grants) >= GRANTS_MAX:
            return limited("GRANTS_MAX", f"the cluster has {GRANTS_MAX} grants")
        number = self.next_grant
        self.next_grant += 1
        self.grants[number] = GrantRow(
            id=number, is_role=command.is_role, subject=command.subject, granted=command.granted
        )
        return GrantMade(number)

    def _delete_grant(self, number: int) -> Done | Refused:
        if self.grants.pop(number, None) is None:
            return refused(NotFound, f"there is no grant {number}")
        return Done()

    def _forget_grants(self, subject: str, *, is_role: bool) -> None:
        for row in list(self.grants.values()):
            if row.subject == subject and row.is_role is is_role:
                del self.grants[row.id]

    # --- tokens ---------------------------------------------------------------------------------

    def _put_token(self, command: commands.TokenPut) -> Done | Refused:
        key = (command.owner, command.name)
        verdict = (
            _judged_name(command.name, "a token's name")
            or _judged_grants(command.grants or ())
            or self._judged_token(key, command.digest)
        )
        if verdict is not None:
            return verdict
        if key in self.tokens:
            self._forget_token(key)
        self.add_token(
            TokenRow(
                owner=command.owner,
                name=command.name,
                digest=command.digest,
                created_at=command.time,
                until=command.until,
                grants=command.grants,
            )
        )
        return Done()

    def _judged_token(self, key: tuple[str, str], digest: bytes) -> Refused | None:
        owner = key[0]
        verdict: Refused | None = None
        if len(digest) != DIGEST_BYTES:
            verdict = refused(InvalidArgument, f"a token's digest has {DIGEST_BYTES} bytes")
        elif owner not in self.users:
            verdict = refused(NotFound, f"there is no user {owner!r}")
        elif self.tokens_by_digest.get(digest, key) != key:
            verdict = refused(AlreadyExists, "another token has the same digest")
        elif key not in self.tokens:
            if len(self.tokens) >= TOKENS_MAX:
                verdict = limited("TOKENS_MAX", f"the cluster has {TOKENS_MAX} tokens")
            elif sum(one == owner for one, _ in self.tokens) >= TOKENS_OF_USER_MAX:
                said = f"{owner!r} has {TOKENS_OF_USER_MAX} tokens; delete one first"
                verdict = limited("TOKENS_OF_USER_MAX", said)
        return verdict

    def add_token(self, row: TokenRow) -> None:
        """Keep a token that was judged before."""
        self.tokens[row.owner, row.name] = row
        self.tokens_by_digest[row.digest] = (row.owner, row.name)

    def _delete_token(self, key: tuple[str, str]) -> Done | Refused:
        if key not in self.tokens:
            return refused(NotFound, f"{key[0]!r} has no token {key[1]!r}")
        self._forget_token(key)
        return Done()

    def _forget_token(self, key: tuple[str, str]) -> None:
        del self.tokens_by_digest[self.tokens.pop(key).digest]


def _held(role: str, holders: list[str]) -> str:
    """Return why a role is not deleted: users hold it, of which some are named."""
    named = ", ".join(map(repr, holders[:HOLDERS_NAMED_MAX]))
    more = len(holders) - HOLDERS_NAMED_MAX
    others = f" and {more} more" if more > 0 else ""
    return (
        f"the role {role!r} is held by {named}{others}; take it from them first, or delete it with "
        f"force, which does so: `angarium role delete {role} --force`"
    )


def _judged_user(command: commands.UserPut) -> Refused | None:
    verdict = _judged_name(command.name, "a user's name")
    if verdict is not None:
        return verdict
    if len(command.roles or ()) > ROLES_OF_USER_MAX:
        return oversized("ROLES_OF_USER_MAX", f"{command.name!r} cannot have so many roles")
    for role in command.roles or ():
        verdict = _judged_name(role, "a role's name")
        if verdict is not None:
            return verdict
    verifiers = command.verifiers or ()
    secrets = [len(command.scrypt or "")]
    secrets += [
        len(one.mechanism) + len(one.salt) + len(one.stored_key) + len(one.server_key)
        for one in verifiers
    ]
    if len(verifiers) > VERIFIERS_MAX or max(secrets) > SECRET_BYTES_MAX:
        return oversized("SECRET_BYTES_MAX", "a password's hash or verifiers are too large")
    return None


def _judged_grants(grants: Iterable[Granted]) -> Refused | None:
    grants = tuple(grants)
    if len(grants) > GRANTS_OF_TOKEN_MAX:
        return oversized("GRANTS_OF_TOKEN_MAX", f"{len(grants)} grants at once")
    for one in grants:
        if not 0 < len(one.actions) <= ACTIONS_MAX:
            return oversized("ACTIONS_MAX", f"a grant has 1 to {ACTIONS_MAX} actions")
        if any(not 0 < len(each) <= NAME_CHARACTERS_MAX for each in (*one.actions, one.kind)):
            return refused(InvalidArgument, "an action or a kind is too long or empty")
        if len(one.name) > RESOURCE_CHARACTERS_MAX:
            return oversized("RESOURCE_CHARACTERS_MAX", "a grant names too long a name")
    return None


def _judged_name(name: str, what: str) -> Refused | None:
    # By code points alone: what is printable differs from one release of Python to the next, and
    # every replica has to judge alike.
    is_plain = all(ord(one) >= ord(" ") and ord(one) != DELETE for one in name)
    if not 0 < len(name) <= NAME_CHARACTERS_MAX or not is_plain or " " in (name[0], name[-1]):
        said = f"{what} has 1 to {NAME_CHARACTERS_MAX} characters, and no blank at its ends"
        return refused(InvalidArgument, said)
    return None
