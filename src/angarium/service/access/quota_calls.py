"""Quotas behind the contract: checked here, kept in the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api.access import Principal, Proof
from angarium.api.quotas import (
    CREATED,
    OF_PRINCIPALS,
    UNLIMITED,
    USED,
    CountedLimit,
    QuotaInfo,
    QuotaKind,
    QuotaSubject,
)
from angarium.errors import InvalidArgument, NotFound, PreconditionFailed
from angarium.machine.catalog import QuotaDelete, QuotaPut
from angarium.node.release import CREATION_QUOTA_LEVEL, QUOTA_LEVEL
from angarium.security.quotas import limits_in
from angarium.security.roles import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from angarium.machine.catalog.access_values import QuotaRow
    from angarium.service.access.access import Access


class QuotaCalls:
    """Implements `api.quotas.QuotaBroker` on a node."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._node = access.service.node

    async def set_quota(
        self,
        subject_kind: QuotaSubject,
        subject: str,
        limits: Mapping[QuotaKind, int],
        *,
        cleared: Sequence[QuotaKind] = (),
    ) -> QuotaInfo:
        """Limit what is in `limits`, and say nothing any more of what is `cleared`."""
        self._check_level()
        subject = self._checked(subject_kind, subject)
        _check_kinds(subject_kind, (*limits, *cleared))
        if not {*limits}.isdisjoint(CREATED):
            self._check_level(CREATION_QUOTA_LEVEL, "quotas on topics and partitions")
        if not limits and not cleared:
            raise InvalidArgument("a quota limits at least one thing")
        for kind, amount in limits.items():
            if amount != UNLIMITED and amount < 1:
                raise InvalidArgument(f"the limit of {kind} is above 0, not {amount}")
        await self._node.catalog.submit(
            QuotaPut(
                kind=subject_kind.value,
                subject=subject,
                limits=tuple((kind.value, amount) for kind, amount in limits.items()),
                cleared=tuple(kind.value for kind in cleared),
            )
        )
        self._access.refresh()
        row = self._find(subject_kind, subject)
        return (
            _info(row) if row else QuotaInfo(subject_kind=subject_kind, subject=subject, limits={})
        )

    async def delete_quota(self, subject_kind: QuotaSubject, subject: str) -> None:
        """Say nothing any more."""
        self._check_level()
        subject = subject.removesuffix("*") if subject_kind is QuotaSubject.TOPIC else subject
        await self._node.catalog.submit(QuotaDelete(kind=subject_kind.value, subject=subject))
        self._access.refresh()

    async def describe_quota(self, subject_kind: QuotaSubject, subject: str) -> QuotaInfo:
        """Return a quota, and of a user or a prefix what counts and what is used."""
        subject = self._checked(subject_kind, subject)
        row = self._find(subject_kind, subject)
        if row is None:
            await self._node.catalog.catch_up()
            row = self._find(subject_kind, subject)
        if subject_kind is QuotaSubject.USER:
            if self._node.catalog.user(subject) is None:
                raise NotFound(f"there is no user {subject!r}")
        elif row is None:
            raise NotFound(f"there is no quota of {subject_kind} {subject!r}")
        limits = {} if row is None else limits_in(row)
        counts: tuple[CountedLimit, ...] = ()
        if subject_kind is QuotaSubject.USER:
            counts = self._counts_of(subject)
        elif subject_kind is QuotaSubject.TOPIC:
            counts = self._stored_under(subject, limits)
        return QuotaInfo(subject_kind=subject_kind, subject=subject, limits=limits, counts=counts)

    async def list_quotas(self) -> tuple[QuotaInfo, ...]:
        """Return every quota: of users, of roles, the default, of topics; by name."""
        order = list(QuotaSubject)
        rows = [one for one in self._node.catalog.quotas() if one.kind in set(QuotaSubject)]
        rows.sort(key=lambda row: (order.index(QuotaSubject(row.kind)), row.subject))
        return tuple(map(_info, rows))

    # --- inside ---------------------------------------------------------------------------------

    def _counts_of(self, user: str) -> tuple[CountedLimit, ...]:
        asked = Principal(name=user, proof=Proof.PASSWORD)
        limits = {**self._access.limits_of(asked), **self._access.creation_limits_of(asked)}
        used = {**self._access.used_by(asked), **self._access.created_by(asked)}
        return tuple(
            CountedLimit(
                kind=kind,
                limit=limits[kind].amount if kind in limits else None,
                why=limits[kind].why if kind in limits else "",
                used=used.get(kind, 0.0),
            )
            for kind in (OF_PRINCIPALS if self._counts_creations else USED)
        )

    def _stored_under(
        self, prefix: str, limits: Mapping[QuotaKind, int]
    ) -> tuple[CountedLimit, ...]:
        kind = QuotaKind.STORED_BYTES
        amount = limits.get(kind)
        limit = None if amount == UNLIMITED else amount
        return (CountedLimit(kind=kind, limit=limit, used=self._access.stored.held(prefix)),)

    def _find(self, kind: QuotaSubject, subject: str) -> QuotaRow | None:
        wanted = (kind.value, subject)
        rows = self._node.catalog.quotas()
        return next((row for row in rows if (row.kind, row.subject) == wanted), None)

    def _checked(self, kind: QuotaSubject, subject: str) -> str:
        """Return the name of whom a quota is about, as it is kept."""
        match kind:
            case QuotaSubject.DEFAULT:
                if subject:
                    raise InvalidArgument("the default quota is everybody's: it has no name")
            case QuotaSubject.TOPIC:
                return subject.removesuffix("*")
            case QuotaSubject.ROLE:
                known = {*BUILT_IN, *(row.name for row in self._node.catalog.roles())}
                if subject not in known:
                    raise NotFound(f"there is no role {subject!r}")
            case QuotaSubject.USER:
                pass  # the catalog knows
        return subject

    @property
    def _counts_creations(self) -> bool:
        # Before that there may be clients that do not know the words.
        return self._node.catalog.level >= CREATION_QUOTA_LEVEL

    def _check_level(self, needed: int = QUOTA_LEVEL, what: str = "quotas") -> None:
        level = self._node.catalog.level
        if level < needed:
            raise PreconditionFailed(
                f"the cluster works at feature level {level}, and {what} need {needed}: "
                "upgrade every node, then `angarium cluster raise-level`"
            )


def _check_kinds(subject: QuotaSubject, kinds: Iterable[QuotaKind]) -> None:
    for kind in kinds:
        is_stored = kind is QuotaKind.STORED_BYTES
        if is_stored and subject is not QuotaSubject.TOPIC:
            raise InvalidArgument(f"{kind} is limited for topics: write topic:PREFIX")
        if not is_stored and subject is QuotaSubject.TOPIC:
            raise InvalidArgument(f"{kind} is limited for users, roles or by default, not topics")


def _info(row: QuotaRow) -> QuotaInfo:
    return QuotaInfo(
        subject_kind=QuotaSubject(row.kind), subject=row.subject, limits=limits_in(row)
    )
