"""Quotas on topics and partitions: counted and judged where they are created."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.leader import assert_refused
from tests.unit.machine.test_catalog_machine import Catalog

from angarium.api.access import ADMIN as ADMIN_OF_THE_CONTRACT
from angarium.api.quotas import QuotaKind
from angarium.ids import Index, Micros, NodeId, RaftGroupId, Term, TopicId
from angarium.machine import Refused
from angarium.machine.catalog import (
    CatalogCommand,
    CatalogMachine,
    CatalogOutcome,
    JoinTokenPut,
    Maker,
    NodeDrain,
    QuotaPut,
    TopicAlter,
    TopicCreate,
    TopicDelete,
    TopicMade,
    TopicSettings,
    UserDelete,
    UserPut,
    creations,
    decode,
    encode,
    quotas,
)
from angarium.machine.catalog.creations import Made

if TYPE_CHECKING:
    import pytest

ONE = TopicSettings(replication=1)
ALICE = Maker("user:alice:2", "alice")
BOB = Maker("user:bob:3", "bob")
CLAIMED = Maker("jwt:alice", roles=("pipeline",))


def with_users(**limits: int) -> Catalog:
    """Return a catalog with a node and two users; `limits` are alice's."""
    catalog = Catalog(nodes=1)
    for name in ("alice", "bob"):
        catalog.do(UserPut(name=name, is_new=True))
    if limits:
        catalog.do(limit("user", "alice", **limits))
    return catalog


def limit(kind: str, subject: str, **limits: int) -> QuotaPut:
    return QuotaPut(kind=kind, subject=subject, limits=tuple(limits.items()))


def create(
    catalog: Catalog, name: str, maker: Maker | None = ALICE, partitions: int = 1
) -> CatalogOutcome:
    return catalog.do(TopicCreate(name=name, partitions=partitions, settings=ONE, maker=maker))


def made(catalog: Catalog, maker: Maker = ALICE) -> Made:
    return catalog.machine.topics.creations.of(maker.creator)


def test_a_principal_creates_up_to_its_limit_and_is_told_what_to_do() -> None:
    catalog = with_users(topics=2)
    for name in ("a", "b"):
        assert isinstance(create(catalog, name), TopicMade)
    said = (
        "topics: 'alice' has created 2 topics that still exist, and 1 more would exceed the limit "
        "of 2 (the quota of user 'alice'); delete topics, or have the limit raised: "
        "`angarium quota set user:alice --topics N`"
    )
    assert create(catalog, "c") == Refused("TOPIC_QUOTA_EXCEEDED", said)
    assert "c" not in catalog.machine.topics.by_name
    assert isinstance(create(catalog, "c", BOB), TopicMade), "each principal has its own"
    assert isinstance(create(catalog, "d", None), TopicMade), "counts for none"


def test_asking_again_for_a_topic_is_no_second_one() -> None:
    catalog = with_users(topics=1)
    create(catalog, "a")
    assert create(catalog, "a") == TopicMade(TopicId(1), (RaftGroupId(1),), repeated=True)
    assert made(catalog) == Made(1, 1)


def test_deleting_a_topic_gives_it_back_also_what_others_added() -> None:
    catalog = with_users(topics=1, partitions=3)
    create(catalog, "a", partitions=2)
    catalog.do(TopicAlter(topic=TopicId(1), partitions=5, maker=BOB))
    assert (made(catalog), made(catalog, BOB)) == (Made(1, 2), Made(0, 3))
    catalog.do(TopicDelete(topic=TopicId(1)))
    assert (made(catalog), made(catalog, BOB)) == (Made(), Made())
    assert not catalog.machine.topics.creations.by_creator, "nothing is kept of who has nothing"
    assert isinstance(create(catalog, "b", partitions=3), TopicMade)


def test_partitions_count_when_a_topic_is_created_and_when_they_are_added() -> None:
    catalog = with_users(partitions=4)
    assert_refused(create(catalog, "a", partitions=5), "TOPIC_QUOTA_EXCEEDED")
    assert isinstance(create(catalog, "a", partitions=3), TopicMade)
    more = TopicAlter(topic=TopicId(1), partitions=5, maker=ALICE)
    assert_refused(catalog.do(more), "TOPIC_QUOTA_EXCEEDED")
    assert len(catalog.machine.topics.by_id[TopicId(1)].groups) == 3
    assert isinstance(
        catalog.do(TopicAlter(topic=TopicId(1), partitions=4, maker=ALICE)), TopicMade
    )
    assert made(catalog) == Made(1, 4)
    other = TopicSettings(replication=1, retention_bytes=9)
    altered = catalog.do(TopicAlter(topic=TopicId(1), settings=other, maker=ALICE))
    assert isinstance(altered, TopicMade), "settings alone create nothing"


def test_partitions_that_are_added_to_anothers_topic_count_for_who_adds_them() -> None:
    catalog = with_users(partitions=4)
    create(catalog, "of-bob", BOB, partitions=2)
    create(catalog, "older", None, partitions=2)
    for topic in (1, 2):
        added = catalog.do(TopicAlter(topic=TopicId(topic), partitions=4, maker=ALICE))
        assert isinstance(added, TopicMade)
    refused = catalog.do(TopicAlter(topic=TopicId(2), partitions=5, maker=ALICE))
    assert_refused(refused, "TOPIC_QUOTA_EXCEEDED")
    assert (made(catalog), made(catalog, BOB)) == (Made(0, 4), Made(1, 2))
    assert catalog.machine.topics.by_id[TopicId(2)].creator == ""


def test_without_a_quota_the_built_in_default_counts_and_administrators_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = {**quotas._BUILT_IN, ("default", ""): {"topics": 1, "partitions": 2}}
    monkeypatch.setattr(quotas, "_BUILT_IN", few)
    catalog = with_users()
    catalog.do(UserPut(name="bob", roles=(quotas.ADMIN,)))
    create(catalog, "a")
    assert_refused(create(catalog, "b"), "TOPIC_QUOTA_EXCEEDED", "the built-in default")
    administrators = (BOB, Maker("jwt:root", roles=(quotas.ADMIN,)))
    for at, maker in enumerate(administrators):
        assert isinstance(create(catalog, f"c{at}", maker, partitions=50), TopicMade)
        assert isinstance(create(catalog, f"d{at}", maker), TopicMade)
    catalog.do(limit("default", "", topics=2))
    assert isinstance(create(catalog, "b"), TopicMade), "a row counts before what is built in"
    assert_refused(create(catalog, "e"), "TOPIC_QUOTA_EXCEEDED", "the default quota")
    assert isinstance(create(catalog, "e", BOB), TopicMade), "a role counts before the default"
    catalog.do(limit("role", quotas.ADMIN, topics=3))
    assert_refused(create(catalog, "f", BOB), "TOPIC_QUOTA_EXCEEDED")
    catalog.do(limit("user", "bob", topics=-1))
    assert isinstance(create(catalog, "f", BOB), TopicMade)


def test_a_jwt_counts_by_its_roles_and_never_as_the_user_of_its_name() -> None:
    catalog = with_users(topics=9)
    catalog.do(limit("role", "pipeline", topics=1))
    assert isinstance(create(catalog, "a", CLAIMED), TopicMade)
    refused = create(catalog, "b", CLAIMED)
    assert_refused(refused, "TOPIC_QUOTA_EXCEEDED", "'jwt:alice'")
    assert_refused(refused, "TOPIC_QUOTA_EXCEEDED", "the quota of role 'pipeline'")
    assert made(catalog) == Made()


def test_the_most_generous_role_counts() -> None:
    catalog = with_users()
    catalog.do(UserPut(name="alice", roles=("few", "many")))
    catalog.do(limit("role", "few", topics=1))
    catalog.do(limit("role", "many", topics=2))
    for name in ("a", "b"):
        assert isinstance(create(catalog, name), TopicMade)
    assert_refused(create(catalog, "c"), "TOPIC_QUOTA_EXCEEDED")


def test_a_user_that_is_created_anew_begins_at_zero() -> None:
    catalog = with_users(topics=1)
    create(catalog, "a")
    catalog.do(UserDelete(name="alice"))
    catalog.do(UserPut(name="alice", is_new=True))
    catalog.do(limit("user", "alice", topics=1))
    assert isinstance(create(catalog, "b", Maker("user:alice:9", "alice")), TopicMade)


def test_what_exists_already_and_what_older_nodes_create_counts_for_none() -> None:
    catalog = with_users(topics=1)
    older = encode(TopicCreate(name="old", settings=ONE))
    older = older[:2] + bytes((older[2] - 1,)) + older[3:-1]  # one column less
    assert decode(older) == TopicCreate(name="old", settings=ONE)
    catalog.index += 1
    catalog.machine.apply(Index(catalog.index), Term(1), older)
    topic = catalog.machine.topics.by_id[TopicId(1)]
    assert (topic.name, topic.creator, topic.partitions_by) == ("old", "", ())
    assert isinstance(create(catalog, "a"), TopicMade)


def test_a_creation_that_fails_counts_nothing() -> None:
    catalog = with_users(topics=1)
    catalog.do(NodeDrain(node=NodeId(1)))
    assert_refused(create(catalog, "a"), "PRECONDITION_FAILED")
    assert_refused(create(catalog, "a."), "INVALID_ARGUMENT")
    assert made(catalog) == Made()


def test_what_a_creator_is_called_and_brings_is_bounded() -> None:
    catalog = with_users()
    for maker in (Maker(""), Maker("x" * (creations.CREATOR_CHARACTERS_MAX + 1))):
        assert_refused(create(catalog, "a", maker), "INVALID_ARGUMENT")
    many = Maker("jwt:x", roles=("r",) * (creations.ROLES_MAX + 1))
    assert_refused(create(catalog, "a", many), "TOO_LARGE")


def test_the_words_of_the_catalog_are_those_of_the_contract() -> None:
    assert (creations.TOPICS, creations.PARTITIONS) == (QuotaKind.TOPICS, QuotaKind.PARTITIONS)
    assert quotas.ADMIN == ADMIN_OF_THE_CONTRACT


def test_entries_of_feature_level_8_are_read_as_ever() -> None:
    create = TopicCreate(name="a", settings=ONE, maker=ALICE)
    alter = TopicAlter(topic=TopicId(1), partitions=2, maker=CLAIMED)
    issue = JoinTokenPut(digest=bytes(2), until=Micros(9), issuer="alice")
    maker = "93ac757365723a616c6963653a32a5616c69636590"
    assert encode(create).hex().endswith(f"c2{maker}")
    assert (
        encode(alter).hex()
        == "4501950001" + "02c0" + "93a96a77743a616c696365a091a8706970656c696e65"
    )
    assert encode(issue).hex() == "64019400c402000009a5616c696365"
    for one in (create, alter, issue):
        assert decode(encode(one)) == one


MAKERS = st.sampled_from([None, ALICE, BOB, CLAIMED])
TOPIC_NAMES = st.sampled_from(["a", "b", "c", "d"])
COMMANDS = st.one_of(
    st.builds(
        TopicCreate,
        name=TOPIC_NAMES,
        partitions=st.integers(1, 3),
        settings=st.just(ONE),
        maker=MAKERS,
    ),
    st.builds(
        TopicAlter,
        topic=st.integers(1, 6).map(TopicId),
        partitions=st.integers(1, 6),
        maker=MAKERS,
    ),
    st.builds(TopicDelete, topic=st.integers(1, 6).map(TopicId)),
)


@given(st.lists(COMMANDS, max_size=30), st.integers(0, 30))
@settings(deadline=None)
def test_counts_are_what_exists_never_exceed_limits_and_survive_a_snapshot(
    wishes: list[CatalogCommand], restored_at: int
) -> None:
    one, other = with_users(topics=2, partitions=5), with_users(topics=2, partitions=5)
    for at, wish in enumerate(wishes):
        if at == restored_at:
            fresh = CatalogMachine()
            fresh.restore(other.machine.snapshot())
            other.machine = fresh
        assert one.do(wish) == other.do(wish)
        topics = one.machine.topics
        counted = topics.creations.by_creator
        assert counted == other.machine.topics.creations.by_creator
        kept = Counter[str]()
        partitions = Counter[str]()
        for topic in topics.by_id.values():
            kept[topic.creator] += 1
            for creator, count in topic.partitions_by:
                partitions[creator] += count
            assert sum(count for _, count in topic.partitions_by) <= len(topic.groups)
        for creator in {*kept, *partitions, *counted} - {""}:
            assert topics.creations.of(creator) == (kept[creator], partitions[creator])
        assert made(one) <= (2, 5)
        assert made(one).partitions <= 5
    assert one.machine.snapshot() == other.machine.snapshot()
