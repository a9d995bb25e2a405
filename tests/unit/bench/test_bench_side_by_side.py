"""Flags of `angarium bench` that name doors, and the table of several protocols."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from angarium.bench.plan import Plan, Protocol
from angarium.bench.ways import Ways
from angarium.cli.commands.bench import plans_of
from angarium.cli.grammar import grammar
from angarium.cli.grammar.bench import PROTOCOLS, addresses
from angarium.errors import InvalidArgument
from angarium.ids import TopicPartition


def plans(*flags: str) -> list[Plan]:
    return plans_of(grammar().parse_args(["bench", *flags]))


def test_all_means_every_protocol_with_the_same_load() -> None:
    found = plans("--protocol", "all", "--workers", "60", "--mode", "eventual")
    assert [one.protocol for one in found] == list(Protocol)
    assert {one.workers for one in found} == {60}
    assert {one.mode for one in found} == {found[0].mode}


def test_every_protocol_can_be_asked_for() -> None:
    assert set(PROTOCOLS) == {one.value for one in Protocol}


def test_targets_go_to_the_protocols_of_their_door() -> None:
    flags = ("--grpc-targets", "a:1,b:2", "--http-targets", "c:3")
    found = {one.protocol: one for one in plans("--protocol", "all", *flags)}
    assert found[Protocol.GRPC].grpc_targets == ("a:1", "b:2")
    assert found[Protocol.REST].http_targets == ("c:3",)
    assert found[Protocol.WIRE].grpc_targets == found[Protocol.WIRE].http_targets == ()


def test_targets_of_another_door_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="goes through the http door"):
        plans("--protocol", "rest", "--grpc-targets", "a:1")


def test_every_scenario_takes_every_protocol_and_target() -> None:
    scenarios = ("live", "publish", "catch-up", "slow", "late", "crash", "isolation", "disk")
    for scenario in scenarios:
        flags = ["--scenario", scenario, "--protocol", "all", "--sub-target", "follower"]
        assert len(plans(*flags, "--rate", "100", "--duration", "1")) == len(Protocol)


def test_an_address_is_a_host_and_a_port() -> None:
    assert addresses("a:1, b:2") == ("a:1", "b:2")
    for wrong in ("a", "a:", ":1", "a:b", "a:1,"):
        with pytest.raises(ArgumentTypeError, match="not HOST:PORT"):
            addresses(wrong)


def test_publishers_take_turns_among_the_targets() -> None:
    partition = TopicPartition("orders", 0)
    ways = Ways({partition: ["a:1", "b:2", "c:3"]}, "c:3")
    assert [ways.to(partition) for _ in range(6)] == ["a:1", "b:2", "c:3"] * 2
    assert ways.addresses == ["a:1", "b:2", "c:3"]
