"""What the catalog is told of creators and holders, and that below level 8 it is told nothing new.

Older nodes read over columns that they do not know, so they would come to another state.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.unit.service.access.asked_service import AskedService, MemoryCatalog

from angarium.api.access import ADMIN, ANONYMOUS, Principal, Proof
from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.errors import InvalidArgument, NotFound, PreconditionFailed, RoleHeld
from angarium.machine.catalog import (
    Holders,
    JoinTokenPut,
    Maker,
    QuotaPut,
    RoleDelete,
    RolePut,
    UserPut,
)
from angarium.service.access import Access
from angarium.service.access.join_tokens import JoinTokenCalls
from angarium.service.makers import counting_for, current_maker

if TYPE_CHECKING:
    from angarium.machine.catalog import CatalogCommand, CatalogOutcome
    from angarium.service.metering import MeteredService

ALICE = Principal(name="alice", proof=Proof.PASSWORD)
CLAIMED = Principal(name="alice", proof=Proof.JWT, roles=("pipeline",))


class Overheard(MemoryCatalog):
    """Keeps what it was told."""

    def __init__(self, *, level: int) -> None:
        self.told: list[CatalogCommand] = []
        super().__init__(level=level)

    def _apply(self, command: CatalogCommand) -> CatalogOutcome:
        self.told.append(command)
        return super()._apply(command)


def at_level(level: int, *, is_required: bool = True) -> tuple[Access, Overheard]:
    catalog = Overheard(level=level)
    access = Access(cast("MeteredService", AskedService(catalog)), is_required=is_required)
    return access, catalog


async def with_holder(level: int) -> tuple[Access, Overheard]:
    access, catalog = at_level(level)
    await access.calls.create_role("reader")
    await access.calls.create_user("alice", roles=["publisher", "reader"])
    return access, catalog


def test_at_level_8_a_role_is_kept_while_it_is_held_or_taken_away() -> None:
    async def check() -> None:
        access, catalog = await with_holder(8)
        role, user = catalog.told[-2:]
        assert isinstance(role, RolePut)
        assert role.is_unheld
        assert isinstance(user, UserPut)
        assert user.roles_needed == ("reader",), "publisher is built in"
        with pytest.raises(RoleHeld):
            await access.calls.delete_role("reader")
        await access.calls.delete_role("reader", force=True)
        assert catalog.told[-1] == RoleDelete(name="reader", holders=Holders.LOSE)
        assert (await access.calls.describe_user("alice")).roles == ("publisher",)
        with pytest.raises(NotFound):
            await access.calls.alter_user("alice", roles=["reader"])

    asyncio.run(check())


@pytest.mark.parametrize("force", [False, True])
def test_below_level_8_a_role_is_deleted_as_before(force: bool) -> None:
    async def check() -> None:
        access, catalog = await with_holder(7)
        role, user = catalog.told[-2:]
        assert isinstance(role, RolePut)
        assert not role.is_unheld
        assert isinstance(user, UserPut)
        assert user.roles_needed == ()
        await access.calls.delete_role("reader", force=force)
        assert catalog.told[-1] == RoleDelete(name="reader")
        assert (await access.calls.describe_user("alice")).roles == ("publisher", "reader")

    asyncio.run(check())


def test_a_principal_is_told_apart_from_the_former_user_of_its_name_and_from_jwts() -> None:
    async def check() -> None:
        access, catalog = await with_holder(8)
        made_at = catalog.machine.access.users["alice"].created_at
        assert access.maker_of(ALICE) == Maker(f"user:alice:{made_at}", "alice")
        assert access.maker_of(CLAIMED) == Maker("jwt:alice", roles=("pipeline",))
        assert access.maker_of(Principal(name="node", proof=Proof.NODE)) is None
        lower, _ = await with_holder(7)
        assert lower.maker_of(ALICE) is None
        unasked, _ = at_level(8, is_required=False)
        assert unasked.maker_of(ANONYMOUS) is None

    asyncio.run(check())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("create_topic", {"name": "orders", "partitions": 1, "config": None}),
        ("alter_topic", {"name": "orders", "partitions": 2, "config": None}),
        ("alter_group", {"group": "g", "config": None}),
        ("reserve", {"topic": "orders", "partition": 0, "count": 1}),
        ("create_join_token", {}),
    ],
)
def test_what_creates_does_so_in_the_name_of_the_principal(
    name: str, arguments: dict[str, Any]
) -> None:
    async def check() -> None:
        access, _ = at_level(8)
        await access.calls.create_user("root", roles=[ADMIN])
        root = Principal(name="root", proof=Proof.PASSWORD)
        seen: list[Maker | None] = []

        async def noted(*_: object, **__: object) -> Any:
            seen.append(current_maker())
            raise InvalidArgument("noted")

        behind = access.join_tokens if name == "create_join_token" else access.service
        setattr(behind, name, noted)
        with pytest.raises(InvalidArgument, match="noted"):
            await getattr(access.broker_for(root), name)(**arguments)
        assert seen == [access.maker_of(root)]
        assert seen[0] is not None
        assert current_maker() is None, "nothing is left behind"

    asyncio.run(check())


def test_a_join_token_says_which_user_issued_it_from_level_8_on() -> None:
    async def check() -> None:
        for level, issuer in ((8, "alice"), (7, "")):
            access, catalog = await with_holder(level)
            calls = JoinTokenCalls(access.service.node)
            with counting_for(partial(access.maker_of, ALICE)):
                await calls.create_join_token()
            told = catalog.told[-1]
            assert isinstance(told, JoinTokenPut)
            assert told.issuer == issuer
            with counting_for(partial(access.maker_of, CLAIMED)):
                await calls.create_join_token()
            told = catalog.told[-1]
            assert isinstance(told, JoinTokenPut)
            assert told.issuer == "", "a JWT makes nobody a user"

    asyncio.run(check())


def test_quotas_on_topics_are_set_from_level_8_on() -> None:
    async def check() -> None:
        limits = {QuotaKind.TOPICS: 5}
        access, catalog = await with_holder(7)
        with pytest.raises(PreconditionFailed, match="quotas on topics and partitions need 8"):
            await access.quota_calls.set_quota(QuotaSubject.USER, "alice", limits)
        await access.quota_calls.set_quota(QuotaSubject.USER, "alice", {QuotaKind.REQUESTS: 5})
        shown = await access.quota_calls.describe_quota(QuotaSubject.USER, "alice")
        counts = {one.kind: one.limit for one in shown.counts}
        assert counts[QuotaKind.REQUESTS] == 5
        assert QuotaKind.TOPICS not in counts, "clients of before do not know the word"
        access, catalog = await with_holder(8)
        await access.quota_calls.set_quota(QuotaSubject.USER, "alice", limits)
        assert isinstance(catalog.told[-1], QuotaPut)
        shown = await access.quota_calls.describe_quota(QuotaSubject.USER, "alice")
        assert {one.kind: one.limit for one in shown.counts}[QuotaKind.TOPICS] == 5
        with pytest.raises(InvalidArgument, match="not topics"):
            await access.quota_calls.set_quota(QuotaSubject.TOPIC, "team-a", limits)
        # Nothing that is counted by nodes is limited, so nodes count nothing.
        assert access.broker_for(ALICE).toll is None

    asyncio.run(check())
