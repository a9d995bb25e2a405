"""The table of permissions: deny wins, prefixes end at names, tokens narrow, order is nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.api.access import (
    ANONYMOUS,
    Action,
    Effect,
    Grant,
    Match,
    Principal,
    Proof,
    ResourceKind,
)
from angarium.api.audit import AUDIT_TOPIC
from angarium.ids import Index
from angarium.machine.catalog.access_values import Granted, GrantRow, TokenRow, UserRow
from angarium.security.permissions import Permissions, Rows, covers, names
from angarium.security.roles import ABOUT, BUILT_IN

if TYPE_CHECKING:
    import random

ALICE = Principal(name="alice", proof=Proof.PASSWORD)
TOPIC = ResourceKind.TOPIC


def table(
    *granted: Granted, roles: tuple[str, ...] = (), token: tuple[Granted, ...] | None = None
) -> Permissions:
    """Return a table in which alice has these grants and roles, and a token narrowed by `token`."""
    return Permissions(
        Rows(
            version=Index(1),
            users=[UserRow("alice", roles), UserRow("bob")],
            grants=[GrantRow(at, False, "alice", one) for at, one in enumerate(granted, 1)],
            tokens=[TokenRow("alice", "ci", b"", grants=token)],
        )
    )


def may(permissions: Permissions, principal: Principal, action: Action, name: str) -> bool:
    return permissions.decide(principal, action, TOPIC, name).is_allowed


# --- prefixes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "name", "is_named"),
    [
        ("team-a", "team-a", True),
        ("team-a", "team-a.orders", True),
        ("team-a", "team-ab", False),
        ("team-a", "team-a-b", False),
        ("team-a", "team-a_b", False),
        ("team-a", "team", False),
        ("team-a.", "team-a.orders", True),
        ("team-a.", "team-a", False),
        ("team-a-", "team-a-b", True),
        ("team-a-", "team-ab", False),
        ("", "anything", True),
        ("", "angarium.dlq", False),
        ("angarium", "angarium.dlq", True),
        ("angarium.dlq", "angarium.dlq", True),
    ],
)
def test_a_prefix_ends_at_a_boundary_of_names(prefix: str, name: str, *, is_named: bool) -> None:
    assert names(Grant(actions=("*",), kind=TOPIC, name=prefix), name) is is_named
    denies = Grant(actions=("*",), kind=TOPIC, name=prefix, effect=Effect.DENY)
    assert names(denies, name) is (is_named or not prefix), "a ban on every name has no exception"


WORD = st.text("ab-_", min_size=1, max_size=3)
NAME = st.lists(WORD, min_size=1, max_size=3).map(".".join)


@given(NAME, NAME)
def test_whatever_a_plain_prefix_names_is_it_or_below_it(prefix: str, name: str) -> None:
    grant = Grant(actions=("*",), kind=TOPIC, name=prefix)
    if prefix[-1].isalnum():
        assert names(grant, name) is (name == prefix or name.startswith(prefix + "."))
    else:
        assert names(grant, name) is name.startswith(prefix)


@given(NAME, NAME)
def test_an_exact_grant_names_one_thing(wanted: str, name: str) -> None:
    grant = Grant(actions=("*",), kind=TOPIC, name=wanted, match=Match.EXACT)
    assert names(grant, name) is (name == wanted)


# --- the laws -----------------------------------------------------------------------------------

GRANTED = st.builds(
    Granted,
    st.lists(
        st.sampled_from([Action.TOPIC_READ, Action.TOPIC_PUBLISH, "*"]), min_size=1, max_size=2
    ).map(tuple),
    st.sampled_from(["topic", "group", "of a newer release"]),
    st.sampled_from(["", "a", "a.b", "ab", "angarium"]),
    st.booleans(),
    st.booleans(),
)
GRANTS = st.lists(GRANTED, max_size=6)
ACTIONS = st.sampled_from([Action.TOPIC_READ, Action.TOPIC_PUBLISH, Action.TOPIC_DELETE])
NAMES = st.sampled_from(["a", "a.b", "ab", "c", "angarium.dlq"])


@given(GRANTS, ACTIONS, NAMES, st.randoms(use_true_random=False))
def test_order_does_not_matter(
    grants: list[Granted], action: Action, name: str, dice: random.Random
) -> None:
    shuffled = grants.copy()
    dice.shuffle(shuffled)
    assert may(table(*grants), ALICE, action, name) is may(table(*shuffled), ALICE, action, name)


@given(GRANTS, ACTIONS, NAMES)
def test_deny_wins_and_nothing_is_allowed_that_nothing_allows(
    grants: list[Granted], action: Action, name: str
) -> None:
    decision = table(*grants).decide(ALICE, action, TOPIC, name)
    if decision.is_allowed:
        assert decision.grant is not None
        assert decision.grant.effect is Effect.ALLOW
        assert covers(decision.grant, action, TOPIC, name)
    banned = Granted((action,), "topic", name, is_prefix=False, is_deny=True)
    assert not may(table(*grants, banned), ALICE, action, name)
    assert not may(table(*grants, banned, roles=("admin",)), ALICE, action, name)


@given(GRANTS, GRANTED, ACTIONS, NAMES)
def test_a_ban_more_never_allows_more_and_a_permission_more_never_less(
    grants: list[Granted], one: Granted, action: Action, name: str
) -> None:
    before = may(table(*grants), ALICE, action, name)
    after = may(table(*grants, one), ALICE, action, name)
    assert after <= before if one.is_deny else after >= before


@given(GRANTS, GRANTS, ACTIONS, NAMES)
def test_a_token_may_what_both_it_and_its_owner_may(
    grants: list[Granted], narrowing: list[Granted], action: Action, name: str
) -> None:
    holder = Principal(name="alice", proof=Proof.TOKEN, token="ci")
    permissions = table(*grants, token=tuple(narrowing))
    allowed = may(permissions, holder, action, name)
    assert allowed is (
        may(permissions, ALICE, action, name) and may(table(*narrowing), ALICE, action, name)
    )
    whole = table(*grants, token=None)
    assert may(whole, holder, action, name) is may(whole, ALICE, action, name)


# --- who counts as whom -------------------------------------------------------------------------


def test_a_user_that_is_gone_or_locked_and_a_revoked_token_may_nothing() -> None:
    locked = Permissions(Rows(Index(1), users=[UserRow("alice", ("admin",), is_locked=True)]))
    gone = Permissions(Rows(Index(1)))
    for permissions, why in ((locked, "locked"), (gone, "no user")):
        decision = permissions.decide(ALICE, Action.TOPIC_READ, TOPIC, "a")
        assert not decision.is_allowed
        assert why in decision.why
    revoked = Principal(name="alice", proof=Proof.TOKEN, token="old")
    decision = table(roles=("admin",)).decide(revoked, Action.TOPIC_READ, TOPIC, "a")
    assert not decision.is_allowed
    assert "revoked" in decision.why


def test_a_signed_name_gets_the_roles_of_its_claims_and_nothing_of_the_user_called_alike() -> None:
    permissions = table(Granted(("*",), "topic"), roles=("admin",))
    signed = Principal(name="alice", proof=Proof.JWT, roles=("monitor",))
    assert not may(permissions, signed, Action.TOPIC_READ, "a")
    assert may(permissions, signed, Action.TOPIC_DESCRIBE, "a")


def test_without_authentication_everybody_may_everything() -> None:
    empty = Permissions(Rows(Index(0)))
    for kind in ResourceKind:
        for action in Action:
            for name in ("a", "angarium.dlq", ""):
                assert empty.decide(ANONYMOUS, action, kind, name).is_allowed


def test_who_is_nobody_in_particular_may_nothing() -> None:
    nobody = Principal(name="nobody")
    assert not any(
        table().decide(nobody, action, kind, "a").is_allowed
        for action in Action
        for kind in ResourceKind
    )


def test_grants_to_a_built_in_role_do_not_count() -> None:
    row = GrantRow(1, True, "monitor", Granted(("*",), "topic"))
    permissions = Permissions(Rows(Index(1), users=[UserRow("alice", ("monitor",))], grants=[row]))
    assert not may(permissions, ALICE, Action.TOPIC_READ, "a")


# --- built-in roles -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "allowed", "refused"),
    [
        ("publisher", Action.TOPIC_PUBLISH, Action.TOPIC_READ),
        ("subscriber", Action.TOPIC_READ, Action.TOPIC_PUBLISH),
        ("monitor", Action.TOPIC_DESCRIBE, Action.TOPIC_READ),
        ("operator", Action.TOPIC_ALTER, Action.TOPIC_READ),
        ("pipeline", Action.TOPIC_CREATE, Action.TOPIC_DELETE),
    ],
)
def test_a_built_in_role_does_its_job_and_no_more(
    role: str, allowed: Action, refused: Action
) -> None:
    permissions = table(roles=(role,))
    assert may(permissions, ALICE, allowed, "orders")
    assert not may(permissions, ALICE, refused, "orders")


@pytest.mark.parametrize("role", sorted(set(BUILT_IN) - {"admin"}))
def test_only_administrators_change_who_may_what(role: str) -> None:
    permissions = table(roles=(role,))
    for action in Action:
        if action.split(".")[0] in {"user", "role", "grant", "token"} and not action.endswith(
            ".describe"
        ):
            for kind in ResourceKind:
                assert not permissions.decide(ALICE, action, kind, "bob").is_allowed


def test_every_built_in_role_has_a_sentence() -> None:
    assert set(ABOUT) == set(BUILT_IN)


@given(GRANTS)
@settings(max_examples=20)
def test_a_decision_says_why(grants: list[Granted]) -> None:
    decision = table(*grants).decide(ALICE, Action.TOPIC_READ, TOPIC, "a")
    assert decision.why
    assert decision.is_allowed or "allow" in decision.why or "deny" in decision.why


def on_audit(permissions: Permissions, action: Action, principal: Principal = ALICE) -> bool:
    return permissions.decide(principal, action, TOPIC, AUDIT_TOPIC).is_allowed


def test_nobody_but_nodes_changes_the_audit_records() -> None:
    everything = Granted(("*",), "topic", AUDIT_TOPIC, is_prefix=False, is_deny=False)
    permissions = table(everything, roles=("admin",))
    for action in (one for one in Action if one.startswith(("topic.", "deadletter."))):
        is_looking = action in {Action.TOPIC_READ, Action.TOPIC_DESCRIBE}
        assert on_audit(permissions, action) is is_looking, action
        assert on_audit(permissions, action, ANONYMOUS) is is_looking, action
    why = permissions.decide(ALICE, Action.TOPIC_DELETE, TOPIC, AUDIT_TOPIC).why
    assert why == "angarium.audit is written, kept and trimmed by the nodes alone"
    node = Principal(name="node", proof=Proof.NODE)
    assert on_audit(permissions, Action.TOPIC_PUBLISH, node)


def test_audit_records_are_read_by_an_action_of_their_own() -> None:
    reading = Granted(("topic.read",), "topic", "angarium", is_prefix=True, is_deny=False)
    assert not on_audit(table(reading), Action.TOPIC_READ)
    assert on_audit(table(reading), Action.TOPIC_DESCRIBE)
    auditing = Granted(("audit.read",), "cluster", "", is_prefix=True, is_deny=False)
    assert on_audit(table(auditing), Action.TOPIC_READ)
    assert on_audit(table(auditing), Action.TOPIC_DESCRIBE)
    assert on_audit(table(roles=("auditor",)), Action.TOPIC_READ)
    for role in ("operator", "subscriber", "monitor", "pipeline"):
        assert not on_audit(table(roles=(role,)), Action.TOPIC_READ)


def test_a_ban_and_a_token_narrow_who_reads_audit_records() -> None:
    auditing = Granted(("audit.read",), "cluster", "", is_prefix=True, is_deny=False)
    ban = Granted(("topic.read",), "topic", AUDIT_TOPIC, is_prefix=False, is_deny=True)
    assert not on_audit(table(auditing, ban), Action.TOPIC_READ)
    by_token = Principal(name="alice", proof=Proof.TOKEN, token="ci")
    elsewhere = Granted(("topic.read",), "topic", "orders", is_prefix=False, is_deny=False)
    assert not on_audit(table(auditing, token=(elsewhere,)), Action.TOPIC_READ, by_token)
    assert on_audit(table(auditing, token=(auditing,)), Action.TOPIC_READ, by_token)
