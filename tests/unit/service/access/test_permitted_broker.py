"""Every method of the contract, for one who may nothing and for one who may just that."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from tests.unit.service.access.asked_service import GROUP, AskedService, secured

from angarium.api import (
    Checkpoint,
    ClusterStatus,
    ConsumeRequest,
    FetchRequest,
    GroupConfig,
    GroupMember,
    GroupPosition,
    Interest,
    Moved,
    NodeInfo,
    PublishRequest,
    Settlement,
    TopicConfig,
    Verb,
)
from angarium.api.access import (
    ANONYMOUS,
    Action,
    Effect,
    Grant,
    Match,
    Principal,
    Proof,
    ResourceKind,
    SubjectKind,
)
from angarium.api.backups import KeptAccounts, KeptPositions, RestoreRequest
from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.api.transactions import (
    GroupAck,
    SequencedPublish,
    StagedIn,
    StageRequest,
    TransactionId,
)
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    InvalidArgument,
    NotFound,
    NotLeader,
    PermissionDenied,
    PreconditionFailed,
    Unauthenticated,
)
from angarium.ids import Epoch, Index, Micros, NodeId, Offset
from angarium.machine.catalog import Granted, GrantPut, TokenPut, UserDelete, UserPut
from angarium.security.authenticating import Authenticator
from angarium.security.tokens import new_token, token_digest
from angarium.service.access import Access, PermittedBroker
from angarium.service.access import access as access_module
from angarium.service.access.accounts import CatalogAccounts
from angarium.service.access.rules import (
    ACCESS_RULES,
    JOIN_TOKEN_RULES,
    QUOTA_RULES,
    RULES,
    Asks,
    Rule,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

ALICE = Principal(name="alice", proof=Proof.PASSWORD)
T = TransactionId("series", Epoch(0), 0)

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "publish": ((PublishRequest(topic="orders", partition=0, batches=()),), {}),
    "reserve": (("orders", 0, 1), {}),
    "fetch": ((FetchRequest(topic="orders", partition=0, offset=Offset(0)),), {}),
    "find_offset": (("orders", 0, None), {}),
    "subscribe": (([Interest(topic="orders", partition=0)],), {}),
    "subscribe_passing": (("orders", [0]), {}),
    "open_producer": (("maker",), {}),
    "create_topic": (("orders",), {"partitions": 1, "config": None}),
    "alter_topic": (("orders",), {"partitions": 1, "config": None}),
    "delete_topic": (("orders",), {}),
    "list_topics": ((), {}),
    "describe_topic": (("orders",), {}),
    "cluster_status": ((), {}),
    "drain_node": ((1,), {"draining": True}),
    "remove_node": ((1,), {}),
    "transfer_leader": (("orders", 0, 1), {}),
    "raise_level": ((), {}),
    "describe_balance": ((), {}),
    "rebalance": ((), {}),
    "cancel_rebalance": ((), {}),
    "set_auto_balance": ((), {"automatic": True}),
    "describe_recovery": (("orders", 0), {}),
    "describe_upgrade": ((), {}),
    "recover_partition": (("orders", 0, "00000000"), {}),
    "consume": (
        (
            ConsumeRequest(
                group="g", topics=("orders",), config=GroupConfig(dead_letter_topic="letters")
            ),
        ),
        {},
    ),
    "settle": (("g", "m", (Settlement("orders", 0, Verb.ACK, (0, 1)),)), {}),
    "report_checkpoints": (("g", (Checkpoint(topic="orders", partition=0, offset=Offset(1)),)), {}),
    "list_groups": ((), {}),
    "describe_group": (("g",), {}),
    "alter_group": (("g", GroupConfig(dead_letter_topic="letters")), {}),
    "seek_group": (
        ("g",),
        {"topic": "orders", "partition": None, "start": None, "dry_run": True},
    ),
    "pause_group": (("g",), {"paused": True}),
    "delete_group": (("g",), {"topic": "orders"}),
    "open_series": (("series",), {}),
    "stage": (
        (
            StageRequest(
                transaction=T,
                stage="s",
                part=0,
                topic="orders",
                partition=0,
                batches=(b"",),
                acks=(GroupAck("g", ()),),
            ),
        ),
        {},
    ),
    "commit": ((T, (StagedIn("orders", 0, ("s",)),)), {"content": ""}),
    "abort": ((T, (StagedIn("orders", 0, ("s",)),)), {}),
    "forget_series": (("series", ("orders",)), {}),
    "open_sequenced": (("maker",), {}),
    "forget_sequenced": (("maker", ("orders",)), {}),
    "publish_sequenced": (
        (
            SequencedPublish(
                producer="maker",
                epoch=Epoch(0),
                sequence=0,
                topic="orders",
                partition=0,
                batches=(),
            ),
        ),
        {},
    ),
    "last_sequence": (("maker", Epoch(0)), {"topic": "orders", "partition": 0}),
    "settled_by": (("g",), {"topic": "orders", "partition": 0}),
    "create_user": (("bob",), {"roles": ["monitor"]}),
    "alter_user": (("bob",), {"roles": ["monitor"]}),
    "delete_user": (("bob",), {}),
    "describe_user": (("bob",), {}),
    "list_users": ((), {}),
    "create_role": (("reader",), {}),
    "delete_role": (("reader",), {}),
    "list_roles": ((), {}),
    "create_grant": (
        (SubjectKind.USER, "alice", Grant(actions=("*",), kind=ResourceKind.TOPIC)),
        {},
    ),
    "delete_grant": ((1,), {}),
    "list_grants": ((), {}),
    "create_token": (("bob", "ci"), {}),
    "delete_token": (("bob", "ci"), {}),
    "list_tokens": ((), {}),
    "can": (("bob", "topic.read"), {"kind": ResourceKind.TOPIC, "name": "orders"}),
    "whoami": ((), {}),
    "set_quota": ((QuotaSubject.USER, "alice", {QuotaKind.REQUESTS: 5}), {}),
    "delete_quota": ((QuotaSubject.USER, "alice"), {}),
    "describe_quota": ((QuotaSubject.USER, "bob"), {}),
    "list_quotas": ((), {}),
    "create_join_token": ((), {}),
    "delete_join_token": ((1,), {}),
    "list_join_tokens": ((), {}),
    "read_positions": (("orders", 0), {}),
    "read_accounts": ((), {}),
    "restore_topic": (("orders",), {"partitions": 1, "config": TopicConfig()}),
    "restore_records": (
        (RestoreRequest(topic="orders", partition=0, next_offset=Offset(0)),),
        {},
    ),
    "restore_positions": ((KeptPositions(topic="orders", partition=0),), {}),
    "restore_accounts": ((KeptAccounts(),), {}),
}

IN_THE_CATALOG = {**ACCESS_RULES, **QUOTA_RULES, **JOIN_TOKEN_RULES}
LISTING = sorted(name for name, rule in RULES.items() if rule.shows is not None)
ASKING = sorted(name for name, rule in RULES.items() if rule.asks and not rule.instead)


def allowed(access: Access, *asks: Asks, given: dict[str, Any]) -> None:
    """Let alice do exactly this."""
    catalog = access.service.node.catalog
    granting = [
        GrantPut(is_role=False, subject="alice", granted=Granted((one.action,), one.kind, name))
        for one in asks
        for name in one.names(given)
    ]
    for command in granting:
        asyncio.run(catalog.submit(command))


def alice(*, roles: tuple[str, ...] = ()) -> tuple[PermittedBroker, AskedService, Access]:
    broker, service, access = secured(ALICE)
    asyncio.run(access.service.node.catalog.submit(UserPut(name="alice", is_new=True, roles=roles)))
    return broker, service, access


def given_in(name: str) -> dict[str, Any]:

    arguments, named = CALLS[name]
    parameters = list(inspect.signature(getattr(PermittedBroker, name)).parameters)[1:]
    return {**dict(zip(parameters, arguments, strict=False)), **named}


def call(broker: PermittedBroker, name: str) -> Any:
    arguments, named = CALLS[name]
    return asyncio.run(getattr(broker, name)(*arguments, **named))


def test_every_method_is_tried() -> None:
    assert set(CALLS) == set(RULES)


@pytest.mark.parametrize("name", ASKING)
def test_who_may_nothing_gets_nowhere(name: str) -> None:
    broker, service, access = alice()
    version = access.permissions.version
    with pytest.raises((PermissionDenied, NotFound)):
        call(broker, name)
    assert service.calls == []
    assert access.permissions.version == version


@pytest.mark.parametrize("name", ASKING)
def test_all_that_is_asked_is_needed_and_enough(name: str) -> None:
    rule: Rule = RULES[name]
    given = given_in(name)
    for missing in range(len(rule.asks)):
        if not tuple(rule.asks[missing].names(given)):
            continue
        broker, service, access = alice()
        others = rule.asks[:missing] + rule.asks[missing + 1 :]
        allowed(access, *others, given=given)
        with pytest.raises((PermissionDenied, NotFound)):
            call(broker, name)
        assert service.calls == []
    broker, service, access = alice()
    allowed(access, *rule.asks, given=given)
    if name in IN_THE_CATALOG:
        try:
            call(broker, name)
        except (PermissionDenied, PreconditionFailed):
            raise
        except (NotFound, AlreadyExists):
            pass  # there is no such user here; it got as far as that
    else:
        call(broker, name)
        assert service.calls[-1] == name


@pytest.mark.parametrize("name", LISTING)
def test_lists_show_what_may_be_known(name: str) -> None:
    broker, service, access = alice()
    names = ("orders", "secret", "alice")
    rows: list[Any] = [SimpleNamespace(name=one, owner=one) for one in names]
    if name == "list_groups":
        rows = [replace(GROUP, name=one) for one in names]
    service.returns[name] = rows
    if name in IN_THE_CATALOG:
        access.calls = access.quota_calls = service  # type: ignore[assignment]
    shows, is_own = RULES[name].shows, RULES[name].own
    assert shows is not None
    own = [rows[2]] if is_own else []
    assert list(call(broker, name)) == own
    granted = Granted((shows.action,), shows.kind, "orders", is_prefix=False)
    allowing = GrantPut(is_role=False, subject="alice", granted=granted)
    asyncio.run(access.service.node.catalog.submit(allowing))
    access.refresh()
    assert list(call(broker, name)) == [rows[0], *own]


@pytest.mark.parametrize("name", sorted(RULES))
def test_without_authentication_everything_is_passed_on(name: str) -> None:
    broker, service, access = secured(ANONYMOUS, is_required=False)
    service.returns.setdefault(name, [])
    if name in {"whoami", "can"}:
        call(broker, name)
        return
    if name in IN_THE_CATALOG:
        access.calls = access.quota_calls = service  # type: ignore[assignment]
        access.join_tokens = service  # type: ignore[assignment]
    call(broker, name)
    assert service.calls[-1] == name


def test_who_may_not_see_the_cluster_is_told_where_its_nodes_are_and_nothing_else() -> None:
    broker, service, _ = alice()
    node = NodeInfo(id=NodeId(1), addresses={"wire": "a:1"}, leads=7, region="north")
    service.returns["cluster_status"] = ClusterStatus(
        cluster_id="one",
        node=NodeId(1),
        catalog_leader=NodeId(1),
        catalog_index=Index(9),
        nodes=(node,),
        topics=5,
        partitions=6,
        feature_level=3,
        version="1",
    )
    told = call(broker, "cluster_status")
    assert told.nodes == (NodeInfo(id=NodeId(1), addresses={"wire": "a:1"}),)
    assert (told.topics, told.partitions, told.catalog_index) == (0, 0, 0)
    broker, behind, _ = alice(roles=("monitor",))
    behind.returns = service.returns
    assert call(broker, "cluster_status").nodes == (node,)


# --- what is not told ---------------------------------------------------------------------------


def test_what_may_not_be_described_is_not_there_in_just_these_words() -> None:
    broker, _, access = alice()
    with pytest.raises(NotFound, match=r"^there is no topic 'orders'$"):
        call(broker, "fetch")
    describing = Granted((Action.TOPIC_DESCRIBE,), "topic", "orders")
    wish = GrantPut(is_role=False, subject="alice", granted=describing)
    asyncio.run(access.service.node.catalog.submit(wish))
    access.refresh()
    with pytest.raises(PermissionDenied, match=r"'alice' may not topic.read on topic 'orders'"):
        call(broker, "fetch")


NAMING = (
    *("last_sequence", "report_checkpoints", "settled_by", "stage", "settle", "seek_group"),
    *("delete_group", "commit", "abort", "forget_series", "forget_sequenced", "transfer_leader"),
)
"""Calls that are about something else, and name topics beside it."""


@pytest.mark.parametrize("name", NAMING)
def test_no_call_touches_a_topic_that_nothing_was_granted_on(name: str) -> None:
    broker, service, access = alice()
    for kind in ResourceKind:
        if kind is ResourceKind.TOPIC:
            continue
        everything = GrantPut(is_role=False, subject="alice", granted=Granted(("*",), kind))
        asyncio.run(access.service.node.catalog.submit(everything))
    access.refresh()
    arguments, named = CALLS[name]
    if name == "stage":
        arguments = (replace(arguments[0], batches=()),)
    with pytest.raises(NotFound, match=r"^there is no topic 'orders'$"):
        asyncio.run(getattr(broker, name)(*arguments, **named))
    assert service.calls == []


def test_a_group_names_only_topics_that_may_be_known() -> None:
    def position(topic: str) -> GroupPosition:
        return GroupPosition(
            topic=topic,
            partition=0,
            floor=Offset(0),
            start_offset=Offset(0),
            end_offset=Offset(4),
            lag=4,
        )

    def moved(topic: str) -> Moved:
        return Moved(topic=topic, partition=0, old_floor=Offset(0), new_floor=Offset(1))

    broker, service, access = alice()
    for kind, name in ((ResourceKind.GROUP, "g"), (ResourceKind.TOPIC, "orders")):
        granted = Granted((f"{kind}.describe", "group.alter", "group.seek"), kind, name)
        wish = GrantPut(is_role=False, subject="alice", granted=granted)
        asyncio.run(access.service.node.catalog.submit(wish))
    member = GroupMember(name="m", node=NodeId(1), partitions=(("orders", 0), ("secret", 1)))
    known = replace(GROUP, members=(member,), positions=(position("orders"), position("secret")))
    for method in ("describe_group", "alter_group"):
        service.returns[method] = known
    service.returns["list_groups"] = (replace(known, positions=(), listed_lag=8),)
    service.returns["seek_group"] = (moved("orders"), moved("secret"))
    altering = broker.alter_group("g", GroupConfig())
    for info in (call(broker, "describe_group"), asyncio.run(altering)):
        assert info.positions == (position("orders"),)
        assert info.members == (replace(member, partitions=(("orders", 0),)),)
        assert info.lag == 8, "how much is to do is no secret of a topic's"
    (listed,) = call(broker, "list_groups")
    assert (listed.members, listed.lag) == (info.members, 8)
    assert call(broker, "seek_group") == (moved("orders"),)


def test_publishing_makes_a_topic_only_for_who_may_make_one() -> None:
    broker, service, access = alice()
    publishing = Granted((Action.TOPIC_PUBLISH,), "topic")
    asyncio.run(
        access.service.node.catalog.submit(
            GrantPut(is_role=False, subject="alice", granted=publishing)
        )
    )
    new = PublishRequest(topic="new", partition=0, batches=())
    with pytest.raises(NotFound, match="there is no topic 'new'"):
        asyncio.run(broker.publish(new))
    assert service.calls == []
    making = Granted((Action.TOPIC_CREATE,), "topic", "new", is_prefix=False)
    asyncio.run(
        access.service.node.catalog.submit(GrantPut(is_role=False, subject="alice", granted=making))
    )
    access.refresh()
    asyncio.run(broker.publish(new))
    assert service.calls == ["publish"]


# --- changes ------------------------------------------------------------------------------------


def test_a_change_of_the_policy_counts_from_the_next_call_on() -> None:
    broker, service, access = alice(roles=("publisher",))
    request = PublishRequest(topic="orders", partition=0, batches=())
    assert broker.begin_publish(request, lambda _: None)
    assert broker.begin_publish(request, lambda _: None)
    asyncio.run(access.calls.alter_user("alice", roles=[]))
    with pytest.raises(NotFound):
        broker.begin_publish(request, lambda _: None)
    assert service.calls == ["begin_publish", "begin_publish"]


def test_a_proof_that_has_expired_is_worth_nothing() -> None:
    _, service, access = alice(roles=("admin",))
    short = Principal(name="alice", proof=Proof.PASSWORD, until=Micros(2_000))
    broker = access.broker_for(short)
    call(broker, "fetch")
    service.clock = Micros(2_000)
    broker.forget()
    with pytest.raises(Unauthenticated, match="expired"):
        call(broker, "fetch")


def test_who_only_publishes_stops_when_the_proof_expires() -> None:
    _, service, access = alice(roles=("publisher",))
    short = Principal(name="alice", proof=Proof.PASSWORD, until=Micros(2_000))
    broker = access.broker_for(short)
    request = PublishRequest(topic="orders", partition=0, batches=())
    assert broker.begin_publish(request, lambda _: None)
    access.expire()
    assert broker.begin_publish(request, lambda _: None)
    service.clock = Micros(2_000)
    access.expire()
    with pytest.raises(Unauthenticated, match="expired"):
        broker.begin_publish(request, lambda _: None)


def test_proofs_expire_while_there_is_no_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    _, service, access = alice(roles=("publisher",))
    short = Principal(name="alice", proof=Proof.PASSWORD, until=Micros(2_000))
    ended: asyncio.Queue[AngariumError] = asyncio.Queue()
    access.attend(short, ended.put_nowait)

    def lost(_: object) -> Index:
        raise NotLeader("no catalog here")

    async def scene() -> AngariumError:
        looking = asyncio.create_task(access._look())
        try:
            async with asyncio.timeout(5):
                return await ended.get()
        finally:
            looking.cancel()

    monkeypatch.setattr(access_module, "LOOK_S", 0.01)
    monkeypatch.setattr(type(service.node.catalog), "access_version", property(lost))
    service.clock = Micros(2_000)
    assert "expired" in str(asyncio.run(scene()))


def test_what_a_key_has_signed_ends_when_that_is_taken_back() -> None:
    _, _, access = alice()
    keys = {"old", "other"}
    access._published = lambda: frozenset(keys)
    access.see_keys()
    jwt = Principal(name="jwt:bob", roles=("admin",), proof=Proof.JWT, key="old")
    ended: list[AngariumError] = []
    access.attend(jwt, ended.append, [(Action.TOPIC_READ, ResourceKind.TOPIC, "orders")])
    access.attend(replace(jwt, key="other"), ended.append)
    broker = access.broker_for(jwt)
    call(broker, "fetch")
    keys.remove("old")
    access.see_keys()
    (why,) = ended
    assert isinstance(why, Unauthenticated)
    with pytest.raises(Unauthenticated, match="taken back"):
        call(broker, "fetch")


def test_who_is_nobody_any_more_is_told_so() -> None:
    broker, _, access = alice(roles=("admin",))
    asyncio.run(access.calls.delete_user("alice"))
    with pytest.raises(Unauthenticated, match="no user 'alice' any more"):
        call(broker, "fetch")


def test_what_is_open_ends_when_it_is_not_allowed_any_more() -> None:
    _, service, access = alice(roles=("subscriber",))
    ended: list[AngariumError] = []
    asked = [(Action.TOPIC_READ, ResourceKind.TOPIC, "orders")]
    access.attend(ALICE, ended.append, asked)
    gone = access.attend(ALICE, ended.append, asked)
    gone()
    expiring = Principal(name="alice", proof=Proof.PASSWORD, until=Micros(2_000))
    access.attend(expiring, ended.append)
    asyncio.run(access.calls.create_role("other"))
    assert ended == [], "a change that does not concern it"
    assert access._open.expire(Micros(1_999)) == set()
    assert access._open.expire(Micros(2_000)) == {expiring}
    assert isinstance(ended.pop(), Unauthenticated)
    asyncio.run(access.calls.alter_user("alice", roles=["publisher"]))
    assert isinstance(ended.pop(), PermissionDenied)
    assert ended == []
    access.attend(ALICE, ended.append)
    access.attend(ALICE, ended.append, [(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, "orders")])
    asyncio.run(access.calls.alter_user("alice", is_locked=True))
    assert len(ended) == 1, "the stream first, so that it is told, then the connection below it"
    access._open.see_off()
    assert ["locked" in str(one) for one in ended] == [True, True]
    assert service.calls == []


def test_a_token_with_another_secret_and_a_user_made_anew_are_somebody_else() -> None:
    _, _, access = alice(roles=("publisher",))
    catalog = access.service.node.catalog
    accounts = CatalogAccounts(catalog)
    door = Authenticator(accounts, anonymous=None)
    request = PublishRequest(topic="orders", partition=0, batches=())
    ended: list[AngariumError] = []

    def issued(time: int) -> str:
        secret = new_token().reveal()
        digest = token_digest(secret)
        asyncio.run(
            catalog.submit(TokenPut(owner="alice", name="ci", digest=digest, time=Micros(time)))
        )
        access.refresh()
        return f"Bearer {secret}"

    old = door.known(issued(1))
    assert old is not None
    broker = access.broker_for(old)
    assert broker.begin_publish(request, lambda _: None)
    access.attend(old, ended.append, [(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, "orders")])
    new = door.known(issued(2))
    assert new is not None
    assert "another secret" in str(ended.pop())
    with pytest.raises(Unauthenticated, match="another secret"):
        broker.begin_publish(request, lambda _: None)
    assert access.broker_for(new).begin_publish(request, lambda _: None)

    user = door.let_in("alice", door.edition("alice"))
    access.attend(user, ended.append, [(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, "orders")])
    made = UserPut(name="alice", is_new=True, roles=("publisher",), time=Micros(3))
    for command in (UserDelete(name="alice"), made):
        asyncio.run(catalog.submit(command))
    access.refresh()
    assert "another one now" in str(ended.pop())
    assert door.let_in("alice", door.edition("alice")) != user


def test_another_password_ends_what_was_opened_with_the_old_one() -> None:
    _, _, access = alice(roles=("publisher",))
    catalog = access.service.node.catalog
    door = Authenticator(CatalogAccounts(catalog), anonymous=None)
    request = PublishRequest(topic="orders", partition=0, batches=())
    ended: list[AngariumError] = []

    def set_to(password_hash: str) -> Principal:
        asyncio.run(catalog.submit(UserPut(name="alice", scrypt=password_hash)))
        access.refresh()
        return door.let_in("alice", door.edition("alice"))

    old = set_to("one")
    broker = access.broker_for(old)
    assert broker.begin_publish(request, lambda _: None)
    access.attend(old, ended.append, [(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, "orders")])
    issued = new_token().reveal()
    asyncio.run(catalog.submit(TokenPut(owner="alice", name="ci", digest=token_digest(issued))))
    by_token = door.known(f"Bearer {issued}")
    assert by_token is not None
    asyncio.run(catalog.submit(UserPut(name="alice", roles=("publisher", "monitor"))))
    access.refresh()
    assert ended == [], "other roles are no other password"
    new = set_to("two")
    assert "another password" in str(ended.pop())
    with pytest.raises(Unauthenticated, match="another password"):
        broker.begin_publish(request, lambda _: None)
    for principal in (new, by_token):
        assert access.broker_for(principal).begin_publish(request, lambda _: None)
    told = asyncio.run(access.broker_for(new).whoami())
    assert type(told.principal) is Principal, "which password it was is told to nobody"


def test_what_was_forbidden_while_it_was_being_opened_ends_at_once() -> None:
    broker, service, access = alice(roles=("subscriber",))

    class Endless:
        is_closed = False

        async def __aiter__(self) -> AsyncIterator[str]:
            while not self.is_closed:
                yield "delivery"
                await asyncio.sleep(0)

        async def close(self) -> None:
            self.is_closed = True

    inner = Endless()

    async def opening(_: object) -> Endless:
        await access.calls.alter_user("alice", roles=["publisher"])
        return inner

    service.subscribe = opening  # type: ignore[attr-defined]

    async def scene() -> None:
        subscription = await broker.subscribe([Interest(topic="orders", partition=0)])
        with pytest.raises(PermissionDenied, match=r"may not topic.read .* any more"):
            await anext(aiter(subscription))

    asyncio.run(scene())
    assert inner.is_closed


# --- oneself ------------------------------------------------------------------------------------


def test_everybody_may_ask_about_oneself_and_change_the_own_password_and_tokens() -> None:
    broker, _, access = alice()

    async def scene() -> None:
        assert (await broker.whoami()).principal == ALICE
        decision = await broker.can("alice", "topic.read", kind=ResourceKind.TOPIC, name="orders")
        assert not decision.is_allowed
        assert "no grant allows topic.read" in decision.why
        with pytest.raises(NotFound):
            await broker.can("bob", "topic.read", kind=ResourceKind.TOPIC, name="orders")
        issued = await broker.create_token("alice", "ci")
        assert issued.secret not in repr(issued)
        assert [one.name for one in await broker.list_tokens("alice")] == ["ci"]
        with pytest.raises(PermissionDenied):
            await broker.alter_user("alice", roles=["admin"])
        with pytest.raises(InvalidArgument):
            await broker.alter_user("alice", password="short")

    asyncio.run(scene())
    narrowed = access.broker_for(Principal(name="alice", proof=Proof.TOKEN, token="ci"))
    signed = access.broker_for(Principal(name="alice", proof=Proof.JWT))
    for other in (narrowed, signed):
        with pytest.raises((PermissionDenied, NotFound)):
            asyncio.run(other.create_token("alice", "more"))


def test_who_is_locked_out_can_neither_unlock_itself_nor_go_on() -> None:
    broker, service, access = alice()

    async def scene() -> None:
        with pytest.raises((PermissionDenied, NotFound)):
            await broker.alter_user("alice", is_locked=False)  # before, to be as late as it can
        await access.calls.alter_user("alice", is_locked=True)
        service.returns["cluster_status"] = object()
        tries: list[Callable[[], Awaitable[object]]] = [
            lambda: broker.alter_user("alice", is_locked=False),
            lambda: broker.alter_user("alice", password="another password"),
            lambda: broker.create_token("alice", "ci"),
            lambda: broker.describe_user("alice"),
            broker.whoami,
            broker.cluster_status,
        ]
        for one in tries:
            with pytest.raises(Unauthenticated, match="locked"):
                await one()

    asyncio.run(scene())
    assert access.permissions.absence_of(ALICE)


def test_nobody_gets_out_of_a_ban_by_leaving_the_role_that_has_it() -> None:
    _, _, access = alice(roles=("admin",))
    calls, broker = access.calls, access.broker_for(ALICE)
    ban = Grant(actions=("*",), kind=ResourceKind.TOPIC, name="secret", effect=Effect.DENY)

    async def scene() -> None:
        await calls.create_role("guests")
        await calls.create_grant(SubjectKind.ROLE, "guests", ban)
        everything = Grant(actions=("*",), kind=ResourceKind.TOPIC)
        await calls.create_grant(SubjectKind.USER, "alice", everything)
        await calls.alter_user("alice", roles=["guests"])
        with pytest.raises(PermissionDenied, match=r"may not grant.create"):
            await broker.alter_user("alice", roles=())
        await broker.alter_user("alice", password="a password of her own")

    asyncio.run(scene())
    assert not broker.may(Action.TOPIC_READ, ResourceKind.TOPIC, "secret")


def test_nobody_is_called_like_who_is_no_user() -> None:
    admin, _, _ = alice(roles=("admin",))
    for name in ("anonymous", "node"):
        with pytest.raises(InvalidArgument):
            asyncio.run(admin.create_user(name))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ali\u00adce", "as 'alice'"),  # a soft hyphen
        ("\uff41lice", "as 'alice'"),  # a wide letter
        ("\ufb01n", "as 'fin'"),  # a ligature
        ("Ame\u0301lie", r"as 'Am\\xe9lie'"),  # two code points for one letter
        ("a\u00a0b", "as 'a b'"),  # a blank that does not break
        ("a\u200bb", "as 'ab'|no password or name"),  # a blank without a width
        ("a\u202eb", "no password or name"),  # what turns the direction of writing
        ("a\ue000b", "no password or name"),  # for private use
        ("a\u0627", "written from the left and from the right"),
    ],
)
def test_a_new_user_has_a_name_that_logins_compare_as_it_is(name: str, said: str) -> None:
    admin, _, access = alice(roles=("admin",))
    catalog = access.service.node.catalog
    with pytest.raises(InvalidArgument, match=said):
        asyncio.run(admin.create_user(name))
    # One that was made before stays, and can be changed.
    asyncio.run(catalog.submit(UserPut(name=name, is_new=True, scrypt="", verifiers=())))
    changed = asyncio.run(admin.alter_user(name, roles=["monitor"]))
    assert (changed.name, changed.roles) == (name, ("monitor",))
    for plain in ("Am\u00e9lie", "a b", "\u0627\u0628"):
        asyncio.run(admin.create_user(plain))
        assert asyncio.run(admin.describe_user(plain)).name == plain
        asyncio.run(admin.delete_user(plain))


def test_nobody_is_told_that_they_are_not_there_themselves() -> None:
    broker, _, _ = alice()
    with pytest.raises(PermissionDenied, match=r"'alice' may not user\.delete on user 'alice'"):
        asyncio.run(broker.delete_user("alice"))
    with pytest.raises(NotFound, match="there is no user 'bob'"):
        asyncio.run(broker.delete_user("bob"))


def test_a_token_of_nobody_is_told_like_any_other_that_nobody_has() -> None:
    admin, _, _ = alice(roles=("admin",))
    with pytest.raises(NotFound, match=r"^there is no user 'bob'$"):
        asyncio.run(admin.delete_token("bob", "ci"))
    with pytest.raises(NotFound, match=r"^'alice' has no token 'ci'$"):
        asyncio.run(admin.delete_token("alice", "ci"))


def test_an_action_that_there_is_not_is_told() -> None:
    broker, _, _ = alice()
    with pytest.raises(InvalidArgument, match="no action"):
        asyncio.run(broker.can("alice", "topic.eat", kind=ResourceKind.TOPIC))
    grant = Grant(actions=("*",), kind=ResourceKind.TOPIC, match=Match.EXACT)
    admin, _, _ = alice(roles=("admin",))
    with pytest.raises(InvalidArgument, match="names something"):
        asyncio.run(admin.create_grant(SubjectKind.USER, "alice", grant))


def test_nobody_is_told_that_somebody_is_gone_who_never_was() -> None:
    admin, _, access = alice(roles=("admin",))
    decision = asyncio.run(admin.can("nobody", "topic.read", kind=ResourceKind.TOPIC))
    assert (decision.is_allowed, decision.why) == (False, "there is no user 'nobody'")
    # Who came in and is deleted is told that, too.
    asyncio.run(access.service.node.catalog.submit(UserDelete(name="alice")))
    with pytest.raises(Unauthenticated, match="there is no user 'alice' any more"):
        asyncio.run(admin.whoami())
