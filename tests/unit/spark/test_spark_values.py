"""Structured values: bytes to structs and back, in every format, and what becomes of bad ones."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from tests.unit.spark.shop_messages import Field, descriptors

from angarium.errors import InvalidArgument
from angarium.spark.options import read_options
from angarium.spark.rows import RowShape
from angarium.spark.values.codec import Undecodable, codec_of
from angarium.spark.values.decoding import ValueReader
from angarium.spark.values.options import BadValues, ValueFormat, ValueOptions
from angarium.spark.values.writing import check_structs, with_values
from angarium.spark.write_options import write_options

NOON = dt.datetime(2026, 11, 15, 12, 0, 0, 250_000, tzinfo=dt.UTC)

LINE = pa.struct([("sku", pa.string()), ("count", pa.int32())])
ORDER = pa.struct(
    [
        ("customer", pa.string()),
        ("amount", pa.float64()),
        ("paid", pa.bool_()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("lines", pa.list_(LINE)),
    ]
)
ORDERS: list[dict[str, Any] | None] = [
    {
        "customer": 'a "b" \\ c\n\u00fc\U0001f600\x01',
        "amount": 12.5,
        "paid": True,
        "at": NOON,
        "lines": [{"sku": "tea", "count": 2}, {"sku": "cake", "count": 1}],
    },
    None,
    {"customer": "", "amount": -1e-9, "paid": False, "at": NOON, "lines": []},
]

AVRO = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "paid", "type": ["null", "boolean"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
                },
            },
        },
    ],
}

FORMATS = {
    "json": ValueOptions(format=ValueFormat.JSON),
    "avro": ValueOptions(format=ValueFormat.AVRO, schema=json.dumps(AVRO).encode()),
    "protobuf": ValueOptions(
        format=ValueFormat.PROTOBUF, schema=descriptors(), message="shop.Order"
    ),
}


@pytest.fixture(params=sorted(FORMATS))
def options(request: pytest.FixtureRequest) -> ValueOptions:
    if request.param == "avro":
        pytest.importorskip("fastavro", reason="the extra angarium[avro] is not installed")
    return FORMATS[request.param]


def test_what_is_encoded_is_decoded_again(options: ValueOptions) -> None:
    codec = codec_of(options)
    codec.check_writable(ORDER)
    codec.check_readable(ORDER)
    values = codec.encoded(pa.array(ORDERS, ORDER))
    assert values.type == pa.binary()
    assert values.null_count == 1
    assert codec.decoded(values, ORDER).to_pylist() == ORDERS
    # A slice of it, as Spark's batches often are.
    assert codec.decoded(values.slice(1), ORDER).to_pylist() == ORDERS[1:]
    assert codec.encoded(pa.array(ORDERS, ORDER).slice(2)).to_pylist() == values.to_pylist()[2:]
    assert codec.decoded(pa.array([], pa.binary()), ORDER).to_pylist() == []


def test_a_query_may_want_fewer_members(options: ValueOptions) -> None:
    codec = codec_of(options)
    skus = pa.list_(pa.struct([("sku", pa.string())]))
    few = pa.struct([("lines", skus), ("amount", pa.float64())])
    codec.check_readable(few)
    values = codec.encoded(pa.array(ORDERS, ORDER))
    assert codec.decoded(values, few).to_pylist() == [
        {"lines": [{"sku": "tea"}, {"sku": "cake"}], "amount": 12.5},
        None,
        {"lines": [], "amount": -1e-9},
    ]


def rows(values: pa.Array) -> pa.RecordBatch:
    offsets = pa.array(range(100, 100 + len(values)), pa.int64())
    return pa.RecordBatch.from_arrays([values, offsets], ["value", "offset"])


def test_a_bad_value_is_named_or_null_or_left_out(options: ValueOptions) -> None:
    good = codec_of(options).encoded(pa.array(ORDERS, ORDER)).to_pylist()
    given = rows(pa.array([good[0], b"\xff\xfe{", good[1], good[2], b"\x0a\xff"], pa.binary()))

    def read(bad: BadValues) -> tuple[list[int], list[Any]]:
        chosen = ValueOptions(
            format=options.format, schema=options.schema, message=options.message, bad=bad
        )
        kept, structs = ValueReader(chosen, ORDER).decoded(given, topic="orders", partition=3)
        return kept.column("offset").to_pylist(), structs.to_pylist()

    with pytest.raises(InvalidArgument, match="at offset 101 of orders partition 3 cannot be deco"):
        read(BadValues.FAIL)
    one, two, three = ORDERS
    assert read(BadValues.NULL) == ([100, 101, 102, 103, 104], [one, None, two, three, None])
    assert read(BadValues.DROP) == ([100, 102, 103], [one, two, three])


NUMBER = pa.struct([("n", pa.int64())])


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"7",
        b"[]",
        b'{"n":1}{"n":2}',
        b'{"n":1}}\n{"v":{"n":2}',
        b'{"n":"1"}',
        b'{"n":1.5}',
        b'{"n":1,"n":2}',
        b'{"n":1',
        b'"',
        b'{"n":9223372036854775808}',
        b'{"x":"\xff"}',
    ],
)
def test_no_json_can_pass_for_its_neighbours(bad: bytes) -> None:
    codec = codec_of(FORMATS["json"])
    good = [b'{"n":%d}' % number for number in range(5)]
    with pytest.raises(Undecodable):
        codec.decoded(pa.array([*good, bad], pa.binary()), NUMBER)
    reader = ValueReader(ValueOptions(format=ValueFormat.JSON, bad=BadValues.NULL), NUMBER)
    values = pa.array([good[0], bad, bad, good[1], good[2], bad], pa.binary())
    _, structs = reader.decoded(rows(values), topic="t", partition=0)
    assert structs.to_pylist() == [{"n": 0}, None, None, {"n": 1}, {"n": 2}, None]


def test_json_in_all_its_types() -> None:
    kind = pa.struct(
        [
            ("day", pa.date32()),
            ("price", pa.decimal128(10, 2)),
            ("local", pa.timestamp("us")),
            ("inner", pa.struct([("days", pa.list_(pa.date32()))])),
            ("small", pa.int8()),
        ]
    )
    codec = codec_of(FORMATS["json"])
    codec.check_readable(kind)
    value = (
        b'{"day":"2026-11-15","price":12.50,"local":"2026-11-15T12:00:00",'
        b'"inner":{"days":["2020-02-29",null]},\n "unknown":{"x":[1]}}'
    )
    expected = {
        "day": dt.date(2026, 11, 15),
        "price": Decimal("12.50"),
        "local": dt.datetime(2026, 11, 15, 12),
        "inner": {"days": [dt.date(2020, 2, 29), None]},
        "small": None,
    }
    found = codec.decoded(pa.array([value, b"null"], pa.binary()), kind)
    assert found.to_pylist() == [expected, None]
    again = codec.decoded(codec.encoded(found), kind)
    assert again.to_pylist() == [expected, None]


def test_json_writes_maps_and_what_is_no_number() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("f", pa.float64())])
    given = [{"m": [('a"', 1), ("b", None)], "f": float("nan")}, {"m": [], "f": 1e300}, {"m": None}]
    structs = pa.array(given, kind)
    codec = codec_of(FORMATS["json"])
    codec.check_writable(kind)
    texts = codec.encoded(structs).to_pylist()
    assert [json.loads(one) for one in texts] == [
        {"m": {'a"': 1, "b": None}, "f": None},
        {"m": {}, "f": 1e300},
        {"m": None, "f": None},
    ]


def test_protobuf_has_enums_unsigned_numbers_maps_and_lists_of_texts() -> None:
    codec = codec_of(FORMATS["protobuf"])
    kind = codec.kind()
    assert kind is not None
    row = {
        "customer": "x",
        "amount": 0.0,
        "paid": False,
        "at": None,
        "lines": [{"sku": "tea", "count": 0}],
        "status": "SHIPPED",
        "total": Decimal(2**64 - 1),
        "tags": [("a", 1), ("b", 2)],
        "notes": ["n", ""],
    }
    found = codec.decoded(codec.encoded(pa.array([row], kind)), kind).to_pylist()
    found[0]["tags"] = sorted(found[0]["tags"])
    assert found == [row]


def test_columns_appear_where_the_query_wants_them() -> None:
    values = ValueOptions(format=ValueFormat.JSON, column="order")
    shape = RowShape([("offset", pa.int64()), ("order", NUMBER), ("topic", pa.string())], values)
    assert shape.stored == ["offset", "value"]
    stored = pa.RecordBatch.from_arrays(
        [pa.array([7], pa.int64()), pa.array([b'{"n":1}'], pa.binary())], ["offset", "value"]
    )
    assert shape.finished("t", 0, stored).to_pylist() == [
        {"offset": 7, "order": {"n": 1}, "topic": "t"}
    ]
    with pytest.raises(InvalidArgument, match="no struct order for the decoded values"):
        RowShape([("value", pa.binary())], values)


def test_structs_become_values_on_their_way_out() -> None:
    values = ValueOptions(format=ValueFormat.JSON, column="order")
    fields = [("key", pa.string()), ("order", NUMBER)]
    assert check_structs(fields, values) == [("key", pa.string()), ("value", pa.binary())]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["k"]), pa.array([{"n": 1}], NUMBER)], ["key", "order"]
    )
    assert with_values(batch, values).to_pylist() == [{"key": "k", "value": b'{"n":1}'}]
    with pytest.raises(InvalidArgument, match="needs a struct order, and it is string"):
        check_structs([("order", pa.string())], values)
    with pytest.raises(InvalidArgument, match="value and order contradict each other"):
        check_structs([*fields, ("value", pa.binary())], values)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"valueSchema": "a int"}, "valueSchema means nothing without valueFormat"),
        ({"valueFormat": "xml"}, "'xml' is none of binary, json, avro, protobuf"),
        ({"valueFormat": "avro"}, "needs the option valueSchema or valueSchemaFile"),
        ({"valueFormat": "json", "valueMessage": "a.B"}, "for valueFormat=protobuf only"),
        ({"valueFormat": "protobuf", "valueSchema": "eA=="}, "needs the option valueMessage"),
        (
            {"valueFormat": "protobuf", "valueMessage": "a.B", "valueSchema": "?"},
            "written in base64",
        ),
        ({"valueFormat": "avro", "valueSchemaFile": "/nowhere/x.avsc"}, "cannot be read"),
        ({"valueFormat": "json", "badValues": "ignore"}, "'ignore' is none of fail, null, drop"),
        ({"valueFormat": "json", "rows": "ranges"}, "contradict each other"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given: dict[str, str], refusal: str) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        read_options({"subscribe": "a", **given}, is_stream=False)


def test_a_sink_has_no_policy_for_bad_values() -> None:
    with pytest.raises(InvalidArgument, match="no option badValues for a batch write"):
        write_options({"topic": "a", "valueFormat": "json", "badValues": "null"}, is_stream=False)


@pytest.mark.parametrize(
    ("schema", "refusal"),
    [
        (b"{", "cannot be used"),
        (b'"string"', "is of no record"),
        (
            b'{"type":"record","name":"A","fields":[{"name":"x","type":["int","string"]}]}',
            "a union of 2 types",
        ),
        (
            b'{"type":"record","name":"A","fields":[{"name":"x","type":["null","A"]}]}',
            "A holds itself",
        ),
    ],
)
def test_an_avro_schema_without_columns_is_refused(schema: bytes, refusal: str) -> None:
    pytest.importorskip("fastavro", reason="the extra angarium[avro] is not installed")
    with pytest.raises(InvalidArgument, match=refusal):
        codec_of(ValueOptions(format=ValueFormat.AVRO, schema=schema))


def test_what_the_schema_does_not_have_is_refused_before_anything_runs(
    options: ValueOptions,
) -> None:
    codec = codec_of(options)
    if options.format is ValueFormat.JSON:
        with pytest.raises(InvalidArgument, match=r"value\.m cannot be read from JSON as map"):
            codec.check_readable(pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))
        return
    with pytest.raises(InvalidArgument, match=r"has no value\.colour; its members are customer"):
        codec.check_readable(pa.struct([("colour", pa.string())]))
    with pytest.raises(InvalidArgument, match=r"value\.amount is double in .*, not string"):
        codec.check_writable(pa.struct([("amount", pa.string())]))


def test_a_descriptor_set_without_the_message_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"has no message shop\.Nothing"):
        codec_of(
            ValueOptions(format=ValueFormat.PROTOBUF, schema=descriptors(), message="shop.Nothing")
        )
    with pytest.raises(InvalidArgument, match="cannot be used"):
        codec_of(ValueOptions(format=ValueFormat.PROTOBUF, schema=b"\xff", message="a.B"))


def proto2_options() -> ValueOptions:
    """A message as older schemas have them: with a member that must be there."""
    file = descriptor_pb2.FileDescriptorProto(name="old.proto", syntax="proto2")
    old = file.message_type.add(name="Old")
    old.field.add(name="text", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    old.field.add(name="id", number=2, type=Field.TYPE_INT32, label=Field.LABEL_REQUIRED)
    schema = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return ValueOptions(format=ValueFormat.PROTOBUF, schema=schema, message="Old")


def test_what_the_parser_of_protobuf_lets_through_is_bad_all_the_same() -> None:
    old = codec_of(proto2_options())
    kind = old.kind()
    assert kind is not None
    assert old.decoded(pa.array([b"\x0a\x01a\x10\x05"]), kind).to_pylist() == [
        {"text": "a", "id": 5}
    ]
    with pytest.raises(Undecodable, match=r"no Old .*utf8"):
        old.decoded(pa.array([b"\x0a\x01\xff\x10\x05"]), kind)
    with pytest.raises(Undecodable, match="it lacks id"):
        old.decoded(pa.array([b"\x0a\x01a"]), kind)
    with pytest.raises(InvalidArgument, match="a row is no Old"):
        old.encoded(pa.array([{"text": "a", "id": None}], kind))
    # A time of 2**62 seconds: field 4 is a message whose field 1 is that number.
    endless = b"\x22\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"
    with pytest.raises(Undecodable, match=r"it is no shop\.Order"):
        codec_of(FORMATS["protobuf"]).decoded(pa.array([endless]), ORDER)


def test_a_message_without_members_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="has one column type of its own"):
        codec_of(
            ValueOptions(
                format=ValueFormat.PROTOBUF,
                schema=descriptors(),
                message="google.protobuf.Timestamp",
            )
        )
