"""Proofs become principals, and nothing else does."""

from __future__ import annotations

import asyncio
import base64

import pytest
from tests.accounts import AccountsInMemory, account

from angarium.api.access import ANONYMOUS, Principal, Proof
from angarium.errors import LimitExceeded, Unauthenticated
from angarium.ids import Micros
from angarium.security import authenticating as page
from angarium.security.accounts import KnownToken
from angarium.security.authenticating import Authenticator
from angarium.security.scram import ClientExchange, Mechanism, salted_password
from angarium.security.slowing import Slowing
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


@pytest.fixture
def made() -> Fixture:
    return Fixture()


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


ALICE = Principal(name="alice", proof=Proof.PASSWORD)


def test_a_password_makes_a_principal_and_is_remembered(made: Fixture) -> None:
    header = basic("alice", "right")
    assert made.checking.known(header) is None
    assert asyncio.run(made.checking.header(header, source="10.0.0.1")) == ALICE
    assert made.checking.known(header) == ALICE


def test_a_new_password_ends_what_was_remembered(made: Fixture) -> None:
    header = basic("alice", "right")
    asyncio.run(made.checking.header(header, source="10.0.0.1"))
    made.catalog.users["alice"] = account("alice", "other")
    assert made.checking.known(header) is None
    with pytest.raises(Unauthenticated):
        asyncio.run(made.checking.header(header, source="10.0.0.1"))


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
    assert scram(made.checking, "alice", "right", mechanism) == ALICE
    for name, password in (("alice", "wrong"), ("nobody", "right"), ("bob", "b")):
        with pytest.raises(Unauthenticated, match="wrong"):
            scram(made.checking, name, password, mechanism)


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
    assert scram(made.checking, "alice", "right", Mechanism.SHA_256) == ALICE


def test_who_is_in_already_stays_in_while_somebody_guesses(made: Fixture) -> None:
    async def scenario() -> None:
        await made.checking.password("alice", "right", source="10.0.0.1")
        for number in range(100):
            with pytest.raises((Unauthenticated, LimitExceeded)):
                await made.checking.password("alice", f"guess-{number}", source="10.0.0.1")
        assert await made.checking.password("alice", "right", source="10.0.0.1") == ALICE

    asyncio.run(scenario())


def test_one_source_cannot_have_every_turn_of_the_checks(made: Fixture) -> None:
    async def scenario() -> None:
        flood = [
            asyncio.ensure_future(made.checking.password(f"user-{number}", "x", source="10.0.0.1"))
            for number in range(100)
        ]
        await asyncio.sleep(0)
        good = await made.checking.password("alice", "right", source="10.0.0.2")
        assert good == ALICE
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


def test_a_certificate_names_an_account(made: Fixture) -> None:
    assert made.checking.certificate("alice").proof is Proof.CERTIFICATE
    for name in ("bob", "nobody"):
        with pytest.raises(Unauthenticated, match="certificate"):
            made.checking.certificate(name)
