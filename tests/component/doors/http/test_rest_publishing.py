"""Publishing over REST: JSON, plain bodies, CloudEvents, batches; lanes that share a call."""

from __future__ import annotations

import asyncio
import base64

import pytest
from tests.component.doors.http.opened_http import Opened, opened
from tests.on_a_loop import eventually, run

from angarium.batch import Batch, encode, split
from angarium.errors import InvalidArgument, NotLeader, OutcomeUnknown
from angarium.modes import DeliveryMode

RECORDS = "/v1/topics/orders/records"


def stored(door: Opened, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
    batches = door.broker.partition("orders", partition).batches
    return [(one.key, one.value) for buffer in batches for one in Batch.trusted(buffer)]


def test_a_record_in_json_is_published_and_acknowledged_with_its_offset() -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", RECORDS + "?partition=0", {"value": "hi", "key": "k"})
            assert answer.status == 200
            assert answer.headers["content-type"] == "application/json"
            told = answer.json
            assert (told["topic"], told["partition"], told["offset"]) == ("orders", 0, 0)
            assert told["mode"] == "consistent"
            assert stored(door) == [(b"k", b"hi")]

    run(story())


def test_bytes_travel_in_base64_and_null_is_not_empty() -> None:
    async def story() -> None:
        async with opened() as door:
            raw = bytes(range(256))
            for record in (
                {"value_base64": base64.b64encode(raw).decode()},
                {"value": ""},
                {"value": None, "key_base64": "/w=="},
            ):
                answer = await door.ask("POST", RECORDS + "?partition=0", record)
                assert answer.status == 200, answer.body
            assert stored(door) == [(None, raw), (None, b""), (b"\xff", None)]

    run(story())


def test_a_body_that_is_not_json_is_the_value_and_its_kind_a_header() -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask(
                "POST",
                RECORDS + "?partition=0&key=a%20b",
                b"\x00\xff",
                kind="image/png",
                headers={"Angarium-Header-Colour": "red"},
            )
            assert answer.status == 200
            record = next(iter(Batch.trusted(door.broker.partition("orders", 0).batches[0])))
            assert (record.key, record.value) == (b"a b", b"\x00\xff")
            assert record.headers == (("content-type", b"image/png"), ("colour", b"red"))

    run(story())


def test_a_cloud_event_in_binary_mode_keeps_its_attributes() -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask(
                "POST",
                RECORDS,
                b'{"a": 1}',
                headers={
                    "ce-specversion": "1.0",
                    "ce-id": "17",
                    "ce-source": "/susa",
                    "ce-type": "gr%C3%BC%C3%9Fe",
                    "ce-partitionkey": "k",
                },
            )
            assert answer.status == 200
            partition = answer.json["partition"]
            buffer = door.broker.partition("orders", partition).batches[0]
            record = next(iter(Batch.trusted(buffer)))
            assert (record.key, record.value) == (b"k", b'{"a": 1}')
            headers = dict(record.headers)
            assert headers["content-type"] == b"application/json"
            assert headers["ce-id"] == b"17"
            assert headers["ce-type"] == "grüße".encode()

    run(story())


@pytest.mark.parametrize("missing", ["ce-id", "ce-source", "ce-type"])
def test_an_event_that_lacks_what_makes_it_one_is_refused(missing: str) -> None:
    async def story() -> None:
        async with opened() as door:
            whole = {"ce-specversion": "1.0", "ce-id": "17", "ce-source": "/susa", "ce-type": "t"}
            for headers in (
                {name: value for name, value in whole.items() if name != missing},
                {**whole, missing: ""},
            ):
                answer = await door.ask("POST", RECORDS, b"x", headers=headers, kind="text/plain")
                assert (answer.status, answer.json["code"]) == (400, "INVALID_ARGUMENT")
                assert missing in answer.json["detail"]
            assert door.broker.requests == []

    run(story())


def test_many_records_go_to_the_partitions_of_their_keys_in_order() -> None:
    async def story() -> None:
        async with opened() as door:
            records = [{"value": str(n), "key": f"k{n % 7}"} for n in range(100)]
            answer = await door.ask("POST", RECORDS + "/batch", {"records": records})
            assert answer.status == 200
            told = answer.json
            assert len(told["partitions"]) == 100
            for partition in range(4):
                mine = [
                    r for r, p in zip(records, told["partitions"], strict=True) if p == partition
                ]
                assert [value for _, value in stored(door, partition)] == [
                    one["value"].encode() for one in mine
                ]

    run(story())


def test_packed_batches_are_taken_as_they_are_and_need_a_partition() -> None:
    async def story() -> None:
        async with opened() as door:
            packed = bytes(encode([b"a", b"b"])) + bytes(encode([b"c"]))
            kind = "application/vnd.angarium.batch"
            answer = await door.ask("POST", RECORDS + "/batch?partition=1", packed, kind=kind)
            assert [one["offset"] for one in answer.json["acks"]] == [0, 2]
            assert len(split(b"".join(door.broker.partition("orders", 1).batches))) == 2
            refused = await door.ask("POST", RECORDS + "/batch", packed, kind=kind)
            assert (refused.status, refused.json["code"]) == (400, "INVALID_ARGUMENT")
            refused = await door.ask("POST", RECORDS + "/batch?partition=1", b"junk", kind=kind)
            assert (refused.status, refused.json["code"]) == (400, "INVALID_BATCH")

    run(story())


def test_a_batch_that_fails_in_one_partition_says_which() -> None:
    async def story() -> None:
        async with opened() as door:
            door.broker.trouble_in[2] = NotLeader("an election")
            records = [{"value": "x", "key": f"k{n}"} for n in range(50)]
            answer = await door.ask("POST", RECORDS + "/batch", {"records": records})
            assert (answer.status, answer.json["code"]) == (503, "NOT_LEADER")
            failed = [one["partition"] for one in answer.json["acks"] if "error" in one]
            assert failed == [2]
            assert len(answer.json["partitions"]) == 50

    run(story())


@pytest.mark.parametrize("mode", ["consistent", "eventual", "performance"])
def test_the_mode_is_passed_on_and_told(mode: str) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", f"{RECORDS}?mode={mode}", {"value": "x"})
            assert answer.json["mode"] == mode
            assert door.broker.requests[0].mode is DeliveryMode[mode.upper()]
            assert ("offset" in answer.json) == (mode != "performance")

    run(story())


def test_records_that_wait_together_travel_together_and_each_learns_its_offset() -> None:
    async def story() -> None:
        async with opened() as door:
            door.broker.hang = asyncio.Event()
            first = asyncio.create_task(door.ask("POST", RECORDS + "?partition=0", {"value": "0"}))
            await eventually(lambda: door.broker.requests)
            others = [
                asyncio.create_task(
                    door.ask("POST", RECORDS + "?partition=0", {"value": str(number)})
                )
                for number in range(1, 30)
            ]
            await eventually(lambda: door.door.intake.lanes.waiting_records == 29)
            door.broker.hang.set()
            answers = [await one for one in (first, *others)]
            assert len(door.broker.requests) == 2
            offsets = [answer.json["offset"] for answer in answers]
            assert sorted(offsets) == list(range(30))
            values = [value for _, value in stored(door)]
            for number, offset in enumerate(offsets):
                assert values[offset] == str(number).encode()

    run(story())


def test_nobody_pays_for_a_neighbours_mistake() -> None:
    async def story() -> None:
        async with opened() as door:
            original = door.broker.publish

            async def picky(request):  # type: ignore[no-untyped-def]
                for buffer in request.batches:
                    if b"bad" in Batch.trusted(buffer).values():
                        raise InvalidArgument("one is bad")
                return await original(request)

            door.broker.publish = picky  # type: ignore[method-assign]
            values = ["a", "bad", "b", "c"]
            answers = await asyncio.gather(
                *(door.ask("POST", RECORDS + "?partition=0", {"value": one}) for one in values)
            )
            assert [one.status for one in answers] == [200, 400, 200, 200]
            assert sorted(value or b"" for _, value in stored(door)) == [b"a", b"b", b"c"]

    run(story())


def test_an_unknown_outcome_is_told_as_such_and_nothing_is_sent_again() -> None:
    async def story() -> None:
        async with opened() as door:
            door.broker.trouble = OutcomeUnknown("the leader fell silent")
            answers = await asyncio.gather(
                *(door.ask("POST", RECORDS + "?partition=0", {"value": "x"}) for _ in range(5))
            )
            assert {one.status for one in answers} == {504}
            assert {one.json["code"] for one in answers} == {"OUTCOME_UNKNOWN"}
            batches = [batch for one in door.broker.requests for batch in one.batches]
            assert sum(len(Batch.trusted(one)) for one in batches) == 5

    run(story())


def test_a_publish_that_was_passed_on_says_who_leads() -> None:
    async def story() -> None:
        hints = {0: "10.0.0.2:7402"}
        async with opened(leader_hint=lambda _, partition: hints.get(partition)) as door:
            answer = await door.ask("POST", RECORDS + "?partition=0", {"value": "x"})
            assert answer.headers["x-leader-hint"] == "10.0.0.2:7402"
            answer = await door.ask("POST", RECORDS + "?partition=1", {"value": "x"})
            assert "x-leader-hint" not in answer.headers

    run(story())


@pytest.mark.parametrize(
    "body",
    [
        b'{"value": "a", "value": "b"}',
        b'{"v\\u0061lue": "a", "value": "b"}',
        b'{"value": "a", "headers": [{"name": "x", "name": "y"}]}',
        b'{"value": NaN}',
        b'{"timestamp_us": 1e999}',
        b'{"timestamp_us": -1}',
        b'{"value": "a"} trailing',
        b'{"value": "\xff"}',
        b'{"vlaue": "a"}',
        b'{"key": 1}',
        b'{"value": "a", "value_base64": "YQ=="}',
        b'{"value_base64": "a"}',
        b"[" * 5_000,
        b"",
        b'{"headers": [{}]}',
    ],
)
def test_json_that_is_wrong_or_means_two_things_is_refused(body: bytes) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", RECORDS, body)
            assert (answer.status, answer.json["code"]) == (400, "INVALID_ARGUMENT")
            assert door.broker.requests == []

    run(story())


@pytest.mark.parametrize(
    "body",
    [
        b'{"records": [{"value": "a", "value": "b"}]}',
        b'{"records": [{"value": "a", "value": "b"}, {}]}',
        b'{"records": [{"value": "a", "v\\u0061lue": "b"}, {"key": "k"}]}',
        b'{"records": [{"value" : "a", "value": "b"}]}',
        b'{"records": [{"value": "a"}], "records": [{"value": "b"}]}',
        b'{"records": [{"value": null, "value": "b"}]}',
        b'{"records": [{"key": "a", "key": "b", "value": "c"}, {"value": "\\"key\\":"}]}',
        b'{"records": []}',
        b'{"records": [{"value": "a"}], "more": 1}',
    ],
)
def test_a_batch_in_which_a_name_comes_twice_is_refused(body: bytes) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", RECORDS + "/batch", body)
            assert (answer.status, answer.json["code"]) == (400, "INVALID_ARGUMENT")
            assert door.broker.requests == []

    run(story())


def test_a_batch_with_json_inside_its_texts_is_taken_as_it_is() -> None:
    async def story() -> None:
        async with opened() as door:
            texts = ['{"value": "x", "key": 1}', '":', "", '"records":']
            records = [{"value": one, "key": one} for one in texts] + [{"value": None}, {}]
            body = {"records": records}
            answer = await door.ask("POST", RECORDS + "/batch?partition=0", body)
            assert answer.status == 200
            expected = [(one.encode(), one.encode()) for one in texts]
            assert stored(door) == [*expected, (None, None), (None, None)]

    run(story())


def test_what_a_head_says_holds_for_that_head_alone() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            target = "/v1/topics/orders/records?partition=1"
            again = {"Idempotency-Key": "once"}
            # The same heads again and again, in turn: each means what it meant at first.
            for number in range(3):
                plain = await door.ask("POST", target, {"value": "a"}, wire=wire)
                assert (plain.status, plain.json["partition"]) == (200, 1)
                keyed = await door.ask("POST", target, {"value": "a"}, headers=again, wire=wire)
                assert keyed.json.get("duplicate", False) == (number > 0)
                text = await door.ask("POST", target, b"{", kind="text/plain", wire=wire)
                broken = await door.ask("POST", target, b"{", wire=wire)
                assert (text.status, broken.status) == (200, 400)
                other = await door.ask("POST", f"{target}&mode=eventual", {"value": "a"}, wire=wire)
                assert other.json["mode"] == "eventual"

    run(story())
