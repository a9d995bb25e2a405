"""Quotas and join tokens over REST: each request is one call of the contract.

The annotations of a call are its declaration (`routing.call`), so they are not put off here.
"""

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from angarium.api.access import IssuedJoinToken, JoinTokenBroker, JoinTokenInfo
from angarium.api.quotas import UNLIMITED, QuotaBroker, QuotaInfo, QuotaKind, QuotaSubject
from angarium.doors.http.forms import answer
from angarium.doors.http.record_json import Count
from angarium.doors.http.routing import call
from angarium.ids import Micros

Limit = Annotated[
    int,
    Meta(ge=UNLIMITED, le=(1 << 63) - 1, description=f"{UNLIMITED}: there is none."),
]
Whose = Annotated[QuotaSubject, Meta(description="Whose it is: a user's, a role's, or topics'.")]
Subject = Annotated[
    str, Meta(description="The name of a user or a role, or a prefix of names of topics; * is all.")
]
TokenNumber = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]

_access: Final = partial(call, tag="access")
_cluster: Final = partial(call, tag="cluster")


@answer
class Quotas(msgspec.Struct, frozen=True):
    """Every quota; those of users first, then of roles, the default, and of topics."""

    quotas: tuple[QuotaInfo, ...]


@answer
class JoinTokens(msgspec.Struct, frozen=True):
    """The join tokens that are not forgotten, the oldest first."""

    tokens: tuple[JoinTokenInfo, ...]


class QuotaChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a quota shall say; what else it says stays."""

    limits: dict[QuotaKind, Limit] = msgspec.field(default_factory=dict)
    """What is limited to how much."""
    cleared: tuple[QuotaKind, ...] = ()
    """What it shall say nothing of any more."""


class NewJoinToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A join token to issue."""

    until_us: Count | None = None
    """When its time is up, in microseconds since 1970; null: in an hour."""


class QuotaRoutes:
    """The requests about how much somebody may use, and topics may hold."""

    def __init__(self, broker: QuotaBroker) -> None:
        self._broker = broker

    @_access("GET /v1/quotas", "List every quota.")
    async def list_quotas(self) -> Quotas:
        return Quotas(await self._broker.list_quotas())

    # --- of everybody: it has no name -----------------------------------------------------------

    @_access("GET /v1/quotas/default", "Describe the default quota.")
    async def describe_default(self) -> QuotaInfo:
        return await self._broker.describe_quota(QuotaSubject.DEFAULT, "")

    @_access("PATCH /v1/quotas/default", "Limit what everybody may use, or say less about it.")
    async def set_default(self, body: QuotaChange) -> QuotaInfo:
        return await self._broker.set_quota(
            QuotaSubject.DEFAULT, "", body.limits, cleared=body.cleared
        )

    @_access("DELETE /v1/quotas/default", "Remove the default quota.")
    async def delete_default(self) -> None:
        await self._broker.delete_quota(QuotaSubject.DEFAULT, "")

    # --- of somebody, or of topics --------------------------------------------------------------

    @_access(
        "GET /v1/quotas/{subject_kind}/{subject}",
        "Describe a quota; of a user or topics also what counts, and what is used.",
    )
    async def describe_quota(self, subject_kind: Whose, subject: Subject) -> QuotaInfo:
        return await self._broker.describe_quota(subject_kind, subject)

    @_access("PATCH /v1/quotas/{subject_kind}/{subject}", "Limit more, or otherwise, or less.")
    async def set_quota(
        self, subject_kind: Whose, subject: Subject, body: QuotaChange
    ) -> QuotaInfo:
        return await self._broker.set_quota(
            subject_kind, subject, body.limits, cleared=body.cleared
        )

    @_access("DELETE /v1/quotas/{subject_kind}/{subject}", "Remove a quota.")
    async def delete_quota(self, subject_kind: Whose, subject: Subject) -> None:
        await self._broker.delete_quota(subject_kind, subject)


class JoinTokenRoutes:
    """The requests about which new nodes may come in."""

    def __init__(self, broker: JoinTokenBroker) -> None:
        self._broker = broker

    @_cluster("GET /v1/cluster/join-tokens", "List the join tokens, and whom they let in.")
    async def list_join_tokens(self) -> JoinTokens:
        return JoinTokens(await self._broker.list_join_tokens())

    @_cluster(
        "POST /v1/cluster/join-tokens",
        "Issue a token that lets one node in, once; its secret is told once.",
        status=201,
    )
    async def create_join_token(self, body: NewJoinToken) -> IssuedJoinToken:
        until = None if body.until_us is None else Micros(body.until_us)
        return await self._broker.create_join_token(until=until)

    @_cluster(
        "DELETE /v1/cluster/join-tokens/{token}",
        "Withdraw a join token; a node that it has let in stays.",
    )
    async def delete_join_token(self, token: TokenNumber) -> None:
        await self._broker.delete_join_token(token)
