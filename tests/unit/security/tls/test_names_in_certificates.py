"""Who a certificate was made for: a URI, exactly, and never the common name."""

from __future__ import annotations

import pytest

from angarium.security.tls import Certificate, NodeName

TOLD = {
    "subject": ((("commonName", "angarium://prod/node/one"),),),
    "issuer": ((("organizationName", "Somebody"),), (("commonName", "An authority"),)),
    "notBefore": "Nov 17 13:00:00 2026 GMT",
    "notAfter": "Nov 27 13:00:00 2026 GMT",
    "subjectAltName": (
        ("URI", "angarium://prod/node/one"),
        ("DNS", "node-1.example.org"),
        ("IP Address", "10.0.0.1"),
    ),
}


def with_uris(*uris: str) -> Certificate:
    return Certificate(uris=uris, begins_at=0, expires_at=1)


def test_what_ssl_tells_is_read() -> None:
    found = Certificate.decoded(TOLD)
    assert found.uris == ("angarium://prod/node/one",)
    assert (found.dns_names, found.addresses) == (("node-1.example.org",), ("10.0.0.1",))
    assert (found.common_name, found.issuer) == ("angarium://prod/node/one", "An authority")
    assert found.days_left(found.begins_at) == 10
    assert found.days_left(found.expires_at + 86_400) == -1
    assert found.node_name == NodeName("prod", "one")
    assert str(found.node_name) == "angarium://prod/node/one"


def test_a_common_name_names_nobody() -> None:
    told = {name: value for name, value in TOLD.items() if name != "subjectAltName"}
    found = Certificate.decoded(told)
    assert found.common_name == "angarium://prod/node/one"
    assert found.node_name is None


@pytest.mark.parametrize(
    "uri",
    [
        "angarium://prod/client/one",
        "angarium://prod/node/one/two",
        "angarium://prod/node/",
        "angarium:///node/one",
        "angarium://PROD/node/one",
        "angarium://prod/node/one ",
        "angarium://prod/node/one\n",
        "angarium://prod/node/one?x",
        " angarium://prod/node/one",
        "https://prod/node/one",
        "spiffe://prod/node/one",
        "angarium://prod@other/node/one",
        "angarium://prod/node/..",
    ],
)
def test_what_is_not_exactly_a_nodes_name_is_none(uri: str) -> None:
    assert with_uris(uri).node_name is None


def test_two_names_are_none() -> None:
    assert with_uris("angarium://a/node/one", "angarium://b/node/one").node_name is None
    assert with_uris("https://x", "angarium://b/node/one").node_name == NodeName("b", "one")
