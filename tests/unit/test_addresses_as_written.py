"""HOST:PORT: what is read, what is refused."""

from __future__ import annotations

import pytest

from angarium.addresses import Address, dialled, parse_addresses


@pytest.mark.parametrize("text", ["127.0.0.1:7400", "node-1.example.org:1", "[::1]:65535", "a:0"])
def test_an_address_reads_back_as_it_was_written(text: str) -> None:
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "7400", ":7400", "a:", "a:b", "a:65536", "a:-1", "::1:7400", "a b:1", "a:٣", "[]:1"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|port|host"):
        Address.parse(text)


def test_a_list_needs_at_least_one_address() -> None:
    assert parse_addresses("a:1, b:2,") == (Address("a", 1), Address("b", 2))
    with pytest.raises(ValueError, match="no address"):
        parse_addresses(" , ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("10.0.0.1:7400", Address("10.0.0.1", 7400)),
        ("[::1]:7400", Address("::1", 7400)),
        ("::1:7400", Address("::1", 7400)),
    ],
)
def test_what_another_node_says_is_dialled(text: str, place: Address) -> None:
    assert dialled(text) == place


@pytest.mark.parametrize("text", ["", "nonsense", "a:b", "a:0", ":1", "a:99999"])
def test_what_cannot_be_dialled_is_nothing(text: str) -> None:
    assert dialled(text) is None
