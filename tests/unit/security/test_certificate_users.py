"""Which user a certificate stands for: the one that a named field names, letter by letter."""

from __future__ import annotations

from typing import Any

import pytest

from angarium.security.certificate_users import NAME_CHARACTERS_MAX, CertificateUsers, Field
from angarium.security.tls import Certificate

PREFIX = "angarium://shop/client/"
BY_URI = CertificateUsers(field="uri", prefix=PREFIX)


def shown(**names: Any) -> Certificate:
    return Certificate(begins_at=0.0, expires_at=1.0, common_name="admin", **names)


def test_the_name_is_what_stands_behind_the_prefix() -> None:
    assert BY_URI.user_in(shown(uris=(f"{PREFIX}alice",))) == "alice"
    # Other names in it are nobody's business.
    several = shown(uris=("https://example.org/", f"{PREFIX}alice"), emails=("bob@example.org",))
    assert BY_URI.user_in(several) == "alice"


@pytest.mark.parametrize("field", ["uri", "dns", "email"])
def test_without_a_prefix_the_whole_field_is_the_name(field: Field) -> None:
    names = {"uris": ("spiffe://a/b",), "dns_names": ("host.a",), "emails": ("al@a.org",)}
    expected = {"uri": "spiffe://a/b", "dns": "host.a", "email": "al@a.org"}
    assert CertificateUsers(field=field).user_in(shown(**names)) == expected[field]


@pytest.mark.parametrize(
    "uris",
    [
        (),
        (PREFIX,),
        ("angarium://shop/clients/alice",),
        ("angarium://shop.example.org/client/alice",),
        ("angarium://SHOP/client/alice",),
        (f" {PREFIX}alice",),
        (f"{PREFIX}alice", f"{PREFIX}bob"),
        (f"{PREFIX}alice", f"{PREFIX}alice"),
        (f"{PREFIX}alice\0.evil.org",),
        (f"{PREFIX}\0",),
        (f"{PREFIX}al ice",),
        (f"{PREFIX}alice\n",),
        (f"{PREFIX}\u0430lice",),
        (f"{PREFIX}alice\u200b",),
        (PREFIX + "a" * (NAME_CHARACTERS_MAX + 1),),
        (f"{PREFIX}alice", "angarium://shop/node/one"),
    ],
)
def test_a_certificate_that_leaves_a_doubt_names_nobody(uris: tuple[str, ...]) -> None:
    assert BY_URI.user_in(shown(uris=uris)) is None


@pytest.mark.parametrize("odd", ["ALICE", "alice%20", "al%69ce", "./alice", "x/../alice", "alice/"])
def test_another_spelling_is_another_name(odd: str) -> None:
    assert BY_URI.user_in(shown(uris=(PREFIX + odd,))) == odd


def test_the_common_name_and_other_fields_do_not_count() -> None:
    assert BY_URI.user_in(shown(dns_names=(f"{PREFIX}alice",), emails=(f"{PREFIX}alice",))) is None
    assert CertificateUsers(field="dns").user_in(shown()) is None


@pytest.mark.parametrize(
    "prefix", ["angarium://shop", "angarium://shop/client", "a b/", "é/", "\0/"]
)
def test_a_prefix_that_ends_inside_a_name_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        CertificateUsers(field="uri", prefix=prefix)


@pytest.mark.parametrize("field", ["dns", "email"])
def test_so_is_one_of_another_field(field: Field) -> None:
    with pytest.raises(ValueError, match="prefix"):
        CertificateUsers(field=field, prefix="team-a")
    names = ("team-ab.orders", "team-a.orders")
    found = CertificateUsers(field=field, prefix="team-a.")
    assert found.user_in(shown(dns_names=names, emails=names)) == "orders"
