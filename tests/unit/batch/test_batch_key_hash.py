"""The hash of keys never changes, and spreads them evenly."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from angarium.batch import NO_KEY, Batch, encode, key_hash

VECTORS = {
    None: 0,
    b"": 1,
    b"a": 0xE8B7BE43,
    b"123456789": 0xCBF43926,
    b"user-42": 0x7D06B873,
    b"\x00": 0xD202EF8D,
    bytes(32): 0x190A55AD,
    b"\xff\xff\xff\xff": 0xFFFFFFFF,
    "κλειδί".encode(): 0xBFA220D7,
}
"""The vectors of docs/reference/batch.md: an implementation in any language gives these."""


@pytest.mark.parametrize(("key", "expected"), VECTORS.items())
def test_the_vectors_of_the_reference_hold(key: bytes | None, expected: int) -> None:
    assert key_hash(key) == expected


def test_a_key_whose_checksum_is_zero_does_not_look_like_no_key() -> None:
    zero = bytes.fromhex("9d0ad96d")  # the four bytes whose CRC-32 is 0
    hashes = Batch.parse(encode([b""] * 4, keys=[zero, b"", None, b"x"])).key_hashes()
    assert hashes is not None
    assert list(hashes) == [1, 1, NO_KEY, key_hash(b"x")]
    hashes = Batch.parse(encode([b""] * 3, keys=[zero, b"", b"x"])).key_hashes()
    assert hashes is not None
    assert list(hashes) == [1, 1, key_hash(b"x")]


@pytest.mark.parametrize("partitions", [2, 3, 7, 8, 12, 32, 64, 100])
@pytest.mark.parametrize(
    "keys",
    [
        [b"user-%d" % i for i in range(20_000)],
        [b"%08d" % i for i in range(20_000)],
        [i.to_bytes(8, "big") for i in range(20_000)],
        [(i << 12).to_bytes(8, "little") for i in range(20_000)],
        [
            str(uuid.UUID(int=i * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)).encode()
            for i in range(20_000)
        ],
    ],
    ids=["names", "digits", "big-endian", "steps of 4096", "uuids"],
)
def test_ordinary_keys_spread_evenly_over_partitions(keys: list[bytes], partitions: int) -> None:
    load = Counter(key_hash(key) % partitions for key in keys)
    fair = len(keys) / partitions
    assert len(load) == partitions
    # Chance alone would give a largest deviation of about four standard deviations here.
    assert max(abs(count - fair) for count in load.values()) < 5 * fair**0.5
