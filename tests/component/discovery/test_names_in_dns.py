"""Nodes by DNS, with a real server: what is wrong is said, and answers hold as long as they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dns_server import DnsServer
from tests.on_a_loop import run

from angarium.addresses import Address
from angarium.discovery.dns import HOLDS_S_MAX, HOLDS_S_MIN, DnsDiscovery
from angarium.discovery.port import DiscoveryFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVICE = "_wire._tcp.nodes.test"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DnsServer]:
    with DnsServer(tmp_path_factory.mktemp("dns")) as running:
        running.answer(
            "host-record=one.test,10.0.0.1",
            "host-record=long.test,10.0.0.1,100000",
            "host-record=both.test,10.0.0.2,fd00::2",
            "txt-record=texts.test,only",
            f"srv-host={SERVICE},one.test,7401",
            f"srv-host={SERVICE},both.test,7402",
            f"srv-host={SERVICE},gone.test,7403",
            "srv-host=_wire._tcp.none.test,gone.test,7403",
        )
        yield running


def looked(server: DnsServer, name: str, port: int = 7400) -> DnsDiscovery:
    return DnsDiscovery(name, port=port, servers=[server.address])


def failure(discovery: DnsDiscovery) -> str:
    with pytest.raises(DiscoveryFailed) as failed:
        run(discovery.find())
    return str(failed.value)


def test_a_host_that_is_gone_hides_no_other_of_its_service(server: DnsServer) -> None:
    found = run(looked(server, SERVICE).find())
    assert set(found.addresses) == {
        Address("10.0.0.1", 7401),
        Address("10.0.0.2", 7402),
        Address("fd00::2", 7402),
    }


def test_an_answer_holds_for_its_ttl_within_bounds(server: DnsServer) -> None:
    assert run(looked(server, "one.test").find()).holds_s == HOLDS_S_MIN
    assert run(looked(server, "long.test").find()).holds_s == HOLDS_S_MAX


def test_a_name_that_is_not_there_is_named_with_who_was_asked(server: DnsServer) -> None:
    said = failure(looked(server, "nobody.test"))
    assert said == f"DNS has no name nobody.test (asked: {server.address})"
    assert failure(looked(server, "_wire._tcp.nobody.test")).startswith("DNS has no name _wire")


def test_a_name_without_such_records_is_told_apart(server: DnsServer) -> None:
    assert failure(looked(server, "texts.test")).startswith("texts.test has no A or AAAA records")
    assert failure(looked(server, "_texts.test")).startswith("DNS has no name _texts.test")


def test_a_service_whose_hosts_are_all_gone_names_one(server: DnsServer) -> None:
    assert failure(looked(server, "_wire._tcp.none.test")).startswith("DNS has no name gone.test")


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with DnsServer(tmp_path) as silent:
        said = failure(DnsDiscovery("one.test", port=1, servers=[silent.address]))
    assert said.endswith(f"(asked: {silent.address})")
    assert "within 3 s" in said


def test_a_server_that_may_not_answer_is_named(server: DnsServer) -> None:
    said = failure(looked(server, "somewhere.else.example.org"))
    assert "cannot answer for somewhere.else.example.org" in said
    assert str(server.address) in said
