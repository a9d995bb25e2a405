"""Greetings between a recovered cluster, and whoever belongs to what it was."""

from __future__ import annotations

import pytest

from angarium.wire import Hello, Role, WrongCluster
from angarium.wire.decoder import FrameDecoder
from angarium.wire.errors import ClusterSucceeded
from angarium.wire.frames import Frame, FrameKind, frame_head
from angarium.wire.handshake import MAGIC, SuccessorHello, completed, greeting_in, negotiated
from angarium.wire.wire_limits import WireLimits


def whole(hello: Hello) -> Hello:
    return completed(hello, WireLimits())


NEW = whole(
    SuccessorHello(role=Role.PEER, cluster="new", node=1, predecessors={"old": "way", "older": ""})
)
OLD = whole(Hello(role=Role.PEER, cluster="old", node=2))
CLIENT = whole(Hello(role=Role.CLIENT, cluster="old"))


@pytest.mark.parametrize(("ours", "theirs"), [(NEW, OLD), (OLD, NEW)])
def test_a_node_of_what_it_was_is_told_how_to_follow(ours: Hello, theirs: Hello) -> None:
    with pytest.raises(ClusterSucceeded, match="without node 2") as refused:
        negotiated(ours, theirs)
    assert refused.value.former == "old"
    assert "--follow way" in str(refused.value)


def test_a_node_of_what_it_was_before_that_cannot_follow() -> None:
    oldest = whole(Hello(role=Role.PEER, cluster="older", node=2))
    with pytest.raises(ClusterSucceeded) as refused:
        negotiated(NEW, oldest)
    assert "--follow" not in str(refused.value)


@pytest.mark.parametrize(("ours", "theirs"), [(NEW, CLIENT), (CLIENT, NEW)])
def test_a_client_of_what_it_was_goes_on(ours: Hello, theirs: Hello) -> None:
    assert negotiated(ours, theirs).hello is theirs


def test_a_client_that_has_gone_on_does_not_go_back() -> None:
    with pytest.raises(WrongCluster):
        negotiated(OLD, whole(Hello(role=Role.CLIENT, cluster="new")))


def test_strangers_are_strangers() -> None:
    for role in (Role.PEER, Role.CLIENT):
        with pytest.raises(WrongCluster) as refused:
            negotiated(NEW, whole(Hello(role=role, cluster="other", node=2)))
        assert not isinstance(refused.value, ClusterSucceeded)


@pytest.mark.parametrize("hello", [NEW, OLD, CLIENT])
def test_greetings_are_read_as_they_were_said(hello: Hello) -> None:
    head, _ = frame_head(
        FrameKind.HELLO, 0, MAGIC, hello, (), frame_bytes_max=1 << 20, header_bytes_max=1 << 20
    )
    assert greeting_in(_framed(head)) == hello


def _framed(head: bytes) -> Frame:
    (frame,) = FrameDecoder(frame_bytes_max=1 << 20, header_bytes_max=1 << 20).feed(bytes(head))
    return frame
