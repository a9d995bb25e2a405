"""Values that follow each other without lengths: whatever way they come, and whatever they are."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.discovery.msgpack_stream import PARTS_MAX, Unpacker, UnreadableValue

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=300)
    | st.text(max_size=300)
)
VALUES = st.recursive(
    SCALARS,
    lambda inside: (
        st.lists(inside, max_size=20)
        | st.dictionaries(st.text(max_size=40) | st.integers(0, 2**32), inside, max_size=20)
    ),
    max_leaves=30,
)


def as_bytes(value: object) -> object:
    """Return a value as it is read: its texts are bytes."""
    match value:
        case str():
            return value.encode()
        case list():
            return [as_bytes(one) for one in value]
        case dict():
            return {as_bytes(name): as_bytes(one) for name, one in value.items()}
        case _:
            return value


def all_of(unpacker: Unpacker) -> list[object]:
    taken: list[object] = []
    while (one := unpacker.take()) is not None:
        taken += one
    return taken


@given(st.lists(VALUES, max_size=5), st.integers(1, 50))
def test_what_was_packed_comes_out_in_whatever_pieces_it_comes(
    values: list[object], piece: int
) -> None:
    data = b"".join(map(msgspec.msgpack.encode, values))
    unpacker = Unpacker(value_bytes_max=1 << 20)
    taken = []
    for start in range(0, len(data), piece):
        unpacker.feed(data[start : start + piece])
        taken += all_of(unpacker)
    assert taken == [as_bytes(one) for one in values]


@given(st.binary(max_size=400))
def test_hostile_bytes_are_refused_or_wait_for_more(data: bytes) -> None:
    unpacker = Unpacker(value_bytes_max=1_000)
    try:
        unpacker.feed(data)
        all_of(unpacker)
    except UnreadableValue:
        return


@pytest.mark.parametrize("length", [70_000, 40])
def test_long_texts_and_short_ones_are_read(length: int) -> None:
    unpacker = Unpacker(value_bytes_max=1 << 20)
    unpacker.feed(msgspec.msgpack.encode("x" * length))
    assert unpacker.take() == (b"x" * length,)
    assert unpacker.take() is None


def test_an_extension_is_bytes() -> None:
    unpacker = Unpacker(value_bytes_max=100)
    unpacker.feed(msgspec.msgpack.encode([msgspec.msgpack.Ext(5, b"abcd"), 1]))
    assert unpacker.take() == ([b"\x05abcd", 1],)


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",
        b"\x91" * 20 + b"\xc0",  # deep
        b"\x81\x90\xc0",  # an array as a key
        b"\xdd\xff\xff\xff\xff",  # four billion values
    ],
)
def test_what_no_agent_sends_is_refused(data: bytes) -> None:
    unpacker = Unpacker(value_bytes_max=1_000)
    unpacker.feed(data)
    with pytest.raises(UnreadableValue):
        all_of(unpacker)


def test_more_than_a_value_may_have_is_refused() -> None:
    unpacker = Unpacker(value_bytes_max=100)
    with pytest.raises(UnreadableValue, match="100 bytes"):
        unpacker.feed(b"\xdb\x00\xff\xff\xff" + b"x" * 100)
    unpacker = Unpacker(value_bytes_max=1 << 20)
    unpacker.feed(b"\xdd" + (PARTS_MAX - 2).to_bytes(4, "big") + b"\xc0" * (PARTS_MAX - 2))
    assert unpacker.take() == ([None] * (PARTS_MAX - 2),)
    unpacker.feed(b"\xdd" + PARTS_MAX.to_bytes(4, "big"))
    with pytest.raises(UnreadableValue, match="parts"):
        unpacker.take()
