"""What goes in as text, a mapping or a datetime comes out in the same shape."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.component.client.harness import talking

from angarium import LetterFilter, RecordHeaders, errors
from angarium.wire import ConnectionLost, DeadlineExceeded, Unreachable

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)


@dataclass
class Order:
    id: int


def test_headers_are_a_mapping_that_keeps_order_and_repetitions(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            await client.publish("t", b"", headers={"trace": "1", "empty": None})
            await client.publish("t", b"", headers=[("a", b"1"), ("b", b"2"), ("a", b"3")])
            await client.publish("t", b"")
            one, two, three = await client.fetch("t")
            assert tuple(one.headers) == (("trace", b"1"), ("empty", None))
            assert (one.headers["trace"], one.headers.get("empty")) == (b"1", None)
            name: object = "trace"
            assert name in one.headers
            assert ("trace", b"1") in one.headers
            assert (two.headers["a"], two.headers.all("a")) == (b"3", [b"1", b"3"])
            assert two.headers[0] == ("a", b"1")
            assert dict(two.headers) == {"a": b"3", "b": b"2"}
            assert list(two.headers.items()) == [("a", b"1"), ("b", b"2"), ("a", b"3")]
            assert (two.headers.get("c"), two.headers.get("c", b"-")) == (None, b"-")
            with pytest.raises(KeyError, match="c"):
                two.headers["c"]
            assert tuple(three.headers) == ()
            assert three.headers.get("a") is None
            await client.publish("t", b"", headers=two.headers)
            assert (await client.fetch("t", 0, 3))[0].headers == two.headers

    run(main())


def test_a_batch_takes_what_a_single_publish_takes(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            await client.publish_batch(
                "t",
                ["zwölf", b"bytes", None],
                keys=["k", b"l", "m"],
                headers=[{"a": "text"}, [("b", b"bytes")], None],
                timestamps=[NOON, 7, NOON + timedelta(seconds=1)],
                expires_at=NOON,
            )
            one, two, three = await client.fetch("t")
            assert (one.text, one.key, one.headers["a"]) == ("zwölf", b"k", b"text")
            assert (two.value, two.key, two.headers["b"]) == (b"bytes", b"l", b"bytes")
            assert (three.value, three.key, three.text) == (None, b"m", "")
            assert (one.timestamp_datetime, two.timestamp) == (NOON, 7)
            assert three.timestamp_datetime == NOON + timedelta(seconds=1)
            assert one.expires_datetime == NOON

    run(main())


def test_values_are_read_as_json_and_times_as_datetimes(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            receipt = await client.publish("t", '{"id": 7}', timestamp=NOON)
            await client.publish("t", b"no json")
            good, bad = await client.fetch("t")
            assert good.json() == {"id": 7}
            assert good.json(Order) == Order(7)
            with pytest.raises(ValueError, match="JSON"):
                bad.json()
            with pytest.raises(ValueError, match="Expected"):
                good.json(list[int])
            assert good.timestamp_datetime == NOON
            assert bad.timestamp_datetime is None
            assert good.expires_datetime is good.deliver_datetime is None
            assert receipt.append_datetime == good.append_datetime
            assert good.append_datetime is not None
            assert good.append_datetime.tzinfo is UTC

    run(main())


def test_what_a_program_can_meet_is_where_it_looks_for_it() -> None:
    assert errors.Unreachable is Unreachable
    assert errors.DeadlineExceeded is DeadlineExceeded
    assert errors.ConnectionLost is ConnectionLost
    assert LetterFilter(group="g").group == "g"
    assert RecordHeaders() == ()
