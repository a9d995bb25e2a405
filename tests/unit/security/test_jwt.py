"""JWTs: what proves something, and every way in which one may try to without."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws, jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from tests.accounts import AccountsInMemory, authenticator

from angarium.errors import Unauthenticated
from angarium.security.jwt import IssuerSettings, JwtIssuer, JwtRefused
from angarium.security.jwt_keys import UNKNOWN_REFRESH_S, IssuerKeys, keys_in, reader_of

NOW = 1_800_000_000
ISSUER = "https://issuer.example.org"

RSA = RSAKey.generate_key(2048, {"kid": "rsa-1", "use": "sig"})
EC = ECKey.generate_key("P-256", {"kid": "ec-1"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed-1"})
STRANGER = RSAKey.generate_key(2048, {"kid": "rsa-1"})


def published(*keys: Key) -> bytes:
    return json.dumps({"keys": [one.as_dict(private=False) for one in keys]}).encode()


class Issuer:
    """A small issuer: its published set, and how often somebody looked at it."""

    def __init__(self) -> None:
        self.text = published(RSA, EC, ED)
        self.looks = 0
        self.now = 0.0
        self.keys = IssuerKeys(self.read, clock=lambda: self.now)

    def read(self) -> bytes:
        self.looks += 1
        return self.text

    def checking(self, **changes: Any) -> JwtIssuer:
        settings = IssuerSettings(issuer=ISSUER, audience="angarium", **changes)
        return JwtIssuer(settings, self.keys, wall_clock=lambda: NOW)


def claims(**changes: object) -> dict[str, Any]:
    usual = {
        "iss": ISSUER,
        "aud": ["other", "angarium"],
        "sub": "alice",
        "exp": NOW + 300,
        "iat": NOW,
        "roles": ["publisher", "team-a"],
    }
    return {name: one for name, one in (usual | changes).items() if one is not None}


def signed(key: Key = RSA, alg: str = "RS256", header: object = None, **changes: Any) -> str:
    head = {"alg": alg, "kid": key.kid} | (header if isinstance(header, dict) else {})
    return jwt.encode(head, claims(**changes), key, algorithms=[alg])


def b64(document: object) -> str:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def refusal_of(text: str, **changes: Any) -> str:
    with pytest.raises(JwtRefused) as caught:
        asyncio.run(Issuer().checking(**changes).claims(text))
    assert len(str(caught.value)) < 200
    return str(caught.value)


@pytest.mark.parametrize(("key", "alg"), [(RSA, "RS256"), (EC, "ES256"), (ED, "EdDSA")])
def test_a_jwt_of_the_issuer_says_who_and_which_roles_and_until_when(key: Key, alg: str) -> None:
    found = asyncio.run(Issuer().checking().claims(signed(key, alg)))
    assert found.name == "jwt:alice"
    assert found.roles == {"publisher", "team-a"}
    assert found.until_s == NOW + 300 + 60


def test_claims_may_lie_inside_others_as_keycloak_has_them() -> None:
    text = signed(
        realm_access={"roles": ["operator"]},
    )
    found = asyncio.run(
        Issuer()
        .checking(role_claim="realm_access.roles", name_prefix="", name_claim="sub")
        .claims(text)
    )
    assert (found.name, found.roles) == ("alice", frozenset({"operator"}))
    spaced = asyncio.run(Issuer().checking(role_claim="scope").claims(signed(scope="a b")))
    assert spaced.roles == {"a", "b"}
    # A blank that is no space is part of a name, and of none that can be printed.
    blank = signed(scope="a b\u00a0admin c\u2028admin")
    assert asyncio.run(Issuer().checking(role_claim="scope").claims(blank)).roles == {"a"}
    none = asyncio.run(Issuer().checking(role_claim="missing.there").claims(signed()))
    assert none.roles == frozenset()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"exp": NOW - 61}, "expired"),
        ({"exp": None}, "never expires"),
        ({"exp": "soon"}, "never expires"),
        ({"exp": True}, "never expires"),
        ({"exp": 1e300}, "never expires"),
        ({"exp": -1}, "never expires"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"iat": NOW + 61}, "not valid yet"),
        ({"nbf": "x"}, "not valid yet"),
        ({"aud": None}, "audience"),
        ({"aud": "angarium-test"}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": {"angarium": 1}}, "audience"),
        ({"iss": None}, "issuer"),
        ({"iss": ISSUER + "/"}, "issuer"),
        ({"iss": [ISSUER]}, "issuer"),
        # One that is left out might forbid what another one allows.
        ({"roles": [f"r{n}" for n in range(257)]}, "more than 256 roles"),
        ({"sub": None}, "who it stands for"),
        ({"sub": ""}, "who it stands for"),
        ({"sub": 7}, "who it stands for"),
        ({"sub": "a" * 257}, "who it stands for"),
        ({"sub": "alice\n2026 ERROR forged"}, "printed"),
    ],
)
def test_claims_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    assert said in refusal_of(signed(**changes))


def test_clocks_may_differ_by_the_leeway() -> None:
    checking = Issuer().checking()
    asyncio.run(checking.claims(signed(exp=NOW - 59, nbf=NOW + 59, iat=NOW + 59)))


def test_nothing_without_a_signature_counts() -> None:
    for alg in ("none", "None", "NONE", "nOnE", ""):
        text = f"{b64({'alg': alg, 'kid': 'rsa-1'})}.{b64(claims())}."
        assert "algorithm" in refusal_of(text)
    header, payload, _ = signed().split(".")
    assert "signature" in refusal_of(f"{header}.{payload}.")
    assert "no JWT" in refusal_of(f"{header}.{payload}")


def test_a_public_key_is_no_shared_secret() -> None:
    # The classic swap: the public key, as text, used as the secret of an HMAC.
    for secret in (RSA.as_pem(private=False), published(RSA)):
        covered = f"{b64({'alg': 'HS256', 'kid': 'rsa-1'})}.{b64(claims())}"
        signature = hmac.digest(secret, covered.encode(), "sha256")
        assert "algorithm" in refusal_of(f"{covered}.{b64(signature)}")
    with pytest.raises(ValueError, match="algorithms"):
        IssuerSettings(issuer=ISSUER, audience="x", algorithms=("HS256",))
    with pytest.raises(ValueError, match="algorithms"):
        IssuerSettings(issuer=ISSUER, audience="x", algorithms=("none",))


def test_an_algorithm_of_another_kind_of_key_is_refused() -> None:
    _, payload, signature = signed(EC, "ES256").split(".")
    swapped = b64({"alg": "RS256", "kid": "ec-1"})
    assert "signature" in refusal_of(f"{swapped}.{payload}.{signature}")
    assert "algorithm" in refusal_of(signed(RSA, "RS256"), algorithms=("ES256",))


def test_changed_claims_and_strangers_signatures_are_refused() -> None:
    header, _, signature = signed().split(".")
    assert "signature" in refusal_of(f"{header}.{b64(claims(sub='admin'))}.{signature}")
    assert "signature" in refusal_of(signed(STRANGER))


@pytest.mark.parametrize(
    "kid", ["../../../../dev/null", "/etc/passwd", "x' OR 1=1", "", "http://x/", "\x00", "a" * 900]
)
def test_the_name_of_a_key_is_a_name_and_nothing_else(kid: str) -> None:
    assert "does not publish" in refusal_of(signed(STRANGER, header={"kid": kid}))


@pytest.mark.parametrize("kid", [7, ["rsa-1"], {"a": 1}, True])
def test_a_key_named_by_no_text_is_refused(kid: object) -> None:
    text = f"{b64({'alg': 'RS256', 'kid': kid})}.{b64(claims())}.AAAA"
    assert "name of its key" in refusal_of(text)


@pytest.mark.parametrize(
    "extra",
    [
        {"jku": "https://mallory.example.org/keys"},
        {"x5u": "https://mallory.example.org/chain"},
        {"jwk": STRANGER.as_dict(private=False)},
        {"x5c": ["AAAA"]},
    ],
)
def test_keys_that_come_along_are_refused(extra: dict[str, object]) -> None:
    text = f"{b64({'alg': 'RS256', 'kid': 'rsa-1'} | extra)}.{b64(claims())}.AAAA"
    assert "own keys" in refusal_of(text)


def test_extensions_that_must_be_understood_are_refused() -> None:
    for extra in ({"crit": ["exp"]}, {"crit": ["x"], "x": 1}, {"b64": False}):
        text = f"{b64({'alg': 'RS256', 'kid': 'rsa-1'} | extra)}.{b64(claims())}.AAAA"
        assert "extensions" in refusal_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "..",
        "a.b.c",
        "....",
        "ä.b.c",
        b64([1]) + ".e30.AAAA",
        b64(b"\xff\xfe") + ".e30.AAAA",
        b64(b"[" * 1_500) + ".e30.AAAA",
        "A" * 3_000 + ".e30.AAAA",
        "A" * 1_000_000,
        "." * 1_000_000,
        b64({"alg": "RS256", "kid": "rsa-1"}) + "." + "A" * 1_000_000 + ".AAAA",
    ],
)
def test_garbage_and_giants_are_refused_unread(text: str) -> None:
    refusal_of(text)


def test_a_key_that_is_not_known_yet_is_looked_for_once_a_minute() -> None:
    issuer = Issuer()
    checking = issuer.checking()
    later = RSAKey.generate_key(2048, {"kid": "rsa-2"})

    async def scenario() -> None:
        await checking.claims(signed())
        assert issuer.looks == 1
        for number in range(1_000):
            with pytest.raises(JwtRefused, match="does not publish"):
                await checking.claims(signed(STRANGER, header={"kid": f"random-{number % 5}"}))
        assert issuer.looks == 1
        await checking.claims(signed())  # what was known stays known
        issuer.text = published(RSA, later)
        issuer.now += UNKNOWN_REFRESH_S
        asked = [checking.claims(signed(later)) for _ in range(10)]
        assert {one.name for one in await asyncio.gather(*asked)} == {"jwt:alice"}
        assert issuer.looks == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [{"kty": "oct", "k": "AAAA", "kid": "rsa-1"}]}',
        b'{"keys": [{"kty": "RSA", "kid": "rsa-1"}]}',
        json.dumps({"keys": [{"kty": "RSA"}] * 300}).encode(),
        b" " * ((1 << 20) + 1),
    ],
)
def test_the_last_good_set_stays_when_a_worse_one_comes(text: bytes) -> None:
    issuer = Issuer()

    async def scenario() -> None:
        await issuer.keys.refresh()
        issuer.text = text
        await issuer.keys.refresh()
        await issuer.checking().claims(signed())

    asyncio.run(scenario())


def test_keys_for_other_uses_are_passed_over() -> None:
    encrypting = RSAKey.generate_key(2048, {"kid": "enc", "use": "enc"})
    assert set(keys_in(published(RSA, encrypting))) == {"rsa-1"}


def test_keys_come_from_files_or_by_https_alone() -> None:
    for where in ("http://issuer.example.org/keys", "ftp://x/keys", "file:///etc/passwd"):
        with pytest.raises(ValueError, match="https"):
            reader_of(where)


def test_what_a_key_has_signed_that_was_taken_back_is_not_believed_from_memory() -> None:
    async def scene() -> None:
        issuer = Issuer()
        accounts = AccountsInMemory()
        door = authenticator(accounts, issuers=[issuer.checking()], wall_clock=lambda: NOW)
        header = f"Bearer {signed()}"
        principal = await door.header(header, source="here")
        assert door.known(header) == principal
        await issuer.keys.refresh()
        assert await door.header(header, source="here") == principal, "checked again"
        assert door.known(header) == principal
        assert principal.key in issuer.keys.published
        issuer.text = published(EC, ED)
        await issuer.keys.refresh()
        assert principal.key not in issuer.keys.published
        assert door.known(header) is None
        with pytest.raises(Unauthenticated):
            await door.header(header, source="here")

    asyncio.run(scene())


def signed_text(payload: str | bytes) -> str:
    """Return a JWT of the issuer whose claims are this text, whatever it is."""
    octets = payload.encode() if isinstance(payload, str) else payload
    return jws.serialize_compact({"alg": "RS256", "kid": RSA.kid}, octets, RSA)


def with_claim(claim: str) -> str:
    """Return the usual claims and one more, as it is written."""
    return f"{json.dumps(claims())[:-1]}, {claim}}}"


@pytest.mark.parametrize(
    "payload",
    [
        with_claim(f'"deep": {"[" * 3_000}{"]" * 3_000}'),
        with_claim('"deep": ' + '{"a":' * 1_500 + "1" + "}" * 1_500),
        with_claim(f'"deep": {"[" * 5_000}'),
        with_claim(f'"big": {"9" * 5_000}'),
        with_claim('"sub": "root"'),
        with_claim('"\\u0073ub": "root"'),
        with_claim('"a": {"b": 1, "b": 2}'),
        with_claim('"odd": NaN'),
        with_claim('"odd": [Infinity]'),
        with_claim('"odd": -Infinity'),
        "[" * 5_000,
        "[]",
        "null",
        '"text"',
        "",
        json.dumps(claims()).encode("utf-16"),
        b"\xff\xfe",
        b'{"sub": "\xff"}',
    ],
    ids=lambda one: str(len(one)),
)
def test_signed_claims_that_cannot_be_read_one_way_are_refused(payload: str | bytes) -> None:
    assert refusal_of(signed_text(payload)) == "its claims cannot be read"


@pytest.mark.parametrize("depth", [100, 300, 600, 900, 990])
def test_nested_claims_are_read_or_refused_wherever_the_stack_ends(depth: int) -> None:
    text = signed_text(with_claim(f'"deep": {"[" * depth}{"]" * depth}'))
    try:
        found = asyncio.run(Issuer().checking(role_claim="deep").claims(text))
    except JwtRefused:
        return
    assert (found.name, found.roles) == ("jwt:alice", frozenset())


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_claims_of_any_kind_prove_something_or_are_refused(odd: object) -> None:
    for name in ("iss", "aud", "sub", "exp", "nbf", "iat", "roles"):
        changed = json.dumps(claims() | {name: odd})
        try:
            found = asyncio.run(Issuer().checking().claims(signed_text(changed)))
        except JwtRefused:
            continue
        assert found.name.isprintable()
        assert all(one.isprintable() for one in found.roles)


def test_deeply_nested_claims_are_unauthenticated_at_the_door() -> None:
    authenticating = authenticator(AccountsInMemory(), issuers=[Issuer().checking()])
    text = signed_text(with_claim(f'"deep": {"[" * 3_000}{"]" * 3_000}'))
    with pytest.raises(Unauthenticated, match="its claims cannot be read"):
        asyncio.run(authenticating.bearer(text))


def test_headers_that_cannot_be_read_one_way_are_refused() -> None:
    _, body, signature = signed().split(".")
    for header in (
        '{"alg": "none", "alg": "RS256"}',
        '{"alg": "RS256", "x": NaN}',
        '{"alg": "RS256", "x": ' + "[" * 1_400,
        json.dumps({"alg": "RS256"}).encode("utf-16"),
    ):
        octets = header.encode() if isinstance(header, str) else header
        said = refusal_of(f"{b64(octets)}.{body}.{signature}")
        assert said in {"its header cannot be read", "its signature is wrong"}
