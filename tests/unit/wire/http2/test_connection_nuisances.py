"""A client that keeps a connection busy with nothing is sent away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.wire.http2.client_bytes import (
    REQUEST,
    Client,
    data,
    failure,
    request,
    reset,
    settings_of,
)

from angarium.wire.flooding.bounds import CALM_UNPROVEN_MAX
from angarium.wire.http2 import ErrorCode, Http2Limits
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import literal

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_client_that_opens_and_resets_too_much_is_sent_away() -> None:
    client = Client(Http2Limits(resets_max=5))
    for one in range(5):
        assert client.say(request(2 * one + 1), reset(2 * one + 1)) == []
    assert failure(client, client.say(request(11), reset(11))) is ErrorCode.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "mistake",
    [
        lambda stream_id: h2.window_update(stream_id, 0),
        lambda stream_id: data(stream_id, b"after the end"),
        lambda stream_id: h2.frame(h2.PRIORITY, 0, stream_id, h2.long_bytes(stream_id) + b"\0"),
        lambda stream_id: h2.window_update(stream_id, h2.WINDOW_MAX),
    ],
)
def test_so_is_one_that_makes_us_reset_them(mistake: Callable[[int], bytes]) -> None:
    client = Client(Http2Limits(resets_max=5))
    for one in range(5):
        answers = client.say(request(2 * one + 1, ends=True), mistake(2 * one + 1))
        assert [answer.kind for answer in answers] == [h2.RST_STREAM]
    answers = client.say(request(11, ends=True), mistake(11))
    assert failure(client, answers) is ErrorCode.ENHANCE_YOUR_CALM


def test_streams_that_are_refused_for_their_number_are_no_nuisance_yet() -> None:
    client = Client(Http2Limits(resets_max=5, streams_max=1))
    client.say(request(1))
    answers = client.say(*(request(2 * one + 3) for one in range(20)))
    assert {one.number for one in answers} == {ErrorCode.REFUSED_STREAM}
    assert not client.connection.is_over


@pytest.mark.parametrize(
    "said",
    [
        h2.frame(h2.PING, 0, 0, bytes(8)),
        h2.frame(h2.PING, h2.ACK, 0, bytes(8)),
        settings_of(),
        h2.frame(h2.PRIORITY, 0, 9, bytes(5)),
        data(1, b""),
        reset(3),
        h2.frame(99, 0, 0),
    ],
)
def test_frames_that_ask_for_nothing_are_counted(said: bytes) -> None:
    client = Client(Http2Limits(control_frames_max=10))
    client.say(request(1), request(3), reset(3))
    client.connection.nuisances.begin_anew()
    client.say(said * 10)
    assert not client.connection.is_over
    assert failure(client, client.say(said)) is ErrorCode.ENHANCE_YOUR_CALM


def test_what_brings_a_request_further_is_not_counted() -> None:
    client = Client(Http2Limits(control_frames_max=10))
    client.connection.nuisances.begin_anew()
    client.say(request(1))
    client.say(data(1, b"a few") * 100, h2.window_update(1, 1) * 100, h2.window_update(0, 1) * 100)
    assert not client.connection.is_over


def test_settings_count_more_the_more_streams_there_are() -> None:
    client = Client(Http2Limits(control_frames_max=50))
    client.say(*(request(2 * one + 1) for one in range(160)))
    client.connection.nuisances.begin_anew()
    assert failure(client, client.say(settings_of() * 5)) is ErrorCode.ENHANCE_YOUR_CALM


def unproven() -> Client:
    client = Client()
    client.connection.nuisances.begin_anew()
    client.connection.nuisances.is_proven = False
    return client


def test_settings_count_by_their_number() -> None:
    client = unproven()
    client.say(settings_of(*[(4, 65_535)] * 40))
    assert client.connection.nuisances.control >= 10


def test_a_frame_with_far_too_many_settings_ends_the_connection() -> None:
    client = unproven()
    said = client.say(settings_of(*[(4, 65_535)] * 2_730))
    assert failure(client, said) is ErrorCode.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "more",
    [
        literal(b"a", b"") * 400,
        b"\x10\x01a\xff\xd1\x4f" + bytes.fromhex("18c6318c63") * 2_064,
    ],
    ids=["fields", "huffman"],
)
def test_header_blocks_count_by_what_it_takes_to_decode_them(more: bytes) -> None:
    client = unproven()
    client.say(request(1, REQUEST + more, ends=True))
    assert client.connection.nuisances.control > CALM_UNPROVEN_MAX
    assert client.connection.nuisances.is_flooding


def test_a_header_block_with_far_too_many_fields_ends_the_connection() -> None:
    client = unproven()
    said = client.say(request(1, REQUEST + literal(b"a", b"") * 1_900, ends=True))
    assert failure(client, said) is ErrorCode.ENHANCE_YOUR_CALM


def test_ordinary_heads_count_as_before_and_those_of_known_clients_not_at_all() -> None:
    client = unproven()
    fields = literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    client.say(*(request(2 * one + 1, REQUEST + fields, ends=True) for one in range(20)))
    assert client.connection.nuisances.control == 20
    client = Client()
    client.connection.nuisances.begin_anew()
    token = literal(b"authorization", b"Bearer " + b"x" * 3_000)
    for one in range(20):
        client.say(request(2 * one + 1, REQUEST + token + literal(b"n", b"%d" % one), ends=True))
    assert client.connection.nuisances.control == 0


def test_before_login_a_turn_ends_by_the_weight_of_its_frames() -> None:
    client = unproven()
    heads = [REQUEST + literal(b"a", b"%d" % one) * 400 for one in range(8)]
    frames = [request(2 * at + 1, one, ends=True) for at, one in enumerate(heads)]
    client.connection.receive(b"".join(frames), frames_max=256)
    assert client.connection.has_more
    assert len(client.heard.streams) <= 3


def test_a_frame_that_dribbles_in_before_login_is_counted() -> None:
    client = unproven()
    for byte in request(1, REQUEST + literal(b"a", bytes(60)), ends=True)[:-1]:
        client.say(bytes((byte,)))
    assert client.connection.nuisances.is_flooding
