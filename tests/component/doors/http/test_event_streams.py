"""Server-sent events: from anywhere, resumed exactly, shared, held back, cut."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.component.doors.http.opened_http import Opened, opened, request_bytes
from tests.on_a_loop import eventually, run

from angarium.doors.http import HttpLimits
from angarium.errors import NotLeader

if TYPE_CHECKING:
    from tests.component.doors.http.opened_http import Wire

STREAM = "/v1/topics/orders/stream"


class Events:
    """A reader of events, as a browser has one."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._text = ""
        self.last_id = ""
        self.comments = 0

    @classmethod
    async def opened(cls, door: Opened, query: str = "", **headers: str) -> Events:
        wire = await door.connect()
        await wire.say(request_bytes("GET", STREAM + query, headers=headers))
        answer = await wire.hear()
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/event-stream"
        events = cls(wire)
        assert await events.block() == "retry: 1000"
        return events

    async def block(self) -> str | None:
        while "\n\n" not in self._text:
            size = int((await self._wire.reader.readline()).strip() or b"0", 16)
            if not size:
                return None
            self._text += (await self._wire.reader.readexactly(size + 2))[:-2].decode()
        block, _, self._text = self._text.partition("\n\n")
        return block

    async def next(self) -> Any:
        while True:
            block = await self.block()
            if block is None:
                return None
            if block == ":":
                self.comments += 1
                continue
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            self.last_id = fields.get("id", self.last_id)
            found = json.loads(fields["data"])
            return {"error": found} if fields.get("event") == "error" else found

    async def values(self, count: int) -> list[str]:
        return [(await self.next())["value"] for _ in range(count)]


async def publish(door: Opened, *values: str, partition: int = 0) -> None:
    records = {"records": [{"value": one} for one in values]}
    answer = await door.ask(
        "POST", f"/v1/topics/orders/records/batch?partition={partition}", records
    )
    assert answer.status == 200


def test_a_live_stream_has_what_comes_and_nothing_from_before() -> None:
    async def story() -> None:
        async with opened() as door:
            await publish(door, "old")
            events = await Events.opened(door)
            await publish(door, "a", "b")
            await publish(door, "c", partition=2)
            assert await events.values(3) == ["a", "b", "c"]
            assert events.last_id == "3.0.1.0"

    run(story())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?start=earliest&partition=0", ["0", "1", "2", "3", "4", "5"]),
        ("?offset=4&partition=0", ["4", "5"]),
        ("?offset=6&partition=0", []),
        ("?since_us=1700000000000003&partition=0", ["4", "5"]),
    ],
)
def test_a_stream_begins_where_it_is_told_to_and_goes_on_live(
    query: str, expected: list[str]
) -> None:
    async def story() -> None:
        async with opened() as door:
            for first in (0, 2, 4):
                await publish(door, str(first), str(first + 1))
            events = await Events.opened(door, query)
            await publish(door, "new")
            assert await events.values(len(expected) + 1) == [*expected, "new"]

    run(story())


def test_whoever_reconnects_goes_on_after_exactly_the_last_record() -> None:
    async def story() -> None:
        async with opened() as door:
            for partition in (0, 1, 3):
                await publish(door, *(f"{partition}.{n}" for n in range(20)), partition=partition)
            seen: list[str] = []
            last = ""
            while len(seen) < 60:
                headers = {"Last-Event-ID": last} if last else {}
                query = "" if last else "?start=earliest"
                events = await Events.opened(door, query, **headers)
                seen += await events.values(7 if len(seen) < 56 else 60 - len(seen))
                last = events.last_id
            assert len(set(seen)) == 60
            for partition in (0, 1, 3):
                mine = [one for one in seen if one.startswith(f"{partition}.")]
                assert mine == [f"{partition}.{n}" for n in range(20)]

    run(story())


def test_many_streams_share_one_subscription_and_it_ends_with_the_last() -> None:
    async def story() -> None:
        async with opened() as door:
            streams = [await Events.opened(door) for _ in range(20)]
            assert len(door.broker.subscriptions) == 1
            await publish(door, *map(str, range(50)))
            for events in streams:
                assert await events.values(50) == [str(n) for n in range(50)]
            for wire in door.wires:
                wire.writer.close()
            await eventually(lambda: not door.broker.subscriptions)
            assert not door.door.server.streams

    run(story())


def test_a_stream_that_catches_up_while_others_are_level_misses_and_repeats_nothing() -> None:
    async def story() -> None:
        async with opened() as door:
            level = await Events.opened(door)
            await publish(door, *(str(n) for n in range(100)))

            async def keep_publishing() -> None:
                for number in range(100, 300):
                    await publish(door, str(number), partition=0)

            publishing = asyncio.create_task(keep_publishing())
            late = await Events.opened(door, "?start=earliest")
            expected = [str(n) for n in range(300)]
            assert await late.values(300) == expected
            assert await level.values(300) == expected
            await publishing

    run(story())


def test_performance_records_come_without_an_offset() -> None:
    async def story() -> None:
        async with opened() as door:
            events = await Events.opened(door)
            answer = await door.ask(
                "POST", "/v1/topics/orders/records?mode=performance", {"value": "quick"}
            )
            assert answer.json["subscribers"] == 1
            record = await events.next()
            assert record["value"] == "quick"
            assert "offset" not in record

    run(story())


def test_a_silent_stream_says_that_it_is_there() -> None:
    async def story() -> None:
        async with opened(HttpLimits(heartbeat_seconds=0.02)) as door:
            events = await Events.opened(door)
            for _ in range(3):
                assert await events.block() == ":"
            await publish(door, "x")
            assert await events.values(1) == ["x"]

    run(story())


def test_a_stream_that_nobody_reads_is_cut_and_the_others_go_on() -> None:
    async def story() -> None:
        limits = HttpLimits(stalled_seconds_max=0.3, write_bytes_high=64 << 10)
        async with opened(limits) as door:
            reader = await Events.opened(door)
            stalled = await door.connect()
            stalled.reader._limit = 1024  # type: ignore[attr-defined]
            await stalled.say(request_bytes("GET", STREAM))
            await eventually(lambda: len(door.door.server.streams) == 2)
            stalled.writer.transport.pause_reading()  # type: ignore[attr-defined]
            big = "x" * 200_000
            for _ in range(60):
                await publish(door, big)
                assert (await reader.next())["value"] == big
            await eventually(lambda: len(door.door.server.streams) == 1)
            await publish(door, "still here")
            assert await reader.values(1) == ["still here"]

    run(story())


def test_a_slow_reader_gets_everything_in_the_end() -> None:
    async def story() -> None:
        async with opened(HttpLimits(write_bytes_high=16 << 10)) as door:
            slow = await Events.opened(door)
            for number in range(100):
                await publish(door, *(f"{number}-{n}" + "x" * 2_000 for n in range(5)))
            values = await slow.values(500)
            assert [one.rstrip("x") for one in values] == [
                f"{number}-{n}" for number in range(100) for n in range(5)
            ]

    run(story())


def test_what_broke_a_stream_is_told_in_an_event() -> None:
    async def story() -> None:
        async with opened() as door:
            events = await Events.opened(door)
            subscription = door.broker.subscriptions[0]
            subscription.broken = NotLeader("gone")
            subscription.changed.set()
            assert (await events.next())["error"]["code"] == "NOT_LEADER"
            assert await events.next() is None

    run(story())


def test_a_closing_door_ends_streams_with_a_word() -> None:
    async def story() -> None:
        async with opened() as door:
            events = await Events.opened(door)
            await door.door.stop(grace_s=2.0)
            assert (await events.next())["error"]["code"] == "UNREACHABLE"

    run(story())


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("?offset=3", {}, 400),
        ("?offset=99&partition=0", {}, 416),
        ("?start=never", {}, 400),
        ("?start=earliest&since_us=1", {}, 400),
        ("?partition=77", {}, 404),
        ("", {"Last-Event-ID": "x"}, 400),
        ("?last_event_id=x", {}, 400),
        ("", {"Last-Event-ID": "1.2.3.4.5"}, 400),
        ("", {"Last-Event-ID": "9.0.0.0"}, 416),
        ("?group=g", {}, 501),
    ],
)
def test_a_stream_that_cannot_begin_is_refused(
    query: str, headers: dict[str, str], status: int
) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("GET", STREAM + query, headers=headers)
            assert answer.status == status, answer.body
            await eventually(lambda: not door.broker.subscriptions)

    run(story())


def test_an_empty_last_id_is_none() -> None:
    """So says a client that fills in what it has seen last before it has seen anything."""

    async def story() -> None:
        async with opened() as door:
            await door.ask("POST", "/v1/topics/orders/records", {"value": "before"})
            events = await Events.opened(door, "?last_event_id=")
            await door.ask("POST", "/v1/topics/orders/records", {"value": "after"})
            assert (await events.next())["value"] == "after"

    run(story())


def test_one_stream_too_many_is_told_so() -> None:
    async def story() -> None:
        async with opened(HttpLimits(streams_max=1)) as door:
            await Events.opened(door)
            answer = await door.ask("GET", STREAM)
            assert (answer.status, answer.json["limit"]) == (429, "streams_max")

    run(story())
