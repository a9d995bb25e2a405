"""Users, roles, grants, tokens and quotas: as a backup has them, and back into the catalog.

The catalog keeps no secrets, so a backup has none: what it holds checks a password or a token, and
nobody can come in by it. Rows here and there have the same columns, but for the catalog's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from angarium.api.backups import (
    AccountsRestored,
    KeptAccounts,
    KeptGrant,
    KeptGranted,
    KeptQuota,
    KeptRole,
    KeptToken,
    KeptUser,
)
from angarium.machine.catalog import (
    GrantMade,
    GrantPut,
    QuotaPut,
    RolePut,
    TokenPut,
    UserPut,
)
from angarium.machine.catalog.access_values import Granted, VerifierRow
from angarium.machine.outcomes import Done
from angarium.node.release import HELD_ROLES_LEVEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.node.catalog_view import CatalogView

T = TypeVar("T")


def accounts_of(catalog: CatalogView) -> KeptAccounts:
    """Return what the catalog has, in an order that only a change changes."""
    return KeptAccounts(
        # The columns of a user but the last, which says when this cluster made it.
        users=tuple(
            _same(one, KeptUser) for one in sorted(catalog.users(), key=lambda one: one.name)
        ),
        roles=tuple(
            _same(one, KeptRole) for one in sorted(catalog.roles(), key=lambda one: one.name)
        ),
        grants=tuple(
            KeptGrant(one.is_role, one.subject, _same(one.granted, KeptGranted))
            for one in sorted(catalog.grants(), key=lambda one: one.id)
        ),
        tokens=tuple(
            KeptToken(
                one.owner,
                one.name,
                one.digest,
                one.until,
                _narrowed(one.grants, KeptGranted),
            )
            for one in sorted(catalog.tokens(), key=lambda one: (one.owner, one.name))
        ),
        quotas=tuple(
            _same(one, KeptQuota)
            for one in sorted(catalog.quotas(), key=lambda one: (one.kind, one.subject))
        ),
    )


async def restored_accounts(catalog: CatalogView, accounts: KeptAccounts) -> AccountsRestored:
    """Make what is not there. May be repeated after it was interrupted anywhere."""
    made = 0
    kept: list[str] = []
    users = {one.name for one in catalog.users()}
    roles = {one.name for one in catalog.roles()}
    tokens = {(one.owner, one.name) for one in catalog.tokens()}
    quotas = {(one.kind, one.subject) for one in catalog.quotas()}
    for role in accounts.roles:
        if role.name in roles:
            kept.append(f"role {role.name}")
            continue
        is_unheld = catalog.level >= HELD_ROLES_LEVEL
        await catalog.submit(
            RolePut(name=role.name, is_new=True, about=role.about, is_unheld=is_unheld)
        )
        made += 1
    for user in accounts.users:
        if user.name in users:
            kept.append(f"user {user.name}")
            continue
        command = UserPut(
            name=user.name,
            is_new=True,
            roles=user.roles,
            scrypt=user.scrypt,
            verifiers=tuple(_same(one, VerifierRow) for one in user.verifiers),
            is_locked=user.is_locked,
        )
        await catalog.submit(command)
        made += 1
    there = {(one.is_role, one.subject, one.granted) for one in catalog.grants()}
    # What is denied first: nobody has more for a moment than in the backup.
    denials_first = sorted(accounts.grants, key=lambda one: not one.granted.is_deny)
    for grant in denials_first:
        granted = _same(grant.granted, Granted)
        if (grant.is_role, grant.subject, granted) in there:
            continue
        outcome = await catalog.submit(
            GrantPut(is_role=grant.is_role, subject=grant.subject, granted=granted)
        )
        made += isinstance(outcome, GrantMade) and not outcome.repeated
    for token in accounts.tokens:
        if (token.owner, token.name) in tokens:
            kept.append(f"token {token.owner}/{token.name}")
            continue
        await catalog.submit(
            TokenPut(
                owner=token.owner,
                name=token.name,
                digest=token.digest,
                until=token.until,
                grants=_narrowed(token.grants, Granted),
            )
        )
        made += 1
    for quota in accounts.quotas:
        if (quota.kind, quota.subject) in quotas:
            kept.append(f"quota {quota.kind} {quota.subject}".rstrip())
            continue
        done = await catalog.submit(
            QuotaPut(kind=quota.kind, subject=quota.subject, limits=quota.limits)
        )
        made += isinstance(done, Done) and done.changed
    return AccountsRestored(made=made, kept=tuple(kept))


def _narrowed(grants: Sequence[msgspec.Struct] | None, kind: type[T]) -> tuple[T, ...] | None:
    return None if grants is None else tuple(_same(one, kind) for one in grants)


def _same(row: msgspec.Struct, kind: type[T]) -> T:
    """Return the same columns as a row of another kind; columns beyond its own are left out."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=kind)
