"""The handshake's terms: what two sides agree on, and how they refuse each other."""

from __future__ import annotations

import msgspec
import pytest

from angarium.wire import (
    Frame,
    HandshakeRefused,
    Hello,
    Role,
    VersionMismatch,
    WireLimits,
    WrongCluster,
    WrongNode,
)
from angarium.wire.errors import StillJoining
from angarium.wire.frames import FrameKind
from angarium.wire.handshake import MAGIC, check_node, completed, greeting_in, negotiated

LIMITS = WireLimits()


def hello(
    *, versions: tuple[int, int] = (1, 1), cluster: str = "", features: dict[str, int] | None = None
) -> Hello:
    given = Hello(
        role=Role.PEER,
        cluster=cluster,
        features=features or {},
        version_min=versions[0],
        version_max=versions[1],
    )
    return completed(given, LIMITS)


@pytest.mark.parametrize(
    ("ours", "theirs", "agreed"),
    [((1, 1), (1, 1), 1), ((1, 3), (2, 5), 3), ((2, 5), (1, 3), 3), ((1, 9), (4, 4), 4)],
)
def test_the_highest_version_both_speak_is_spoken(
    ours: tuple[int, int], theirs: tuple[int, int], agreed: int
) -> None:
    assert negotiated(hello(versions=ours), hello(versions=theirs)).version == agreed


def test_without_a_common_version_the_refusal_names_the_side_to_upgrade() -> None:
    old = Hello(role=Role.PEER, node=3, software="0.1", version_min=1, version_max=2)
    new = Hello(role=Role.CLIENT, software="0.9", version_min=3, version_max=4)
    for ours, theirs in ((old, new), (new, old)):
        # The same words wherever they are read: the one who is refused reads them, too.
        with pytest.raises(VersionMismatch) as refusal:
            negotiated(completed(ours, LIMITS), completed(theirs, LIMITS))
        assert str(refusal.value) == (
            "node 3 (angarium 0.1) speaks wire versions 1 to 2, the client (angarium 0.9) 3 to 4; "
            "upgrade node 3 (angarium 0.1) first"
        )


def test_of_features_both_know_the_lower_level_counts() -> None:
    ours = hello(features={"machine": 3, "only-here": 1})
    theirs = hello(features={"machine": 2, "only-there": 9})
    assert negotiated(ours, theirs).features == {"machine": 2}


def test_two_clusters_refuse_each_other() -> None:
    with pytest.raises(WrongCluster, match=r"c1.*c2"):
        negotiated(hello(cluster="c1"), hello(cluster="c2"))


@pytest.mark.parametrize(("ours", "theirs"), [("c1", "c1"), ("", "c1"), ("c1", ""), ("", "")])
def test_who_belongs_nowhere_yet_is_not_refused(ours: str, theirs: str) -> None:
    negotiated(hello(cluster=ours), hello(cluster=theirs))


def test_another_node_at_the_address_is_named() -> None:
    theirs = Hello(role=Role.PEER, node=2)
    check_node(theirs, None)
    check_node(theirs, 2)
    with pytest.raises(WrongNode, match="node 2 answers where node 3 was expected"):
        check_node(theirs, 3)


def test_a_node_that_does_not_know_its_id_yet_is_still_joining() -> None:
    with pytest.raises(StillJoining):
        check_node(Hello(role=Role.PEER), 3)


def greeting(fields: object, *, kind: int = FrameKind.HELLO, frame_id: int = MAGIC) -> Frame:
    return Frame(kind, 0, 0, frame_id, msgspec.msgpack.encode(fields))


def test_a_greeting_arrives_as_it_was_sent() -> None:
    sent = completed(Hello(role=Role.PEER_BULK, node=4, incarnation=5, auth=b"secret"), LIMITS)
    arrived = greeting_in(greeting(sent))
    assert arrived == sent
    assert arrived.frame_bytes_max == LIMITS.frame_bytes_max


def test_fields_from_the_future_are_ignored() -> None:
    fields = {**msgspec.to_builtins(hello(), builtin_types=(bytes,)), "moons": 2}
    assert greeting_in(greeting(fields)) == hello()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"role": "emperor"},
        {"role": "client", "node": -1},
        {"role": "client", "frame_bytes_max": 10},
        {"role": "client", "stream_window_bytes": 0},
        {"role": "client", "cluster": "x" * 300},
        {"role": "client", "auth": b"x" * 20_000},
        [1, 2, 3],
    ],
)
def test_a_malformed_greeting_is_a_refusal(fields: object) -> None:
    with pytest.raises(HandshakeRefused, match="cannot be read"):
        greeting_in(greeting(fields))


def test_a_stranger_is_asked_whether_the_port_is_right() -> None:
    for frame in (greeting(hello(), frame_id=1), greeting(hello(), kind=FrameKind.PING)):
        with pytest.raises(HandshakeRefused, match="wire port"):
            greeting_in(frame)


def test_a_greeting_without_versions_has_none_in_common_with_anybody() -> None:
    with pytest.raises(VersionMismatch):
        negotiated(hello(), greeting_in(greeting({"role": "client"})))
