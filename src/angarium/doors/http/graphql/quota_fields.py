"""The fields of the schema that are about quotas and join tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.errors import InvalidArgument, NotFound
from angarium.ids import Micros

if TYPE_CHECKING:
    from angarium.api.administration import AdministrationBroker
    from angarium.api.quotas import CountedLimit, QuotaInfo


class LimitView(NamedTuple):
    """One limit, as the schema shows it: it has no maps."""

    kind: QuotaKind
    limit: int


class QuotaView(NamedTuple):
    """A quota, as the schema shows it."""

    subject_kind: QuotaSubject
    subject: str
    limits: list[LimitView]
    counts: tuple[CountedLimit, ...]


class QuotaFields(ABC):
    """Each field is the method of its name, and one call of the contract."""

    @property
    @abstractmethod
    def _access(self) -> AdministrationBroker: ...

    async def quotas(self) -> object:
        return [_view(one) for one in await self._access.list_quotas()]

    async def quota(self, subject_kind: str, subject: str) -> object:
        try:
            found = await self._access.describe_quota(QuotaSubject[subject_kind], subject)
        except NotFound:
            return None
        return _view(found)

    async def set_quota(
        self, subject_kind: str, subject: str, limits: list[dict[str, Any]], cleared: list[str]
    ) -> object:
        chosen = {QuotaKind[one["kind"]]: one["limit"] for one in limits}
        if len(chosen) < len(limits):
            raise InvalidArgument("a quota limits each thing once")
        named = [QuotaKind[one] for one in cleared]
        kind = QuotaSubject[subject_kind]
        return _view(await self._access.set_quota(kind, subject, chosen, cleared=named))

    async def delete_quota(self, subject_kind: str, subject: str) -> bool:
        await self._access.delete_quota(QuotaSubject[subject_kind], subject)
        return True

    # --- join tokens ----------------------------------------------------------------------------

    async def join_tokens(self) -> object:
        return await self._access.list_join_tokens()

    async def create_join_token(self, until: int | None = None) -> object:
        return await self._access.create_join_token(until=None if until is None else Micros(until))

    async def delete_join_token(self, id: int) -> bool:  # noqa: A002 - as the schema calls it
        await self._access.delete_join_token(id)
        return True


def _view(quota: QuotaInfo) -> QuotaView:
    limits = [LimitView(*one) for one in quota.limits.items()]
    return QuotaView(quota.subject_kind, quota.subject, limits, quota.counts)
