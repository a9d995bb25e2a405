"""Proofs become principals, and nothing else does."""

from __future__ import annotations

import asyncio
import base64

import pytest
from tests.accounts import AccountsInMemory, account

from angarium.api.access import ANONYMOUS, Principal, Proof
from angarium.errors import LimitExceeded, Unauthenticated
from angarium.ids import Micros
from angarium.security import PasswordHash
from angarium.security import authenticating as page
from angarium.security.accounts import KnownToken
from angarium.security.authenticating import Authenticator
from angarium.security.certificate_users import CertificateUsers
from angarium.security.principals import PasswordPrincipal, edition_of, shown
from angarium.security.scram import ClientExchange, Mechanism, salted_password
from angarium.security.slowing import Slowing
from angarium.security.tls import Certificate
from angarium.security.tokens import new_token, token_digest

NOW_S = 1_800_000_000


class Fixture:
    def __init__(self) -> None:
        self.now_s = float(NOW_S)
        self.clock = 0.0
        self.catalog = AccountsInMemory(
            account("alice", "right"), account("bob", "b", is_locked=True)
        )
        self.checking = Authenticator(
            self.catalog,
            anonymous=None,
            slowing=Slowing(clock=lambda: self.clock),
            wall_clock=lambda: self.now_s,
        )

    def alice(self) -> Principal:
        """Who comes with the password that alice has now."""
        edition = edition_of(self.catalog.users["alice"].password_hash)
        return PasswordPrincipal(name="alice", proof=Proof.PASSWORD, edition=edition)


@pytest.fixture
def made() -> Fixture:
    return Fixture()


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_a_password_makes_a_principal_and_is_remembered(made: Fixture) -> None:
    header = basic("alice", "right")
    assert made.checking.known(header) is None
    assert asyncio.run(made.checking.header(header, source="10.0.0.1")) == made.alice()
    assert made.checking.known(header) == made.alice()


def test_a_new_password_ends_what_was_remembered(made: Fixture) -> None:
    header = basic("alice", "right")
    asyncio.run(made.checking.header(header, source="10.0.0.1"))
    made.catalog.users["alice"] = account("alice", "other")
    assert made.checking.known(header) is None
    with pytest.raises(Unauthenticated):
        asyncio.run(made.checking.header(header, source="10.0.0.1"))


def test_a_password_that_is_changed_while_it_is_checked_lets_nobody_in(made: Fixture) -> None:
    async def scenario() -> None:
        login = asyncio.ensure_future(made.checking.password("alice", "right", source="10.0.0.1"))
        await asyncio.sleep(0)
        made.catalog.users["alice"] = account("alice", "other")
        with pytest.raises(Unauthenticated, match="wrong"):
            await login

    asyncio.run(scenario())


def test_a_login_that_was_begun_before_the_password_changed_lets_nobody_in(made: Fixture) -> None:
    client = ClientExchange("alice")
    login = made.checking.scram(Mechanism.SHA_256, source="10.0.0.1")
    line = login.first(client.first())
    salt, iterations = client.challenge(line)
    salted = salted_password("right", Mechanism.SHA_256, salt=salt, iterations=iterations)
    proof = client.final(line, salted)
    made.catalog.users["alice"] = account("alice", "other")
    with pytest.raises(Unauthenticated, match="wrong"):
        login.final(proof)


def test_the_same_password_set_again_is_another_proof(made: Fixture) -> None:
    before = made.alice()
    again = str(PasswordHash.of("right"))
    made.catalog.users["alice"] = made.catalog.users["alice"]._replace(password_hash=again)
    assert made.alice() != before
    assert shown(made.alice()) == shown(before), "what is told of somebody is the same"


@pytest.mark.parametrize(
    ("name", "password"),
    [("alice", "wrong"), ("nobody", "right"), ("bob", "b"), ("alice", ""), ("alice", "x" * 2_000)],
)
def test_every_refusal_has_the_same_words(made: Fixture, name: str, password: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        asyncio.run(made.checking.password(name, password, source="10.0.0.1"))
    assert str(caught.value) == page.WRONG


def test_nothing_brought_is_refused_and_with_authentication_off_everybody_is_anonymous(
    made: Fixture,
) -> None:
    assert made.checking.known(None) is None
    with pytest.raises(Unauthenticated, match="ANGARIUM_TOKEN"):
        asyncio.run(made.checking.header(None, source="10.0.0.1"))
    off = Authenticator(made.catalog, anonymous=ANONYMOUS)
    for header in (None, "garbage", basic("alice", "wrong")):
        assert off.known(header) is ANONYMOUS
        assert asyncio.run(off.header(header, source="x")) is ANONYMOUS


def scram(checking: Authenticator, name: str, password: str, mechanism: Mechanism) -> Principal:
    client = ClientExchange(name, mechanism)
    login = checking.scram(mechanism, source="10.0.0.1")
    line = login.first(client.first())
    salt, iterations = client.challenge(line)
    salted = salted_password(password, mechanism, salt=salt, iterations=iterations)
    answer, found = login.final(client.final(line, salted))
    client.check(answer)
    return found


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_scram_makes_the_same_principal(made: Fixture, mechanism: Mechanism) -> None:
    assert scram(made.checking, "alice", "right", mechanism) == made.alice()
    for name, password in (("alice", "wrong"), ("nobody", "right"), ("bob", "b")):
        with pytest.raises(Unauthenticated, match="wrong"):
            scram(made.checking, name, password, mechanism)


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_a_lock_does_not_show_in_what_a_login_is_asked_for(
    made: Fixture, mechanism: Mechanism
) -> None:
    """Who has seen the salt of a name before could tell that it was locked by another one."""

    def asked(name: str) -> str:
        login = made.checking.scram(mechanism, source="10.0.0.1")
        return login.first(ClientExchange(name, mechanism).first()).partition(",")[2]

    before = {name: asked(name) for name in ("alice", "nobody")}
    made.catalog.users["alice"] = made.catalog.users["alice"]._replace(is_locked=True)
    assert {name: asked(name) for name in ("alice", "nobody")} == before
    with pytest.raises(Unauthenticated, match="wrong"):
        scram(made.checking, "alice", "right", mechanism)


def test_many_requests_with_one_password_are_one_try(made: Fixture) -> None:
    """A program that begins with thirty requests at once is no guesser."""

    async def scenario(password: str) -> set[object]:
        tries = [made.checking.password("alice", password, source="10.0.0.1") for _ in range(30)]
        found = await asyncio.gather(*tries, return_exceptions=True)
        return {one if isinstance(one, Principal) else type(one) for one in found}

    assert asyncio.run(scenario("right")) == {made.alice()}
    assert asyncio.run(scenario("wrong")) == {Unauthenticated}
    assert asyncio.run(scenario("wrong as well")) == {Unauthenticated}


def test_a_thousand_logins_begun_together_are_a_few_guesses(made: Fixture) -> None:
    clients = [ClientExchange("alice") for _ in range(1_000)]
    logins = [made.checking.scram(Mechanism.SHA_256, source="10.0.0.1") for _ in clients]
    lines = [one.first(client.first()) for one, client in zip(logins, clients, strict=True)]
    guesses = 0
    for client, login, line in zip(clients, logins, lines, strict=True):
        try:
            login.final(client.final(line, b"x" * 32))
        except Unauthenticated:
            guesses += 1
        except LimitExceeded:
            continue
    assert guesses == 6
    with pytest.raises(LimitExceeded):
        scram(made.checking, "alice", "right", Mechanism.SHA_256)
    made.clock += 1
    assert scram(made.checking, "alice", "right", Mechanism.SHA_256) == made.alice()


def test_who_is_in_already_stays_in_while_somebody_guesses(made: Fixture) -> None:
    async def scenario() -> None:
        await made.checking.password("alice", "right", source="10.0.0.1")
        for number in range(100):
            with pytest.raises((Unauthenticated, LimitExceeded)):
                await made.checking.password("alice", f"guess-{number}", source="10.0.0.1")
        assert await made.checking.password("alice", "right", source="10.0.0.1") == made.alice()

    asyncio.run(scenario())


def test_one_source_cannot_have_every_turn_of_the_checks(made: Fixture) -> None:
    async def scenario() -> None:
        flood = [
            asyncio.ensure_future(made.checking.password(f"user-{number}", "x", source="10.0.0.1"))
            for number in range(100)
        ]
        await asyncio.sleep(0)
        good = await made.checking.password("alice", "right", source="10.0.0.2")
        assert good == made.alice()
        kinds = [type(one) for one in await asyncio.gather(*flood, return_exceptions=True)]
        assert kinds.count(Unauthenticated) == page.WAITING_PER_SOURCE_MAX
        assert kinds.count(LimitExceeded) == 100 - page.WAITING_PER_SOURCE_MAX

    asyncio.run(scenario())


def test_a_token_stands_for_its_owner_until_it_ends(made: Fixture) -> None:
    token = new_token().reveal()
    until = Micros((NOW_S + 60) * 1_000_000)
    made.catalog.tokens[token_digest(token)] = KnownToken("alice", "ci", until)
    found = made.checking.known(f"Bearer {token}")
    assert found == Principal(name="alice", proof=Proof.TOKEN, until=until, token="ci")
    made.now_s += 60
    assert made.checking.known(f"Bearer {token}") is None
    with pytest.raises(Unauthenticated, match="expired"):
        asyncio.run(made.checking.bearer(token))
    made.now_s -= 60
    made.catalog.users["alice"] = account("alice", "right", is_locked=True)
    assert made.checking.known(f"Bearer {token}") is None


@pytest.mark.parametrize("text", ["angt_" + "A" * 43, "x", "a.b.c", "A" * 1_000_000, "tökèn"])
def test_tokens_that_nobody_issued_are_refused(made: Fixture, text: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        asyncio.run(made.checking.bearer(text))
    assert len(str(caught.value)) < 200


def certificate(*uris: str, seconds: float = 60.0) -> Certificate:
    return Certificate(uris=uris, begins_at=0.0, expires_at=NOW_S + seconds)


def test_a_certificate_is_the_user_it_names_until_it_expires(made: Fixture) -> None:
    shown = certificate("angarium://shop/client/alice")
    # Where nobody said that they count, they do not.
    assert made.checking.known(None, shown) is None
    made.checking._certificates = CertificateUsers(field="uri", prefix="angarium://shop/client/")
    alice = Principal(name="alice", proof=Proof.CERTIFICATE, until=Micros((NOW_S + 60) * 1_000_000))
    assert made.checking.known(None, shown) == alice
    found = asyncio.run(made.checking.header(None, source="h", certificate=shown))
    assert found == alice
    # Whoever says who they are is that one, or nobody.
    by_password = basic("alice", "right")
    asyncio.run(made.checking.header(by_password, source="h", certificate=shown))
    assert made.checking.known(by_password, shown) == made.alice()
    with pytest.raises(Unauthenticated, match="wrong"):
        asyncio.run(made.checking.header(basic("alice", "no"), source="h", certificate=shown))
    made.now_s += 60
    assert made.checking.known(None, shown) is None
    with pytest.raises(Unauthenticated, match="expired"):
        asyncio.run(made.checking.header(None, source="h", certificate=shown))


@pytest.mark.parametrize(
    "uris",
    [
        (),
        ("angarium://shop/client/bob",),
        ("angarium://shop/client/nobody",),
        ("angarium://shop/client/alice", "angarium://shop/client/carol"),
        ("angarium://shop/client/alice", "angarium://shop/client/alice"),
    ],
    ids=["no name", "locked", "no account", "two names", "one name twice"],
)
def test_a_certificate_that_names_nobody_is_told_no_more(
    made: Fixture, uris: tuple[str, ...]
) -> None:
    made.checking._certificates = CertificateUsers(field="uri", prefix="angarium://shop/client/")
    shown = certificate(*uris)
    assert made.checking.known(None, shown) is None
    with pytest.raises(Unauthenticated, match="names nobody who has an account"):
        asyncio.run(made.checking.header(None, source="h", certificate=shown))


def test_nobody_is_slowed_down_who_comes_before_there_are_users(made: Fixture) -> None:
    made.catalog.version = 0
    early = basic("admin", "right")
    for _ in range(20):
        with pytest.raises(Unauthenticated):
            asyncio.run(made.checking.header(early, source="10.0.0.1"))
    made.catalog.version = 1
    made.catalog.users["admin"] = account("admin", "right")
    found = asyncio.run(made.checking.header(early, source="10.0.0.1"))
    assert found.name == "admin"


# --- what is told of those who fail --------------------------------------------------------------


def test_each_that_fails_is_told_of_with_the_name_of_a_user_and_no_other(made: Fixture) -> None:
    told: list[tuple[str, Proof, str]] = []
    made.checking.on_failure = lambda *found: told.append(found)
    for header in (
        basic("alice", "guessed"),
        basic("my password", "guessed"),
        basic("bob", "b"),
        f"Bearer {new_token().reveal()}",
        "Bearer a.b.c",
        "Basic ???",
        None,
    ):
        with pytest.raises(Unauthenticated):
            asyncio.run(made.checking.header(header, source="10.0.0.1"))
    with pytest.raises(Unauthenticated):
        scram(made.checking, "alice", "guessed", Mechanism.SHA_256)
    assert [(name, proof) for name, proof, _ in told] == [
        ("alice", Proof.PASSWORD),
        ("", Proof.PASSWORD),
        ("bob", Proof.PASSWORD),
        ("", Proof.TOKEN),
        ("", Proof.JWT),
        ("", Proof.NONE),
        ("", Proof.NONE),
        ("alice", Proof.PASSWORD),
    ]
    assert "guessed" not in repr(told)
    assert "my password" not in repr(told)


def test_tries_that_come_too_early_are_all_told_in_the_same_words(made: Fixture) -> None:
    told: list[tuple[str, Proof, str]] = []
    made.checking.on_failure = lambda *found: told.append(found)
    for number in range(20):
        made.clock += 0.01 * number
        with pytest.raises((Unauthenticated, LimitExceeded)):
            asyncio.run(made.checking.password("alice", "guessed", source="10.0.0.1"))
    assert len(told) == 20
    assert len({why for _, _, why in told}) == 2
    assert told[-1][2] == "not checked: failed_logins_max"


def test_who_succeeds_is_not_told_of(made: Fixture) -> None:
    told: list[object] = []
    made.checking.on_failure = lambda *found: told.append(found)
    asyncio.run(made.checking.header(basic("alice", "right"), source="10.0.0.1"))
    assert told == []
