"""Quotas as frames. The answers come in the payload."""

from __future__ import annotations

import msgspec

from angarium.api.quotas import QuotaInfo, QuotaKind, QuotaSubject


class SetQuotaHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.quotas.QuotaInfo`."""

    subject_kind: QuotaSubject
    subject: str
    limits: dict[QuotaKind, int] = {}
    cleared: tuple[QuotaKind, ...] = ()


class QuotaHeader(msgspec.Struct, frozen=True, array_like=True):
    """A quota: to delete (answered with nothing) or describe (`api.quotas.QuotaInfo`)."""

    subject_kind: QuotaSubject
    subject: str


class QuotasAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Every quota."""

    quotas: tuple[QuotaInfo, ...]


class UsedHere(msgspec.Struct, frozen=True, array_like=True):
    """What one principal has used of its quota at the node that answers."""

    key: str
    """The principal, as nodes tell each other."""
    rates: dict[QuotaKind, float] = {}
    """In a second, by what is limited."""
    pressed: tuple[QuotaKind, ...] = ()
    """Of what somebody had to wait for."""
    connections: int = 0


class QuotaUseAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What was used lately at the node that answers; who has used nothing is left out."""

    used: tuple[UsedHere, ...] = ()
