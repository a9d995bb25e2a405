"""What each method leaves behind: always, where data are recorded, or only if it is denied."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.unit.service.access.asked_service import AskedService, MemoryCatalog
from tests.unit.service.access.test_permitted_broker import CALLS

from angarium.api import FetchRequest, Interest, PublishRequest
from angarium.api.access import ADMIN, ANONYMOUS, Principal, Proof
from angarium.api.audit import AuditEvent
from angarium.api.backups import KeptAccounts, KeptUser
from angarium.errors import AngariumError
from angarium.ids import Offset
from angarium.machine.catalog import UserPut
from angarium.service.access import Access, PermittedBroker
from angarium.service.access.rules import ALWAYS_NOTED, LETTER_RULES, RULES, recorded
from angarium.service.audit import AuditChoices
from angarium.service.audit.told import SECRET, TOLD, details_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from angarium.service.audit import Audit
    from angarium.service.metering import MeteredService

ALICE = Principal(name="alice", proof=Proof.PASSWORD)

ACTIONS = {
    *("create_topic", "alter_topic", "delete_topic"),
    *("drain_node", "remove_node", "transfer_leader", "raise_level"),
    *("rebalance", "cancel_rebalance", "set_auto_balance", "recover_partition"),
    *("alter_group", "seek_group", "pause_group", "delete_group"),
    *("forget_series", "forget_sequenced", "dead_letters.redrive", "dead_letters.purge"),
    *("create_user", "alter_user", "delete_user", "create_role", "delete_role"),
    *("create_grant", "delete_grant", "create_token", "delete_token"),
}
SEEING = {
    *("list_topics", "describe_topic", "list_groups", "describe_group", "settled_by"),
    *("list_users", "describe_user", "list_roles", "list_grants", "list_tokens"),
    *("whoami", "can", "cluster_status", "describe_balance", "describe_recovery"),
    "describe_upgrade",
}


class Noting:
    """Notes what would be recorded, in the place of `Audit`."""

    def __init__(self, *, is_data_recorded: bool = False) -> None:
        self.choices = AuditChoices(is_data_recorded=is_data_recorded)
        self.noted: list[tuple[str, str, str, str]] = []

    @asynccontextmanager
    async def action(
        self, principal: Principal, method: str, asked: Any, *, rule: str, given: Mapping[str, Any]
    ) -> AsyncIterator[None]:
        del principal, given
        self.noted.append(("action", method, f"{asked[0]} {asked[2]}", rule))
        yield

    def denied(self, asker: PermittedBroker, method: str, asked: Any) -> None:
        self.noted.append(("denial", method, f"{asked[0]} {asked[2]}", asker.decide(*asked).why))

    def accessed(self, asker: PermittedBroker, method: str, asked: Any) -> None:
        self.noted.append(("access", method, f"{asked[0]} {asked[2]}", asker.decide(*asked).why))

    def watching(self, _: Principal, __: object, end: Any) -> Any:
        return end


def audited(
    *, roles: tuple[str, ...] = (), is_data_recorded: bool = False, principal: Principal = ALICE
) -> tuple[PermittedBroker, Noting]:
    """Return the broker of somebody with these roles, and what is noted of it."""
    catalog, noting = MemoryCatalog(), Noting(is_data_recorded=is_data_recorded)
    asyncio.run(catalog.submit(UserPut(name="alice", is_new=True, roles=roles)))
    service = AskedService(catalog)
    service.node.config = SimpleNamespace(auto_create_topics=True)
    access = Access(cast("MeteredService", service), is_required=True, audit=cast("Audit", noting))
    return access.broker_for(principal), noting


async def called(broker: PermittedBroker, name: str) -> None:
    arguments, named = CALLS[name]
    # The service behind it answers nothing that makes sense.
    with suppress(AngariumError, AttributeError, TypeError):
        await getattr(broker, name)(*arguments, **named)


def test_every_method_is_recorded_as_what_it_is() -> None:
    every = [*RULES, *(f"dead_letters.{name}" for name in LETTER_RULES)]
    assert {one for one in every if recorded(one) is AuditEvent.ACTION} >= ACTIONS
    assert {one for one in every if recorded(one) is None} >= SEEING
    assert recorded("publish") is recorded("fetch") is recorded("commit") is AuditEvent.ACCESS
    assert recorded("something_new") is AuditEvent.ACTION, "what is not known is recorded"


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"can", "whoami"}))
def test_a_refusal_is_recorded_with_the_method_and_the_action(name: str) -> None:
    broker, noting = audited()
    asyncio.run(called(broker, name))
    if RULES[name].asks and name != "cluster_status":
        kind, method, asked, why = noting.noted[0]
        assert (kind, method) == ("denial", name)
        assert asked.startswith(RULES[name].asks[0].action)
        assert why.startswith("no grant allows")
    else:
        assert noting.noted == []


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"can", "whoami"}))
@pytest.mark.parametrize("is_data_recorded", [False, True])
def test_what_is_let_through_is_recorded_where_it_should_be(
    name: str, is_data_recorded: bool
) -> None:
    broker, noting = audited(roles=(ADMIN,), is_data_recorded=is_data_recorded)
    asyncio.run(called(broker, name))
    event = recorded(name)
    kinds = {(kind, method) for kind, method, _, _ in noting.noted}
    if event is AuditEvent.ACTION:
        assert kinds == {("action", name)}
        assert "(of the role 'admin')" in noting.noted[0][3]
    elif event is AuditEvent.ACCESS and (is_data_recorded or name in ALWAYS_NOTED):
        assert kinds == {("access", name)}
    else:
        assert kinds == set()


def test_what_is_about_oneself_says_so() -> None:
    broker, noting = audited()
    asyncio.run(called_own(broker))
    assert noting.noted == [("action", "delete_token", "token.delete alice", "about oneself")]


async def called_own(broker: PermittedBroker) -> None:
    with pytest.raises(AngariumError):
        await broker.delete_token("alice", "ci")


def test_what_other_nodes_pass_on_was_recorded_by_them() -> None:
    node = Principal(name="node", proof=Proof.NODE)
    broker, noting = audited(principal=node, is_data_recorded=True)
    for name in ("create_topic", "publish", "fetch"):
        asyncio.run(called(broker, name))
    assert noting.noted == []


def test_without_an_audit_nothing_is_looked_at() -> None:
    service = AskedService(MemoryCatalog())
    broker = Access(cast("MeteredService", service)).broker_for(ANONYMOUS)
    assert type(broker) is PermittedBroker
    asyncio.run(broker.delete_topic("orders"))
    assert service.calls == ["delete_topic"]


def test_a_topic_that_a_publish_would_make_is_recorded_before() -> None:
    broker, noting = audited(roles=(ADMIN,))
    request = PublishRequest(topic="new", partition=0, batches=())
    asyncio.run(broker.publish(request))
    assert [one[:3] for one in noting.noted] == [("action", "create_topic", "topic.create new")]


def test_handles_are_recorded_once_and_fetches_each_time() -> None:
    broker, noting = audited(roles=(ADMIN,), is_data_recorded=True)

    async def read() -> None:
        await broker.subscribe([Interest(topic="orders", partition=n) for n in range(3)])
        for _ in range(2):
            await broker.fetch(FetchRequest(topic="orders", partition=0, offset=Offset(0)))
        broker.begin_publish(
            PublishRequest(topic="orders", partition=0, batches=()), lambda _: None
        )

    asyncio.run(read())
    assert [one[1] for one in noting.noted] == ["subscribe", "fetch", "fetch", "publish"]


def test_a_secret_is_told_as_set_and_what_is_not_known_is_not_told() -> None:
    told = details_of(
        {"name": "alice", "password": "hunter2", "roles": ["admin"], "api_key": "k", "until": None},
        besides="alice",
    )
    assert told == '{"password":"set","roles":["admin"]}'
    assert details_of({"password": None}) == ""
    long = details_of({"about": "x" * 1_000_000, "topics": [f"t{n}" for n in range(1_000)]})
    assert len(long) < 2_000


def test_repeating_something_hides_nothing_and_what_is_left_out_is_counted() -> None:
    assert details_of({"roles": ["monitor"] * 99 + ["admin"]}) == '{"roles":["monitor","admin"]}'
    long = details_of({"roles": [f"r{n}" for n in range(70)]})
    assert "… and 6 more" in long


def test_every_argument_of_an_action_is_told_or_said_to_be_a_secret() -> None:
    left_out = {"request", "value"}  # of what touches records, and of letters
    for name in sorted(one for one in RULES if recorded(one) is AuditEvent.ACTION):
        given = set(inspect.signature(getattr(PermittedBroker, name)).parameters) - {"self"}
        assert given <= TOLD | SECRET | left_out, name


def test_whom_a_restore_makes_is_told_and_no_hash() -> None:
    eve = KeptUser(name="eve", roles=("admin",), scrypt="$scrypt$planted")
    told = details_of({"accounts": KeptAccounts(users=(eve,))})
    assert "eve: admin" in told
    assert "planted" not in told
