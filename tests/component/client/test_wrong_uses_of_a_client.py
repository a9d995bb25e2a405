"""What is given wrongly is named, with its value, and with what would be right."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.component.client.fake_faults import refuse
from tests.component.client.harness import talking

from angarium.client import ClientSettings
from angarium.client.addresses import bootstrap_addresses
from angarium.client.publishing.columns import Table
from angarium.client.publishing.outgoing import outgoing
from angarium.client.times import micros
from angarium.errors import InvalidArgument, NotFound
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.modes import DeliveryMode


def made(value: Any, **changes: Any) -> object:
    """A record as `publish` makes it of what it is given."""
    return outgoing(value, **changes)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": 42}, "int"),
        ({"value": {"a": 1}}, r"dict.*json\.dumps"),
        ({"value": b"x", "key": 4.2}, "float"),
        ({"value": b"x", "headers": {"a": 1}}, r"\{'a': 1\}"),
        ({"value": b"x", "headers": ["a"]}, r"\['a'\]"),
    ],
)
def test_what_is_neither_bytes_nor_text_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said) as wrong:
        made(**given)
    assert "bytes, text or None" in str(wrong.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"values": "abc"}, "values are a list, one for each record, not str"),
        ({"values": b"abc"}, "values are a list, one for each record, not bytes"),
        ({"values": [b"x"], "keys": "k"}, "keys are a list"),
        ({"values": [b"x", 1]}, "values are bytes, text or None, not int"),
        ({"values": [{"a": 1}]}, r"not dict; json\.dumps"),
        ({"values": [b"x"], "headers": {"a": "b"}}, "one mapping .* for each record"),
    ],
)
def test_columns_that_are_none_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Table.of(**given)


@pytest.mark.parametrize("values", [["a", "b"], [b"a", b"b"]])
def test_of_a_generator_every_record_is_taken(values: list[Any]) -> None:
    # Looking at the types used it up: text of a generator was published as nothing at all.
    given: Any = (one for one in values), (one for one in values)
    made = Table.of(given[0], keys=given[1])
    assert made.values == [b"a", b"b"]
    assert made.keys == [b"a", b"b"]


def test_a_list_of_servers_is_told_how_to_give_them() -> None:
    with pytest.raises(TypeError, match=r"Client\('node1:7400', 'node2:7400'\)"):
        bootstrap_addresses([["node1:7400", "node2:7400"]])  # type: ignore[list-item]


def test_a_mode_is_not_a_word() -> None:
    with pytest.raises(InvalidArgument, match="'eventual' is not a DeliveryMode; use one of CONS"):
        outgoing(b"x", cast("DeliveryMode", "eventual"))


@pytest.mark.parametrize("moment", ["tomorrow", 1.5, datetime(2024, 5, 1)])
def test_a_time_that_is_none_is_named(moment: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"tomorrow|1\.5|2024-05-01"):
        micros(moment)


def test_a_span_is_counted_from_now() -> None:
    assert micros(timedelta(hours=1)) > micros(timedelta(0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("publish_timeout_s", -1),
        ("fetch_bytes", 0),
        ("batches_in_flight_max", 6),
        ("gather_from_in_flight", 9),
    ],
)
def test_a_setting_out_of_bounds_is_named(name: str, value: int) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} is .*not {value}$"):
        ClientSettings(**{name: value})  # type: ignore[arg-type]


def test_what_cannot_name_a_topic_is_not_called_missing(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.plan(Operation.PUBLISH, refuse(InvalidArgument("'a b' cannot name a topic")))
            with pytest.raises(InvalidArgument, match="'a b' cannot name"):
                await client.publish("a b", b"x")

    run(main())


def test_a_topic_that_nobody_makes_is_missing(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            with pytest.raises(NotFound, match="nowhere"):
                await client.publish("nowhere", b"x")

    run(main())
