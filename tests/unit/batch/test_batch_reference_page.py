"""The reference page tells the truth: its example, its positions, its vectors, its limits."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fuzz.forgery import HEADER_FIELDS

from angarium.batch import Batch, BatchLimits, Flag, key_hash

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "batch.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def hex_example() -> bytes:
    example = b""
    for line in block("hex").splitlines():
        found = re.match(r"([0-9a-f]{3})  ((?:[0-9a-f]{2} {1,2}){8})", line)
        assert found is not None, line
        assert int(found[1], 16) == len(example)
        example += bytes.fromhex(found[2])
    return example


def test_the_code_of_the_example_makes_its_bytes() -> None:
    names: dict[str, bytes] = {}
    exec(block("python"), names)
    assert names["batch"] == hex_example()


def test_the_bytes_of_the_example_hold_what_the_text_says() -> None:
    first, second = Batch.parse(hex_example())
    assert (first.offset, first.key, first.value) == (5000, b"k", b"hi")
    assert first.headers == (("a", b"1"),)
    assert (second.offset, second.key, second.value, second.headers) == (5001, b"k", None, ())
    assert {first.timestamp, second.timestamp} == {1704067200000000}


def test_every_field_is_where_the_page_says() -> None:
    types = {"u8": "<B", "u32": "<I", "i64": "<q"}
    rows = re.findall(r"^\| (\d+) \| (u8|u32|i64) \| ([a-z_]+) \|", PAGE, re.MULTILINE)
    documented = {name: (types[kind], int(at)) for at, kind, name in rows}
    del documented["crc"], documented["stamp_crc"]
    reserved = {"reserved_byte", "reserved"}
    assert documented == {
        name: place for name, place in HEADER_FIELDS.items() if name not in reserved
    }


def test_every_flag_has_the_bit_that_the_page_gives_it() -> None:
    rows = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", PAGE, re.MULTILINE)
    assert {name: 1 << int(bit) for bit, name in rows} == {flag.name: int(flag) for flag in Flag}


def test_the_vectors_of_the_key_hash_hold() -> None:
    vectors = re.findall(r"^\| `([^`]+)`(?: in UTF-8)? \| `([0-9A-F]{8})` \|", PAGE, re.MULTILINE)
    assert len(vectors) == 4
    for key, expected in vectors:
        assert key_hash(key.encode()) == int(expected, 16)


def test_the_limits_are_the_defaults() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| ([\d,]+)(?: MiB)? \|", PAGE, re.MULTILINE))
    limits = BatchLimits()
    assert int(rows["bytes_max"]) << 20 == limits.bytes_max
    assert int(rows["section_bytes_max"]) << 20 == limits.section_bytes_max
    assert int(rows["records_max"].replace(",", "")) == limits.records_max
    assert int(rows["headers_max"].replace(",", "")) == limits.headers_max
