"""The fields of the schema that are about users, roles, grants and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from angarium.api.access import Effect, Grant, Match, ResourceKind, SubjectKind
from angarium.errors import NotFound
from angarium.ids import Micros
from angarium.wire.errors import UnsupportedOperation

if TYPE_CHECKING:
    from angarium.api.administration import AdministrationBroker


class AccessFields:
    """Each field is the method of its name, and one call of the contract."""

    def __init__(self, access: AdministrationBroker | None) -> None:
        self._behind = access

    @property
    def _access(self) -> AdministrationBroker:
        if self._behind is None:
            raise UnsupportedOperation("users, quotas and what operators do are not served here")
        return self._behind

    async def whoami(self) -> object:
        return await self._access.whoami()

    async def can(self, user: str, action: str, kind: str, name: str) -> object:
        return await self._access.can(user, action, kind=ResourceKind[kind], name=name)

    # --- users ----------------------------------------------------------------------------------

    async def users(self) -> object:
        return await self._access.list_users()

    async def user(self, name: str) -> object:
        try:
            return await self._access.describe_user(name)
        except NotFound:
            return None

    async def create_user(
        self, name: str, password: str | None = None, roles: list[str] | None = None
    ) -> object:
        return await self._access.create_user(name, password=password, roles=roles or ())

    async def alter_user(
        self,
        name: str,
        password: str | None = None,
        roles: list[str] | None = None,
        is_locked: bool | None = None,
    ) -> object:
        return await self._access.alter_user(
            name, password=password, roles=roles, is_locked=is_locked
        )

    async def delete_user(self, name: str) -> bool:
        await self._access.delete_user(name)
        return True

    # --- roles and grants -----------------------------------------------------------------------

    async def roles(self) -> object:
        return await self._access.list_roles()

    async def create_role(self, name: str, about: str) -> object:
        return await self._access.create_role(name, about=about)

    async def delete_role(self, name: str, *, force: bool) -> bool:
        await self._access.delete_role(name, force=force)
        return True

    async def grants(self) -> object:
        return await self._access.list_grants()

    async def create_grant(self, subject_kind: str, subject: str, grant: dict[str, Any]) -> object:
        return await self._access.create_grant(SubjectKind[subject_kind], subject, _meant(grant))

    async def delete_grant(self, id: int) -> bool:  # noqa: A002 - as the schema calls it
        await self._access.delete_grant(id)
        return True

    # --- tokens ---------------------------------------------------------------------------------

    async def tokens(self, owner: str | None = None) -> object:
        return await self._access.list_tokens(owner)

    async def create_token(
        self,
        owner: str,
        name: str,
        until: int | None = None,
        grants: list[dict[str, Any]] | None = None,
    ) -> object:
        return await self._access.create_token(
            owner,
            name,
            until=None if until is None else Micros(until),
            grants=None if grants is None else [_meant(one) for one in grants],
        )

    async def delete_token(self, owner: str, name: str) -> bool:
        await self._access.delete_token(owner, name)
        return True


def _meant(given: dict[str, Any]) -> Grant:
    """Return a grant that was given as an input object."""
    return Grant(
        actions=tuple(given["actions"]),
        kind=ResourceKind[given["kind"]],
        name=given["name"],
        match=Match[given["match"]],
        effect=Effect[given["effect"]],
    )
