"""Users, grants, quotas and the like in memory: the service's calls on a catalog without Raft."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tests.unit.doors.grpc.memory_operating import MemoryOperating
from tests.unit.service.access.asked_service import secured

from angarium.api.access import ADMIN, ANONYMOUS, Caller, Principal, Proof
from angarium.security.permissions import Permissions, Rows
from angarium.service.access.user_calls import UserCalls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api.access import Decision, IssuedJoinToken, JoinTokenInfo, ResourceKind
    from angarium.api.quotas import QuotaInfo, QuotaKind, QuotaSubject
    from angarium.ids import Micros
    from angarium.service.own_node import OwnNode


class MemoryAccess(UserCalls, MemoryOperating):
    """Implements `api.administration.AdministrationBroker`; everybody may do everything."""

    def __init__(self) -> None:
        _, service, access = secured(ANONYMOUS, is_required=False)
        self.catalog = service.node.catalog
        self._quotas = access.quota_calls
        self._join_tokens = access.join_tokens
        UserCalls.__init__(self, cast("OwnNode", service.node), access.refresh)
        MemoryOperating.__init__(self)

    async def whoami(self) -> Caller:
        return Caller(principal=ANONYMOUS, roles=(ADMIN,))

    async def can(self, user: str, action: str, *, kind: ResourceKind, name: str = "") -> Decision:
        catalog = self.catalog
        rows = Rows(catalog.access_version, catalog.users(), catalog.grants(), catalog.tokens())
        asked = Principal(name=user, proof=Proof.PASSWORD)
        return Permissions(rows).decide(asked, action, kind, name)

    async def set_quota(
        self,
        subject_kind: QuotaSubject,
        subject: str,
        limits: Mapping[QuotaKind, int],
        *,
        cleared: Sequence[QuotaKind] = (),
    ) -> QuotaInfo:
        return await self._quotas.set_quota(subject_kind, subject, limits, cleared=cleared)

    async def delete_quota(self, subject_kind: QuotaSubject, subject: str) -> None:
        await self._quotas.delete_quota(subject_kind, subject)

    async def describe_quota(self, subject_kind: QuotaSubject, subject: str) -> QuotaInfo:
        return await self._quotas.describe_quota(subject_kind, subject)

    async def list_quotas(self) -> tuple[QuotaInfo, ...]:
        return await self._quotas.list_quotas()

    async def create_join_token(self, *, until: Micros | None = None) -> IssuedJoinToken:
        return await self._join_tokens.create_join_token(until=until)

    async def delete_join_token(self, token: int) -> None:
        await self._join_tokens.delete_join_token(token)

    async def list_join_tokens(self) -> tuple[JoinTokenInfo, ...]:
        return await self._join_tokens.list_join_tokens()
