"""Idempotency keys and numbers of a client's own: what a request is recognised by."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from tests.component.doors.http.opened_http import Opened, opened
from tests.on_a_loop import eventually, run

from angarium import api
from angarium.batch import Batch
from angarium.doors.http.publish_requests import KEY_BYTES_MAX
from angarium.doors.intake.once import Once
from angarium.machine.keys import KEYED_FROM
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api.transactions import SequencedPublish

RECORDS = "/v1/topics/orders/records"
Identity = tuple[int, int, int]


def identities(door: Opened) -> list[Identity]:
    """Return partition, producer and sequence of every batch that was published, in order."""
    found = []
    for request in door.broker.requests:
        for buffer in request.batches:
            header = Batch.trusted(buffer).header
            found.append((request.partition, int(header.producer_id), int(header.sequence)))
    return found


async def published(
    door: Opened, body: object, key: str, target: str = RECORDS, **more: Any
) -> Identity:
    answer = await door.ask("POST", target, body, headers={"Idempotency-Key": key}, **more)
    assert answer.status == 200, answer.body
    return identities(door)[-1]


@pytest.mark.parametrize(
    "key", [str(uuid.UUID(int=7)), '"quoted"', "importer:41", "ä".encode().hex(), "k" * 255]
)
def test_any_word_is_a_key_and_a_repeated_request_looks_the_same(key: str) -> None:
    async def story() -> None:
        async with opened() as door:
            first = await published(door, {"value": "x"}, key)
            again = await published(door, {"value": "x"}, key)
            assert first == again
            assert first[1] >= KEYED_FROM

    run(story())


def test_another_key_or_another_body_looks_different() -> None:
    async def story() -> None:
        async with opened() as door:
            _, key, content = await published(door, {"value": "x"}, "a", RECORDS + "?partition=0")
            _, other_key, _ = await published(door, {"value": "x"}, "b", RECORDS + "?partition=0")
            assert other_key != key
            refused = await door.ask(
                "POST",
                RECORDS + "?partition=0",
                {"value": "y"},
                headers={"Idempotency-Key": "a"},
            )
            assert (refused.status, refused.json["code"]) == (422, "KEY_REUSED")
            _, same_key, other = identities(door)[-1]
            assert (same_key, other != content) == (key, True)

    run(story())


def test_what_stands_beside_a_plain_body_is_part_of_it() -> None:
    async def story() -> None:
        async with opened() as door:
            target = RECORDS + "?partition=0"
            seen = set()
            for query, headers in (
                ("", {}),
                ("&key=k", {}),
                ("", {"Angarium-Header-Colour": "red"}),
                ("", {"Angarium-Header-Colour": "blue"}),
            ):
                await door.ask(
                    "POST",
                    target + query,
                    b"body",
                    kind="text/plain",
                    headers={"Idempotency-Key": "k", **headers},
                )
                seen.add(identities(door)[-1][2])
            assert len(seen) == 4

    run(story())


def test_records_under_keys_wait_together_and_stay_batches_of_their_own() -> None:
    async def story() -> None:
        async with opened() as door:
            target = RECORDS + "?partition=0"
            door.broker.hang = asyncio.Event()
            first = asyncio.create_task(door.ask("POST", target, {"value": "first"}))
            await eventually(lambda: door.broker.requests)
            others = [
                asyncio.create_task(
                    door.ask("POST", target, {"value": "x"}, headers={"Idempotency-Key": f"k{n}"})
                )
                for n in range(20)
            ]
            others += [
                asyncio.create_task(door.ask("POST", target, {"value": "y"})) for _ in range(20)
            ]
            await eventually(lambda: door.door.intake.lanes.waiting_records == 40)
            door.broker.hang.set()
            await asyncio.gather(first, *others)
            assert len(door.broker.requests) == 2
            keyed = [one for one in identities(door) if one[1]]
            assert len({producer for _, producer, _ in keyed}) == len(keyed) == 20

    run(story())


def test_a_request_with_many_records_has_a_place_for_its_key_in_each_partition() -> None:
    async def story() -> None:
        async with opened() as door:
            body = {"records": [{"value": "x", "key": f"k{n % 9}"} for n in range(50)]}
            body["records"] += [{"value": "without"}] * 3
            headers = {"Idempotency-Key": "many"}
            for _ in range(2):
                answer = await door.ask("POST", RECORDS + "/batch", body, headers=headers)
                assert answer.status == 200
            found = identities(door)
            half = len(found) // 2
            assert sorted(found[:half]) == sorted(found[half:])
            assert len({partition for partition, _, _ in found}) == half

    run(story())


def test_a_request_that_is_cut_into_several_batches_gives_each_its_own_identity() -> None:
    async def story() -> None:
        async with opened(topics={"orders": 1}) as door:
            body = {"records": [{"value": "x" * 600_000}] * 3 + [{"value": "small"}] * 3}
            headers = {"Idempotency-Key": "large"}
            answer = await door.ask("POST", RECORDS + "/batch", body, headers=headers)
            assert answer.status == 200
            producers = [producer for _, producer, _ in identities(door)]
            assert len(set(producers)) == len(producers) == 4

    run(story())


def test_the_same_records_in_another_cut_are_another_request() -> None:
    once = Once(b"key", b"content")
    assert once.at(0, 0, 10) != once.at(0, 0, 5)
    assert once.at(0, 0, 10).producer_id == once.at(0, 0, 5).producer_id
    assert once.at(1, 0, 5).producer_id != once.at(0, 0, 5).producer_id


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        (RECORDS, {"Idempotency-Key": ""}),
        (RECORDS, {"Idempotency-Key": "k" * (KEY_BYTES_MAX + 1)}),
        (RECORDS, {"Idempotency-Key": "\xe4"}),
        (RECORDS + "?mode=performance", {"Idempotency-Key": "k"}),
        (RECORDS, {"Idempotency-Key": "k", "Angarium-Sequence": "a:1"}),
        (RECORDS, {"Angarium-Sequence": "a-uuid"}),
        (RECORDS + "?mode=eventual", {"Angarium-Sequence": "a:1"}),
    ],
)
def test_a_key_that_cannot_hold_what_it_promises_is_refused(
    target: str, headers: dict[str, str]
) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", target, {"value": "x"}, headers=headers)
            assert (answer.status, answer.json["code"]) == (400, "INVALID_ARGUMENT")
            assert door.broker.requests == []

    run(story())


def test_packed_batches_have_identities_already() -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask(
                "POST",
                RECORDS + "/batch?partition=0",
                b"",
                kind="application/vnd.angarium.batch",
                headers={"Idempotency-Key": "k"},
            )
            assert (answer.status, answer.json["code"]) == (400, "INVALID_ARGUMENT")

    run(story())


def test_a_number_of_the_clients_own_goes_with_its_name() -> None:
    asked: list[SequencedPublish] = []

    class Sequenced:
        async def publish_sequenced(self, request: SequencedPublish) -> api.Ack:
            asked.append(request)
            return api.Ack(mode=DeliveryMode.CONSISTENT, topic="orders", partition=1)

    async def story() -> None:
        async with opened(sequenced=Sequenced()) as door:
            headers = {"Angarium-Sequence": "importer:41"}
            answer = await door.ask("POST", RECORDS, {"value": "x"}, headers=headers)
            assert answer.status == 200
            (request,) = asked
            assert (request.producer, request.sequence, request.partition) == (
                "http.importer",
                41,
                41 % 4,
            )

    run(story())


def test_where_nobody_counts_numbers_are_not_served() -> None:
    async def story() -> None:
        async with opened() as door:
            headers = {"Angarium-Sequence": "importer:41"}
            answer = await door.ask("POST", RECORDS, {"value": "x"}, headers=headers)
            assert (answer.status, answer.json["code"]) == (501, "UNSUPPORTED_OPERATION")

    run(story())


@pytest.mark.parametrize("body", [{"value": "x"}, {"value": "x", "key": "k"}])
def test_in_a_topic_that_never_grew_a_key_costs_one_publish_which_names_the_layout(
    body: dict[str, str],
) -> None:
    async def story() -> None:
        async with opened() as door:
            await published(door, body, "key")
            assert [one.layout for one in door.broker.requests] == [0]
            await published(door, {"records": [body]}, "another", f"{RECORDS}/batch")
            assert [one.layout for one in door.broker.requests] == [0, 0]

    run(story())
