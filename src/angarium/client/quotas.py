"""Quotas, as the contract has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api.quotas import QuotaInfo
from angarium.wire.operations import Operation, quotas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api.quotas import QuotaKind, QuotaSubject
    from angarium.client.reach import Reach


class QuotaAdministration(ABC):
    """What a client can do about quotas; implements `api.quotas.QuotaBroker`."""

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def set_quota(
        self,
        subject_kind: QuotaSubject,
        subject: str,
        limits: Mapping[QuotaKind, int],
        *,
        cleared: Sequence[QuotaKind] = (),
    ) -> QuotaInfo:
        """Limit what is in `limits`, and say nothing any more of what is `cleared`."""
        header = quotas.SetQuotaHeader(subject_kind, subject, dict(limits), tuple(cleared))
        return (await self._reach.calls.ask(Operation.SET_QUOTA, header)).unpack(QuotaInfo)

    async def delete_quota(self, subject_kind: QuotaSubject, subject: str) -> None:
        """Say nothing any more; `NotFound`."""
        header = quotas.QuotaHeader(subject_kind, subject)
        await self._reach.calls.ask(Operation.DELETE_QUOTA, header, may_repeat=False)

    async def describe_quota(self, subject_kind: QuotaSubject, subject: str) -> QuotaInfo:
        """Return a quota, and of a user or a prefix what counts and what is used."""
        header = quotas.QuotaHeader(subject_kind, subject)
        return (await self._reach.calls.ask(Operation.DESCRIBE_QUOTA, header)).unpack(QuotaInfo)

    async def list_quotas(self) -> tuple[QuotaInfo, ...]:
        """Return every quota."""
        frame = await self._reach.calls.ask(Operation.LIST_QUOTAS)
        return frame.unpack(quotas.QuotasAnswer).quotas
