"""Blocks that differ in the varying field alone are recognised, and mean what they say."""

from __future__ import annotations

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.http2.client_bytes import (
    REQUEST,
    Client,
    Frame,
    failure,
    request,
    settings_of,
)

from angarium.wire.http2 import Connection, ErrorCode, Http2Limits
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import ConnectionFailed, Setting
from angarium.wire.http2.header_blocks import (
    PATTERNS_MAX,
    RECOGNISED_BYTES_MAX,
    HeaderDecoder,
    literal,
)
from angarium.wire.http2.request_heads import without

UNTIL = b"until"
BEFORE = b"\x83\x86" + literal(b":path", b"/a/b")
BEHIND = literal(b"x-trace", b"7")


def decoder() -> HeaderDecoder:
    return HeaderDecoder(block_bytes_max=64 << 10, varying=UNTIL)


def block(value: bytes) -> bytes:
    return BEFORE + literal(UNTIL, value) + BEHIND


def test_they_have_the_same_fields_and_each_its_value() -> None:
    reader = decoder()
    first, one = reader.parted(block(b"1S"))
    second, other = reader.parted(block(b"999m"))
    assert first is second
    assert (one, other) == (b"1S", b"999m")
    assert first == (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/a/b"),
        (b"x-trace", b"7"),
    )


def test_a_value_in_huffman_code_is_decoded() -> None:
    reader = decoder()
    reader.parted(block(b"1S"))
    assert reader.parted(BEFORE + b"\x00\x05until\x84\x10\x84\x2b\x7f" + BEHIND)[1] == b"2222u"


@pytest.mark.parametrize("value", [b"", b"two words", b"a" * 17, b"1\n"])
def test_a_value_that_is_no_short_word_stays_among_the_fields(value: bytes) -> None:
    reader = decoder()
    reader.parted(block(b"1S"))
    fields, varying = reader.parted(block(value))
    assert varying is None
    assert (UNTIL, value) in fields


@pytest.mark.parametrize(
    "behind", [b"", BEHIND[:-1] + b"8", BEHIND + b"\x82", literal(UNTIL, b"2S") + BEHIND]
)
def test_what_is_another_block_behind_the_value_means_something_else(behind: bytes) -> None:
    reader = decoder()
    reader.parted(block(b"1S"))
    other = BEFORE + literal(UNTIL, b"1S") + behind
    assert reader.parted(other) == without(UNTIL, decoder().decoded(other))


@pytest.mark.parametrize("cut", range(1, len(block(b"1S")) - len(BEFORE)))
def test_one_that_ends_too_early_is_refused_as_any_other(cut: int) -> None:
    reader = decoder()
    reader.parted(block(b"1S"))
    short = block(b"2S")[:-cut]
    assert outcome(reader, short) == outcome(decoder(), short)


def outcome(reader: HeaderDecoder, some: bytes) -> object:
    """Return what a block means, or why nobody knows."""
    try:
        return reader.parted(some)
    except ConnectionFailed as failure:
        return failure.reason


def test_broken_huffman_code_is_refused_as_anywhere() -> None:
    reader = decoder()
    reader.parted(block(b"1S"))
    with pytest.raises(ConnectionFailed) as failure:
        reader.parted(BEFORE + b"\x00\x05until\x81\x00" + BEHIND)
    assert failure.value.code is ErrorCode.COMPRESSION_ERROR


def test_what_refers_to_the_table_is_not_recognised_when_that_is_another() -> None:
    reader = decoder()
    reader.parted(b"\x40\x01a\x01b")
    assert reader.parted(b"\xbe" + literal(UNTIL, b"1S")) == (((b"a", b"b"),), b"1S")
    reader.parted(b"\x40\x01c\x01d")
    assert reader.parted(b"\xbe" + literal(UNTIL, b"2S")) == (((b"c", b"d"),), b"2S")
    reader.parted(b"\x20")
    with pytest.raises(ConnectionFailed):
        reader.parted(b"\xbe" + literal(UNTIL, b"3S"))


def test_a_client_without_a_table_may_ask_to_have_something_remembered() -> None:
    reader = decoder()
    reader.parted(b"\x20")
    asks = b"\x40\x01a\x01b\x40\x05until\x02"
    first, _ = reader.parted(asks + b"1S")
    assert reader.parted(asks + b"2S")[0] is first
    with pytest.raises(ConnectionFailed):
        reader.parted(b"\xbe")


def test_more_kinds_than_are_remembered_are_understood_and_large_ones_too() -> None:
    reader = decoder()
    sizes = [*range(3 * PATTERNS_MAX), RECOGNISED_BYTES_MAX]
    for turn in range(3):
        for size in sizes:
            some = literal(b"x", b"-" * size) + literal(UNTIL, b"%dS" % turn)
            assert reader.parted(some) == (((b"x", b"-" * size),), b"%dS" % turn)


requests = st.lists(
    st.tuples(
        st.sampled_from([b"/a", b"/b", b"/c"]),
        st.none() | st.from_regex(rb"[0-9]{1,8}[HMSmun]", fullmatch=True) | st.binary(max_size=20),
        st.lists(st.tuples(st.sampled_from([b"x", b"until", b"y"]), st.sampled_from([b"1", b"2"]))),
    ),
    max_size=20,
)


@given(st.sampled_from([0, 60, 200, 4_096]), st.booleans(), requests)
def test_whatever_a_client_sends_is_read_as_another_library_reads_it(
    table: int,
    huffman: bool,
    said: list[tuple[bytes, bytes | None, list[tuple[bytes, bytes]]]],
) -> None:
    encoder, reader = hpack.Encoder(), decoder()
    encoder.header_table_size = table
    for path, until, more in said:
        fields = [(b":method", b"POST"), (b":path", path)]
        fields += [] if until is None else [(UNTIL, until)]
        fields += more
        found = reader.parted(encoder.encode(fields, huffman=huffman))
        assert found == without(UNTIL, tuple(fields))


# --- clients are asked to do without the table ----------------------------------------------------

ACKNOWLEDGED = h2.frame(h2.SETTINGS, h2.ACK, 0)


class Calling(Client):
    """A client of a server whose requests differ in one header; its encoder keeps a table."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = Connection(self.heard, Http2Limits(), varying=UNTIL)
        self.say(h2.PREFACE + settings_of(), ACKNOWLEDGED)
        self.encoder = hpack.Encoder()
        self._number = -1

    def call(self, until: bytes | None) -> list[Frame]:
        self._number += 2
        fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a/b")]
        fields += [] if until is None else [(UNTIL, until)]
        return self.say(request(self._number, self.encoder.encode(fields)))

    @property
    def untils(self) -> list[bytes | None]:
        return [one.varying for one in self.heard.streams.values()]


def asked(answers: list[Frame]) -> list[tuple[int, int]]:
    """Return the settings that a client is told."""
    return [
        pair
        for one in answers
        if one.kind == h2.SETTINGS and not one.flags
        for pair in h2.read_settings(one.payload)
    ]


def test_one_that_keeps_what_varies_in_the_table_is_asked_once_to_do_without() -> None:
    client = Calling()
    told = [asked(client.call(b"%dm" % number)) for number in range(5)]
    assert told == [[], [(Setting.HEADER_TABLE_SIZE, 0)], [], [], []]
    client.encoder.header_table_size = 0
    client.say(ACKNOWLEDGED)
    for number in range(5, 9):
        client.call(b"%dm" % number)
    assert client.untils == [b"%dm" % number for number in range(9)]
    assert not client.connection.is_over


def test_one_whose_requests_are_alike_keeps_its_table() -> None:
    client = Calling()
    assert [asked(client.call(until)) for until in (None, b"1S", None, b"1S", b"1S")] == [[]] * 5


@pytest.mark.parametrize("acknowledged", [True, False])
def test_one_that_has_heard_may_not_ask_for_a_table_again(acknowledged: bool) -> None:
    # RFC 7541, section 6.3: above what the setting says that was acknowledged.
    client = Calling()
    for number in range(3):
        client.call(b"%dm" % number)
    if acknowledged:
        client.say(ACKNOWLEDGED)
    answers = client.say(request(99, b"\x3f\x01" + REQUEST))
    assert client.connection.is_over == acknowledged
    if acknowledged:
        assert failure(client, answers) is ErrorCode.COMPRESSION_ERROR


def test_one_that_has_heard_nothing_has_the_table_that_everybody_has() -> None:
    client = Client()
    answers = client.say(ACKNOWLEDGED, request(1, b"\x3f\x61\x3f\xe1\x1f" + REQUEST))
    assert not client.connection.is_over
    assert not asked(answers)
