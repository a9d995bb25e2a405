"""A request's head is what RFC 9113 allows, or the request is refused."""

from __future__ import annotations

import pytest

from angarium.wire.http2.request_heads import (
    MalformedRequest,
    RequestHead,
    check_trailers,
    without,
)

Field = tuple[bytes, bytes]

METHOD, SCHEME, PATH = (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a/b")
PLAIN = (METHOD, SCHEME, PATH)


def test_a_head_has_its_parts() -> None:
    head = RequestHead((*PLAIN, (b":authority", b"here"), (b"te", b"trailers"), (b"x", b"1")))
    assert (head.method, head.scheme, head.path) == (b"POST", b"http", b"/a/b")
    assert head.authority == b"here"
    assert head.fields == ((b"te", b"trailers"), (b"x", b"1"))
    assert head.content_length == -1


def test_of_a_header_that_comes_twice_the_last_value_counts_and_both_are_kept() -> None:
    head = RequestHead((*PLAIN, (b"x", b"1"), (b"x", b"2")))
    assert head.values == {b"x": b"2"}
    assert head.fields == ((b"x", b"1"), (b"x", b"2"))


def test_its_bytes_are_counted_with_32_for_each_field() -> None:
    assert RequestHead(PLAIN).bytes == sum(len(name) + len(value) + 32 for name, value in PLAIN)


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (METHOD, SCHEME),
        (METHOD, PATH),
        (SCHEME, PATH),
        (METHOD, SCHEME, (b":path", b"")),
        (*PLAIN, METHOD),
        (*PLAIN, (b":status", b"200")),
        (*PLAIN, (b":", b"")),
        (METHOD, SCHEME, (b"x", b"1"), PATH),
        (*PLAIN, (b"x", b"1"), (b":authority", b"here")),
    ],
)
def test_pseudo_headers_come_first_and_once_and_none_is_missing(fields: tuple[Field, ...]) -> None:
    with pytest.raises(MalformedRequest):
        RequestHead(fields)


@pytest.mark.parametrize(
    "name", [b"", b"X", b"x-Y", b"x y", b"x:", b"\xe9", b"x\0", b"x\r", b"x\n", b"x\ny", b"\nx"]
)
def test_a_name_is_made_of_what_names_are_made_of(name: bytes) -> None:
    for fields in (((name, b"1"),), ((name, b"1"), (b"z", b"2")), ((b"z", b"2"), (name, b"1"))):
        with pytest.raises(MalformedRequest):
            RequestHead((*PLAIN, *fields))
        with pytest.raises(MalformedRequest):
            check_trailers(fields)


@pytest.mark.parametrize("value", [b"a\nb", b"a\r", b"\0"])
@pytest.mark.parametrize("name", [b"x", b":path", b":authority"])
def test_a_value_is_one_line(name: bytes, value: bytes) -> None:
    others = tuple(one for one in PLAIN if one[0] != name)
    field = ((name, value),)
    with pytest.raises(MalformedRequest):
        RequestHead((*field, *others) if name.startswith(b":") else (*others, *field))


def test_a_value_may_be_any_other_bytes() -> None:
    value = bytes(set(range(256)) - set(b"\0\r\n"))
    assert RequestHead((*PLAIN, (b"x", value))).values[b"x"] == value


@pytest.mark.parametrize(
    "field",
    [
        (b"connection", b"close"),
        (b"keep-alive", b"1"),
        (b"proxy-connection", b"close"),
        (b"transfer-encoding", b"chunked"),
        (b"upgrade", b"h2c"),
        (b"te", b"gzip"),
        (b"te", b""),
    ],
)
def test_what_belongs_to_http_1_is_refused(field: Field) -> None:
    with pytest.raises(MalformedRequest):
        RequestHead((*PLAIN, field))


def test_one_wrong_te_is_not_made_good_by_another() -> None:
    with pytest.raises(MalformedRequest):
        RequestHead((*PLAIN, (b"te", b"gzip"), (b"te", b"trailers")))


@pytest.mark.parametrize(("text", "length"), [(b"0", 0), (b"007", 7), (b"9" * 18, 10**18 - 1)])
def test_a_content_length_is_a_number(text: bytes, length: int) -> None:
    assert RequestHead((*PLAIN, (b"content-length", text))).content_length == length


@pytest.mark.parametrize("text", [b"", b"-1", b"+1", b"1 ", b"0x1", b"1_0", b"\xb2", b"1" * 19])
def test_a_content_length_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedRequest):
        RequestHead((*PLAIN, (b"content-length", text)))


def test_content_lengths_that_differ_are_refused() -> None:
    same = (b"content-length", b"5")
    assert RequestHead((*PLAIN, same, same)).content_length == 5
    with pytest.raises(MalformedRequest):
        RequestHead((*PLAIN, (b"content-length", b"4"), same))


def test_trailers_are_headers_without_pseudo_headers() -> None:
    check_trailers(())
    check_trailers(((b"x", b"1"),))
    for fields in ((PATH,), ((b"x", b"1"), PATH), ((b"x", b"a\nb"),)):
        with pytest.raises(MalformedRequest):
            check_trailers(fields)


def test_a_field_is_told_beside_the_others() -> None:
    fields = (*PLAIN, (b"a", b"1"), (b"until", b"12S"), (b"b", b"2"))
    assert without(b"until", fields) == ((*PLAIN, (b"a", b"1"), (b"b", b"2")), b"12S")
    assert without(b"other", fields) == (fields, None)


@pytest.mark.parametrize(
    "fields",
    [
        (*PLAIN, (b"until", b"")),
        (*PLAIN, (b"until", b"12 S")),
        (*PLAIN, (b"until", b"12\0")),
        (*PLAIN, (b"until", b"1" * 17)),
        (METHOD, SCHEME, (b"until", b"12S"), PATH),
    ],
)
def test_one_that_may_be_wrong_stays_with_them(fields: tuple[Field, ...]) -> None:
    assert without(b"until", fields) == (fields, None)


def test_who_asks_is_said_once() -> None:
    proof = (b"authorization", b"Bearer a")
    assert RequestHead((*PLAIN, proof)).values[b"authorization"] == b"Bearer a"
    with pytest.raises(MalformedRequest):
        RequestHead((*PLAIN, proof, (b"authorization", b"Bearer b")))
