"""Quotas between protobuf and the contract: what is a map there is a list of limits here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.doors.grpc.grant_messages import said, word_number
from angarium.errors import InvalidArgument
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def quota_subject_of(number: int) -> QuotaSubject:
    """Return whose a quota is; it has to be said."""
    return said(QuotaSubject, number, what="kind of subject")


def quota_kinds_of(numbers: Iterable[int]) -> tuple[QuotaKind, ...]:
    """Return what is limited."""
    return tuple(said(QuotaKind, one, what="kind of quota") for one in numbers)


def quota_limits_of(messages: Iterable[pb.QuotaLimit]) -> dict[QuotaKind, int]:
    """Return what is limited to how much."""
    given = list(messages)
    kinds = quota_kinds_of(one.kind for one in given)
    if len(set(kinds)) < len(kinds):
        raise InvalidArgument("a quota limits each thing once")
    return {kind: one.limit for kind, one in zip(kinds, given, strict=True)}


def quota_limit_messages(limits: Mapping[QuotaKind, int]) -> list[pb.QuotaLimit]:
    """Return what is limited to how much, one message each."""
    return [
        pb.QuotaLimit(kind=word_number(kind), limit=amount)  # type: ignore[arg-type]
        for kind, amount in limits.items()
    ]
