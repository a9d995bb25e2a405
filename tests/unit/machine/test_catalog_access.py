"""Users, roles, grants and tokens in the catalog: rules, bounds, and the same state everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.leader import assert_refused
from tests.unit.machine.test_catalog_machine import Catalog

from angarium.errors import CorruptData
from angarium.ids import Index, Micros, Term
from angarium.machine import Done
from angarium.machine.catalog import (
    CatalogCommand,
    CatalogMachine,
    Form,
    GrantDelete,
    Granted,
    GrantMade,
    GrantPut,
    Holders,
    QuotaPut,
    RoleDelete,
    RolePut,
    TokenDelete,
    TokenPut,
    UserDelete,
    UserPut,
    VerifierRow,
    access,
    decode,
    encode,
)

READ = Granted(("topic.read",), "topic", "team-a")
VERIFIER = VerifierRow("SCRAM-SHA-256", b"salt", 4096, b"stored", b"server")
DIGEST = bytes(range(32))


def digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


def with_alice() -> Catalog:
    catalog = Catalog()
    assert catalog.do(UserPut(name="alice", is_new=True, roles=("reader",))) == Done()
    return catalog


# --- users --------------------------------------------------------------------------------------


def test_a_user_is_made_once_and_changed_in_parts() -> None:
    catalog = with_alice()
    users = catalog.machine.access.users
    assert users["alice"].created_at == Micros(catalog.index)
    assert_refused(catalog.do(UserPut(name="alice", is_new=True)), "ALREADY_EXISTS")
    assert_refused(catalog.do(UserPut(name="bob", roles=("admin",))), "NOT_FOUND")
    assert catalog.do(UserPut(name="alice", scrypt="$scrypt$", verifiers=(VERIFIER,))) == Done()
    assert catalog.do(UserPut(name="alice", is_locked=True)) == Done()
    alice = users["alice"]
    assert (alice.roles, alice.scrypt, alice.is_locked) == (("reader",), "$scrypt$", True)
    assert alice.verifiers == (VERIFIER,)
    assert catalog.do(UserPut(name="alice", is_locked=True)) == Done(changed=False)


def test_a_user_goes_with_its_grants_and_tokens_and_nobody_elses() -> None:
    catalog = with_alice()
    catalog.do(RolePut(name="alice", is_new=True))
    for is_role in (False, True):
        catalog.do(GrantPut(is_role=is_role, subject="alice", granted=READ))
    catalog.do(TokenPut(owner="alice", name="ci", digest=DIGEST))
    assert catalog.do(UserDelete(name="alice")) == Done()
    tables = catalog.machine.access
    assert [one.is_role for one in tables.grants.values()] == [True]
    assert not tables.tokens
    assert not tables.tokens_by_digest
    assert_refused(catalog.do(UserDelete(name="alice")), "NOT_FOUND")


def with_holders(count: int = 1) -> Catalog:
    catalog = Catalog()
    catalog.do(RolePut(name="reader", is_new=True))
    catalog.do(GrantPut(is_role=True, subject="reader", granted=READ))
    for number in range(count):
        roles = ("publisher", "reader")
        catalog.do(UserPut(name=f"user-{number:02}", is_new=True, roles=roles))
    return catalog


def test_a_role_that_users_hold_is_not_deleted_and_the_refusal_names_some() -> None:
    catalog = with_holders(12)
    wish = RoleDelete(name="reader", holders=Holders.PROTECT)
    refused = catalog.do(wish)
    for said in ("'user-00', 'user-01'", "'user-09' and 2 more", "role delete reader --force"):
        assert_refused(refused, "ROLE_HELD", said)
    assert "reader" in catalog.machine.access.roles
    assert catalog.machine.access.grants
    for number in range(12):
        catalog.do(UserPut(name=f"user-{number:02}", roles=("publisher",)))
    assert catalog.do(wish) == Done()


def test_a_role_is_taken_from_its_holders_in_the_entry_that_deletes_it() -> None:
    catalog = with_holders(2)
    assert catalog.do(RoleDelete(name="reader", holders=Holders.LOSE)) == Done()
    tables = catalog.machine.access
    assert [one.roles for one in tables.users.values()] == [("publisher",)] * 2
    assert tables.version == catalog.index
    catalog.do(RolePut(name="reader", is_new=True))
    assert [one.roles for one in tables.users.values()] == [("publisher",)] * 2


def roles_of(catalog: Catalog, name: str) -> tuple[str, ...]:
    return catalog.machine.access.users[name].roles


def test_a_role_that_is_created_takes_its_name_from_former_holders() -> None:
    catalog = with_holders(1)
    assert catalog.do(RoleDelete(name="reader")) == Done(), "as before feature level 8"
    assert roles_of(catalog, "user-00") == ("publisher", "reader")
    catalog.do(QuotaPut(kind="role", subject="reader", limits=(("requests", 1),)))
    catalog.do(RolePut(name="reader", is_new=True, is_unheld=True))
    assert roles_of(catalog, "user-00") == ("publisher",)
    assert not catalog.machine.access.quotas.rows
    catalog.do(UserPut(name="user-00", roles=("reader",), roles_needed=("reader",)))
    catalog.do(RolePut(name="reader", about="reads", is_unheld=True))
    assert roles_of(catalog, "user-00") == ("reader",), "it was there already"


def test_a_role_that_is_gone_by_then_is_not_given_to_a_user() -> None:
    catalog = with_holders(1)
    catalog.do(RoleDelete(name="reader", holders=Holders.LOSE))
    for is_new, name in ((True, "eve"), (False, "user-00")):
        wish = UserPut(name=name, is_new=is_new, roles=("reader",), roles_needed=("reader",))
        assert_refused(catalog.do(wish), "NOT_FOUND")
    assert catalog.machine.access.users["user-00"].roles == ("publisher",)


@pytest.mark.parametrize("name", ["", " a", "a ", "a\n", "\x7f", "a" * 129])
def test_a_name_that_nobody_could_read_is_refused(name: str) -> None:
    catalog = with_alice()
    assert_refused(catalog.do(UserPut(name=name, is_new=True)), "INVALID_ARGUMENT")
    assert_refused(catalog.do(RolePut(name=name, is_new=True)), "INVALID_ARGUMENT")
    wish = TokenPut(owner="alice", name=name, digest=DIGEST)
    assert_refused(catalog.do(wish), "INVALID_ARGUMENT")


# --- roles and grants ---------------------------------------------------------------------------


def test_the_same_grant_again_is_the_one_that_is_there() -> None:
    catalog = with_alice()
    wish = GrantPut(is_role=False, subject="alice", granted=READ)
    assert catalog.do(wish) == GrantMade(1)
    version = catalog.machine.access.version
    assert catalog.do(wish) == GrantMade(1, repeated=True)
    assert catalog.machine.access.version == version
    assert catalog.do(GrantDelete(grant=1)) == Done()
    assert catalog.do(wish) == GrantMade(2), "numbers are never given again"
    assert_refused(catalog.do(GrantDelete(grant=1)), "NOT_FOUND")


def test_a_grant_is_given_to_somebody_who_is_there() -> None:
    catalog = with_alice()
    assert_refused(catalog.do(GrantPut(is_role=True, subject="alice", granted=READ)), "NOT_FOUND")
    assert_refused(catalog.do(GrantPut(is_role=False, subject="bob", granted=READ)), "NOT_FOUND")


def test_a_role_goes_with_its_grants() -> None:
    catalog = with_alice()
    catalog.do(RolePut(name="reader", is_new=True, about="reads"))
    catalog.do(GrantPut(is_role=True, subject="reader", granted=READ))
    assert catalog.do(RoleDelete(name="reader")) == Done()
    assert not catalog.machine.access.grants


# --- tokens -------------------------------------------------------------------------------------


def test_a_token_under_the_same_name_takes_the_place_of_the_old_one() -> None:
    catalog = with_alice()
    catalog.do(TokenPut(owner="alice", name="ci", digest=digest(1)))
    catalog.do(TokenPut(owner="alice", name="ci", digest=digest(2)))
    tables = catalog.machine.access
    assert list(tables.tokens_by_digest) == [digest(2)]
    taken = TokenPut(owner="alice", name="other", digest=digest(2))
    assert_refused(catalog.do(taken), "ALREADY_EXISTS")
    assert catalog.do(TokenDelete(owner="alice", name="ci")) == Done()
    assert_refused(catalog.do(TokenDelete(owner="alice", name="ci")), "NOT_FOUND")


def test_a_token_has_an_owner_and_a_whole_digest() -> None:
    catalog = with_alice()
    assert_refused(catalog.do(TokenPut(owner="bob", name="ci", digest=DIGEST)), "NOT_FOUND")
    short = TokenPut(owner="alice", name="ci", digest=b"short")
    assert_refused(catalog.do(short), "INVALID_ARGUMENT")


# --- bounds -------------------------------------------------------------------------------------


def test_no_table_grows_beyond_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USERS_MAX", "ROLES_MAX", "GRANTS_MAX", "TOKENS_OF_USER_MAX"):
        monkeypatch.setattr(access, name, 1)
    catalog = with_alice()
    catalog.do(RolePut(name="one", is_new=True))
    catalog.do(GrantPut(is_role=True, subject="one", granted=READ))
    catalog.do(TokenPut(owner="alice", name="one", digest=digest(1)))
    more: tuple[CatalogCommand, ...] = (
        UserPut(name="bob", is_new=True),
        RolePut(name="two", is_new=True),
        GrantPut(is_role=False, subject="alice", granted=READ),
        TokenPut(owner="alice", name="two", digest=digest(2)),
    )
    for wish in more:
        assert_refused(catalog.do(wish), "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize(
    "wish",
    [
        UserPut(name="alice", roles=tuple(map(str, range(33)))),
        UserPut(name="alice", scrypt="x" * 1_025),
        UserPut(name="alice", verifiers=(VerifierRow("S", b"x" * 2_000, 1, b"", b""),)),
        UserPut(name="alice", verifiers=(VERIFIER,) * 9),
        GrantPut(is_role=False, subject="alice", granted=Granted((), "topic")),
        GrantPut(is_role=False, subject="alice", granted=Granted(("a",) * 65, "topic")),
        GrantPut(is_role=False, subject="alice", granted=Granted(("a",), "topic", "n" * 257)),
        TokenPut(owner="alice", name="t", digest=DIGEST, grants=(READ,) * 65),
        RolePut(name="r", is_new=True, about="x" * 257),
    ],
)
def test_what_is_larger_than_a_row_may_be_is_refused_and_changes_nothing(
    wish: CatalogCommand,
) -> None:
    catalog = with_alice()
    before = catalog.machine.access.version
    assert_refused(catalog.do(wish), "TOO_LARGE")
    assert catalog.machine.access.version == before


# --- the same on every replica ------------------------------------------------------------------

NAMES = st.sampled_from(["alice", "bob", "reader", ""])
GRANTED = st.builds(
    Granted,
    st.lists(st.sampled_from(["topic.read", "*", ""]), max_size=2).map(tuple),
    st.sampled_from(["topic", "group", "no such kind"]),
    st.sampled_from(["", "a", "a.b"]),
    st.booleans(),
    st.booleans(),
)
COMMANDS = st.one_of(
    st.builds(
        UserPut,
        name=NAMES,
        is_new=st.booleans(),
        roles=st.none() | st.lists(NAMES, max_size=2).map(tuple),
        scrypt=st.none() | st.sampled_from(["", "$scrypt$"]),
        verifiers=st.none() | st.just((VERIFIER,)),
        is_locked=st.none() | st.booleans(),
        roles_needed=st.lists(NAMES, max_size=1).map(tuple),
    ),
    st.builds(UserDelete, name=NAMES),
    st.builds(
        RolePut,
        name=NAMES,
        is_new=st.booleans(),
        about=st.sampled_from(["", "x"]),
        is_unheld=st.booleans(),
    ),
    st.builds(RoleDelete, name=NAMES, holders=st.sampled_from(Holders)),
    st.builds(GrantPut, is_role=st.booleans(), subject=NAMES, granted=GRANTED),
    st.builds(GrantDelete, grant=st.integers(-1, 5)),
    st.builds(
        TokenPut,
        owner=NAMES,
        name=NAMES,
        digest=st.sampled_from([digest(1), digest(2), b""]),
        until=st.none() | st.integers(0, 9).map(Micros),
        grants=st.none() | st.lists(GRANTED, max_size=2).map(tuple),
    ),
    st.builds(TokenDelete, owner=NAMES, name=NAMES),
)


@given(st.lists(COMMANDS, max_size=40), st.integers(0, 40))
@settings(deadline=None)
def test_a_replica_that_was_restored_on_the_way_ends_like_the_others(
    wishes: list[CatalogCommand], restored_at: int
) -> None:
    one, other = Catalog(), Catalog()
    for at, wish in enumerate(wishes):
        if at == restored_at:
            fresh = CatalogMachine()
            fresh.restore(other.machine.snapshot())
            other.machine = fresh
        assert one.do(wish) == other.do(wish)
        digests = {row.digest for row in one.machine.access.tokens.values()}
        assert digests == set(one.machine.access.tokens_by_digest)
    assert one.machine.snapshot() == other.machine.snapshot()
    assert one.machine.running_hash == other.machine.running_hash
    read_back = CatalogMachine()
    read_back.restore(one.machine.snapshot())
    for table in ("users", "roles", "grants", "tokens", "tokens_by_digest", "version"):
        assert getattr(read_back.access, table) == getattr(one.machine.access, table)


@given(st.integers(80, 87), st.binary(max_size=60))
@settings(deadline=None)
def test_hostile_bytes_are_refused_and_the_machine_goes_on(kind: int, body: bytes) -> None:
    catalog = with_alice()
    catalog.index += 1
    catalog.machine.apply(Index(catalog.index), Term(1), bytes((kind, 1)) + body)
    assert "alice" in catalog.machine.access.users
    catalog.do(UserPut(name="eve", is_new=True))
    assert "eve" in catalog.machine.access.users


@given(st.data())
@settings(deadline=None, max_examples=50)
def test_a_damaged_snapshot_is_noticed_or_read_whole(data: st.DataObject) -> None:
    catalog = with_alice()
    catalog.do(TokenPut(owner="alice", name="ci", digest=DIGEST, grants=(READ,)))
    whole = catalog.machine.snapshot()
    cut = data.draw(st.integers(0, len(whole) - 1))
    fresh = CatalogMachine()
    with pytest.raises(CorruptData):
        fresh.restore(whole[:cut])
    assert not fresh.access.users, "a snapshot that is refused changes nothing"


def test_a_state_without_users_has_no_part_that_older_releases_do_not_know() -> None:
    catalog = Catalog()
    parts = {one[0] for one in catalog.machine.snapshot_slices()}
    assert not parts & {24, 25, 26, 27}
    assert {24} <= {one[0] for one in with_alice().machine.snapshot_slices()}


# --- for ever -----------------------------------------------------------------------------------

GOLDEN: dict[str, CatalogCommand] = {
    "50019700a5616c696365c391a561646d696ea8247363727970742491"
    "95ad534352414d2d5348412d323536c40473616c74cd1000c40673746f726564c406736572766572c2": UserPut(
        name="alice",
        is_new=True,
        roles=("admin",),
        scrypt="$scrypt$",
        verifiers=(VERIFIER,),
        is_locked=False,
    ),
    "51019200a5616c696365": UserDelete(name="alice"),
    "52019400a6726561646572c3a57265616473": RolePut(name="reader", is_new=True, about="reads"),
    "53019200a6726561646572": RoleDelete(name="reader"),
    "54019400c3a67265616465729591aa746f7069632e72656164a5746f706963a67465616d2d61c3c2": GrantPut(
        is_role=True, subject="reader", granted=READ
    ),
    "5501920007": GrantDelete(grant=7),
    "56019600a5616c696365a26369c420000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    "09919591aa746f7069632e72656164a5746f706963a67465616d2d61c3c2": TokenPut(
        owner="alice", name="ci", digest=DIGEST, until=Micros(9), grants=(READ,)
    ),
    "57019300a5616c696365a26369": TokenDelete(owner="alice", name="ci"),
}
"""Entries as they lie in logs; what is here must be read as this for ever."""

GOLDEN_OF_LEVEL_8: dict[str, CatalogCommand] = {
    "50019800a3626f62c291a6726561646572c0c0c091a6726561646572": UserPut(
        name="bob", roles=("reader",), roles_needed=("reader",)
    ),
    "52019500a6726561646572c3a57265616473c3": RolePut(
        name="reader", is_new=True, about="reads", is_unheld=True
    ),
    "53019300a672656164657201": RoleDelete(name="reader", holders=Holders.PROTECT),
    "53019300a672656164657202": RoleDelete(name="reader", holders=Holders.LOSE),
}
"""Those whose commands got columns since."""

_GREW = (UserPut, RolePut, RoleDelete)


@pytest.mark.parametrize("entry", GOLDEN)
def test_entries_of_the_first_version_are_read_as_ever(entry: str) -> None:
    assert decode(bytes.fromhex(entry)) == GOLDEN[entry]
    if not isinstance(GOLDEN[entry], _GREW):
        assert encode(GOLDEN[entry]).hex() == entry


@pytest.mark.parametrize("entry", GOLDEN_OF_LEVEL_8)
def test_entries_of_feature_level_8_are_read_as_ever(entry: str) -> None:
    assert decode(bytes.fromhex(entry)) == GOLDEN_OF_LEVEL_8[entry]
    assert encode(GOLDEN_OF_LEVEL_8[entry]).hex() == entry


def test_nothing_secret_is_shown() -> None:
    wish = UserPut(name="alice", scrypt="$scrypt$secret", verifiers=(VERIFIER,))
    token = TokenPut(owner="alice", name="ci", digest=DIGEST)
    catalog = with_alice()
    catalog.do(wish)
    catalog.do(token)
    tables = catalog.machine.access
    shown = repr((wish, token, tables.users, tables.tokens))
    for secret in ("$scrypt$", "stored", "server", repr(DIGEST)[2:8]):
        assert secret not in shown


def test_the_cluster_is_formed_first() -> None:
    catalog = Catalog(formed=False)
    assert_refused(catalog.do(UserPut(name="alice", is_new=True)), "PRECONDITION_FAILED")
    catalog.do(Form(cluster="one"))
    assert catalog.do(UserPut(name="alice", is_new=True)) == Done()
