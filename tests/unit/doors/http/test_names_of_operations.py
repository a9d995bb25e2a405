"""An operation of GraphQL in which a name comes twice is noticed, at a glance or by a look."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.doors.http.graphql.endpoint import _has_names_once
from angarium.doors.http.graphql.execution import Operation

_read = msgspec.json.Decoder(Operation).decode


def once(body: bytes) -> bool:
    return _has_names_once(body, _read(body))


@given(st.text(max_size=20), st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3))
def test_most_operations_are_known_at_a_glance(query: str, variables: dict[str, str]) -> None:
    body = json.dumps({"query": query, "variables": variables}, ensure_ascii=False)
    if not any("\ud800" <= one <= "\udfff" for one in body):
        assert once(body.encode()) is ("\\\\" not in body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"query":"a","query":"b"}',
        b'{"query":"a","variables":{"p":"x","p":"y"}}',
        b'{"query":"a","variables":{"p":"x"},"variables":{"p":"y"}}',
        b'{"query":"a\\"","query":"b"}',
        b'{"query":"a","operationName":"x","operationName":"y"}',
        b'{"query":"a","more":1,"more":2}',
        b'{"query":"a\\\\","variables":{"p":"x\\\\"}}',  # nothing is, but it takes a look
        b'{"query":"a","variables":{"p":{"q":1,"q":2}}}',
        b'{"query":"a","variables":null,"variables":null}',
    ],
)
def test_a_name_that_may_come_twice_is_looked_for(body: bytes) -> None:
    assert not once(body)
