"""SCRAM: the vectors of the RFCs, an independent peer, and what is refused."""

from __future__ import annotations

import base64

import pytest
import scramp
from hypothesis import given
from hypothesis import strategies as st

from angarium.security.prepared import prepared
from angarium.security.scram import (
    ClientExchange,
    Mechanism,
    ScramRefused,
    ServerExchange,
    Verifier,
    salted_password,
)

QUICK = 4_096


def a_verifier(password: str = "pencil", mechanism: Mechanism = Mechanism.SHA_256) -> Verifier:
    return Verifier.of(password, mechanism, iterations=QUICK)


def proof_of(client: ClientExchange, line: str, password: str, mechanism: Mechanism) -> str:
    salt, iterations = client.challenge(line)
    salted = salted_password(password, mechanism, salt=salt, iterations=iterations)
    return client.final(line, salted)


def logged_in(password: str, verifier: Verifier, name: str = "user") -> ServerExchange:
    """Let both of our sides go through an exchange."""
    mechanism = verifier.mechanism
    client = ClientExchange(name, mechanism)
    server = ServerExchange(mechanism, lambda _: verifier)
    line = server.first(client.first())
    client.check(server.final(proof_of(client, line, password, mechanism)))
    return server


def test_the_exchange_of_rfc_7677() -> None:
    verifier = Verifier.of(
        "pencil", iterations=4_096, salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    )
    client = ClientExchange("user", nonce=lambda: "rOprNGfwEbeRWgbNEkqO")
    server = ServerExchange(
        Mechanism.SHA_256, lambda _: verifier, nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    assert client.first() == "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    line = server.first(client.first())
    both = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert line == f"r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = proof_of(client, line, "pencil", Mechanism.SHA_256)
    assert proof == f"c=biws,r={both},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    answer = server.final(proof)
    assert answer == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    client.check(answer)


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_our_node_understands_another_client(mechanism: Mechanism) -> None:
    verifier = a_verifier("pässword, with = signs", mechanism)
    theirs = scramp.ScramClient([str(mechanism)], "a,b=c", "pässword, with = signs")
    server = ServerExchange(mechanism, lambda _: verifier)
    theirs.set_server_first(server.first(theirs.get_client_first()))
    theirs.set_server_final(server.final(theirs.get_client_final()))
    assert server.name == "a,b=c"


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_our_client_understands_another_server(mechanism: Mechanism) -> None:
    theirs = scramp.ScramMechanism(str(mechanism))
    info = theirs.make_auth_info("pencil", iteration_count=QUICK)
    server = theirs.make_server({"user": info}.__getitem__)
    client = ClientExchange("user", mechanism)
    server.set_client_first(client.first())
    line = server.get_server_first()
    server.set_client_final(proof_of(client, line, "pencil", mechanism))
    client.check(server.get_server_final())


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_a_right_password_proves_itself_and_a_wrong_one_does_not(mechanism: Mechanism) -> None:
    verifier = a_verifier(mechanism=mechanism)
    assert logged_in("pencil", verifier).name == "user"
    with pytest.raises(ScramRefused, match="wrong"):
        logged_in("pencil ", verifier)


def test_an_exchange_that_was_overheard_is_worth_nothing() -> None:
    verifier = a_verifier()
    client = ClientExchange("user")
    server = ServerExchange(Mechanism.SHA_256, lambda _: verifier)
    line = server.first(client.first())
    proof = proof_of(client, line, "pencil", Mechanism.SHA_256)
    server.final(proof)
    again = ServerExchange(Mechanism.SHA_256, lambda _: verifier)
    again.first(client.first())
    with pytest.raises(ScramRefused, match="wrong"):
        again.final(proof)


def test_a_proof_is_looked_at_once() -> None:
    verifier = a_verifier()
    client = ClientExchange("user")
    server = ServerExchange(Mechanism.SHA_256, lambda _: verifier)
    proof = proof_of(client, server.first(client.first()), "pencil", Mechanism.SHA_256)
    with pytest.raises(ScramRefused):
        server.final(proof[:-4] + "AAA=")
    with pytest.raises(ScramRefused, match="ends once"):
        server.final(proof)
    with pytest.raises(ScramRefused, match="begins once"):
        server.first(client.first())


def test_who_has_no_account_meets_the_same_salt_each_time_and_never_gets_in() -> None:
    def first_line() -> str:
        client = ClientExchange("nobody", nonce=lambda: "same")
        server = ServerExchange(
            Mechanism.SHA_256,
            lambda name: Verifier.decoy(name, Mechanism.SHA_256, key=b"of this process"),
            nonce=lambda: "theirs",
        )
        return server.first(client.first())

    assert first_line() == first_line()
    decoy = Verifier.decoy("nobody", Mechanism.SHA_256, key=b"of this process")
    with pytest.raises(ScramRefused):
        logged_in("", decoy)


def test_a_client_notices_who_only_pretends_to_know_its_account() -> None:
    client = ClientExchange("user")
    server = ServerExchange(Mechanism.SHA_256, lambda _: a_verifier())
    proof_of(client, server.first(client.first()), "pencil", Mechanism.SHA_256)
    for answer in ("v=AAAA", "e=other-error", "", "v=" + "A" * 3_000):
        with pytest.raises(ScramRefused):
            client.check(answer)


@pytest.mark.parametrize("iterations", [1, 4_095, 1_000_001, 999_999_999])
def test_a_client_does_neither_too_little_work_nor_too_much(iterations: int) -> None:
    client = ClientExchange("user", nonce=lambda: "mine")
    with pytest.raises(ScramRefused, match="iterations"):
        client.challenge(f"r=mineand,s=AAAA,i={iterations}")
    with pytest.raises(ScramRefused, match="another exchange"):
        client.challenge("r=theirs,s=AAAA,i=4096")
    with pytest.raises(ScramRefused, match="another exchange"):
        client.challenge("r=mine,s=AAAA,i=4096")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "n,,",
        "n,,n=user",
        "n,,n=,r=abc",
        "p=tls-unique,,n=user,r=abc",
        "n,a=admin,n=user,r=abc",
        "n,,n=us=er,r=abc",
        "n,,m=ext,n=user,r=abc",
        "n,,n=us\0er,r=abc",
        "n,,n=user,r=ä",
        "n,,n=user,r=" + "a" * 10_000,
    ],
)
def test_first_lines_that_make_no_sense_are_refused(line: str) -> None:
    with pytest.raises(ScramRefused):
        ServerExchange(Mechanism.SHA_256, lambda _: a_verifier()).first(line)


@given(st.text(max_size=80))
def test_no_line_does_more_than_be_refused(line: str) -> None:
    verifier = Verifier.decoy("user", Mechanism.SHA_256, key=b"key")
    server = ServerExchange(Mechanism.SHA_256, lambda _: verifier)
    server.first("n,,n=user,r=abc")
    with pytest.raises(ScramRefused):
        server.final(line)
    with pytest.raises(ScramRefused):
        ClientExchange("user").challenge(line)


def test_a_verifier_is_written_down_and_read_again() -> None:
    for mechanism in Mechanism:
        verifier = a_verifier(mechanism=mechanism)
        assert Verifier.parse(str(verifier)) == verifier
        assert base64.b64encode(verifier.stored_key).decode() not in repr(verifier)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SCRAM-SHA-1$4096:AAAA$AAAA:AAAA",
        "SCRAM-SHA-256$1:AAAA$AAAA:AAAA",
        "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA",
        "SCRAM-SHA-256$4096:AAAA$????:AAAA",
        "SCRAM-SHA-256$999999999:AAAA$AAAA:AAAA",
    ],
)
def test_what_is_no_verifier_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|has"):
        Verifier.parse(text)


def test_the_examples_of_rfc_4013() -> None:
    assert prepared("I\u00adX") == "IX"
    assert prepared("user") == "user"
    assert prepared("USER") == "USER"
    assert prepared("\u00aa") == "a"
    assert prepared("\u2168") == "IX"
    assert prepared("non\u00a0breaking") == "non breaking"
    with pytest.raises(ValueError, match="character"):
        prepared("\u0007")
    with pytest.raises(ValueError, match="right"):
        prepared("\u0627\u0031")


@given(st.text(max_size=40))
def test_what_is_prepared_stays_as_it_is(text: str) -> None:
    try:
        once = prepared(text)
    except ValueError:
        return
    try:
        assert prepared(once) == once
    except ValueError:
        # Unicode has grown since RFC 3454: what is normal now may mix directions then.
        return
