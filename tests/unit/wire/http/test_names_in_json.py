"""A document in which an object has the same name twice is refused, however it is written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.errors import InvalidArgument
from angarium.wire.http.strict_json import check_names

WORDS = st.sampled_from(['"a"', '"b"', r'"\u0061"', r'"\""', r'"\u0022"', '"é"', '"a\\/"', '""'])
SPACES = st.sampled_from(["", " ", "\n"])


def documents() -> st.SearchStrategy[str]:
    plain = st.one_of(WORDS, st.sampled_from(["1", "1e3", "null", "true", "1" * 30, "1e999"]))
    return st.recursive(plain, _nested, max_leaves=12)


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.builds("{1}{0}{1}:{1}{2}".format, WORDS, SPACES, inner)
    objects = st.lists(pair, max_size=4).map(lambda some: "{" + ",".join(some) + "}")
    arrays = st.lists(inner, max_size=3).map(lambda some: "[" + ",".join(some) + "]")
    return st.one_of(objects, arrays)


@given(documents(), st.booleans())
def test_a_name_that_comes_twice_is_found(document: str, in_bytes: bool) -> None:
    has_twice = False

    def looked(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal has_twice
        has_twice = has_twice or len(dict(pairs)) != len(pairs)
        return dict(pairs)

    json.loads(document, object_pairs_hook=looked)
    body = document.encode() if in_bytes else document
    if has_twice:
        with pytest.raises(InvalidArgument, match="twice"):
            check_names(body)
    else:
        check_names(body)


def test_quotes_written_as_numbers_hide_no_name() -> None:
    # As many quotes as if it were there once.
    with pytest.raises(InvalidArgument, match="twice"):
        check_names(rb'{"a":1,"a":1,"b":"\u0022\u0022"}')
