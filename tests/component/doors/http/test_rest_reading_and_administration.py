"""Reading, topics and the cluster over REST, and how errors are told."""

from __future__ import annotations

import pytest
from tests.component.doors.http.opened_http import opened
from tests.on_a_loop import run

from angarium.api import FetchRequest, TopicConfig
from angarium.batch import Batch, split
from angarium.doors.http.problems import http_status
from angarium.doors.status import STATUSES
from angarium.errors import LimitExceeded, NotLeader, QuotaExceeded, StoredQuotaExceeded
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.wire.error_codec import Failure, error_of

RECORDS = "/v1/topics/orders/partitions/1/records"


async def filled(door, count: int = 25) -> None:  # type: ignore[no-untyped-def]
    for start in range(0, count, 5):
        records = [{"value": f"v{n}", "key": "k"} for n in range(start, start + 5)]
        await door.ask("POST", "/v1/topics/orders/records/batch?partition=1", {"records": records})


def test_records_are_fetched_from_an_offset_on_page_by_page() -> None:
    async def story() -> None:
        async with opened() as door:
            await filled(door)
            seen, offset = [], 0
            while True:
                answer = await door.ask("GET", f"{RECORDS}?offset={offset}&limit=7")
                assert answer.status == 200
                if not answer.json["records"]:
                    break
                seen += [(one["offset"], one["value"]) for one in answer.json["records"]]
                offset = answer.json["next_offset"]
            assert seen == [(n, f"v{n}") for n in range(25)]
            assert (answer.json["start_offset"], answer.json["end_offset"]) == (0, 25)

    run(story())


def test_bytes_that_are_no_text_come_in_base64_and_all_do_if_asked() -> None:
    async def story() -> None:
        async with opened() as door:
            await door.ask(
                "POST", "/v1/topics/orders/records?partition=1", b"\xff", kind="image/png"
            )
            await door.ask("POST", "/v1/topics/orders/records?partition=1", {"value": "text"})
            first, second = (await door.ask("GET", RECORDS)).json["records"]
            assert (first["value_base64"], first.get("value")) == ("/w==", None)
            assert second["value"] == "text"
            second = (await door.ask("GET", RECORDS + "?encoding=base64")).json["records"][1]
            assert second["value_base64"] == "dGV4dA=="

    run(story())


def test_one_record_comes_as_json_or_as_it_is() -> None:
    async def story() -> None:
        async with opened() as door:
            await filled(door)
            assert (await door.ask("GET", RECORDS + "/7")).json["value"] == "v7"
            plain = await door.ask(
                "GET", RECORDS + "/7", headers={"Accept": "application/octet-stream"}
            )
            assert plain.body == b"v7"
            gone = await door.ask("GET", RECORDS + "/25")
            assert (gone.status, gone.json["code"]) == (404, "NOT_FOUND")

    run(story())


def test_whole_batches_can_be_fetched() -> None:
    async def story() -> None:
        async with opened() as door:
            await filled(door)
            answer = await door.ask(
                "GET", RECORDS + "?offset=6", headers={"Accept": "application/vnd.angarium.batch"}
            )
            batches = [Batch.trusted(one) for one in split(answer.body)]
            assert [one.base_offset for one in batches] == [5, 10, 15, 20]
            assert answer.headers["angarium-next-offset"] == "25"

    run(story())


def test_every_parameter_reaches_the_broker() -> None:
    async def story() -> None:
        async with opened() as door:
            await door.ask("GET", RECORDS + "?offset=0&bytes_max=99&wait_ms=5&fresh=true")
            wanted = FetchRequest(
                topic="orders", partition=1, offset=Offset(0), bytes_max=99, wait_ms=5, fresh=True
            )
            assert door.broker.calls[-1] == ("fetch", wanted)

    run(story())


def test_offsets_are_found_by_place_and_time() -> None:
    async def story() -> None:
        async with opened() as door:
            await filled(door)
            place = "/v1/topics/orders/partitions/1/offset"
            assert (await door.ask("GET", place + "?at=earliest")).json == {"offset": 0}
            assert (await door.ask("GET", place)).json == {"offset": 25}
            time = (await door.ask("GET", RECORDS + "/10")).json["append_time_us"]
            assert (await door.ask("GET", f"{place}?at={time}")).json == {"offset": 10}

    run(story())


def test_a_topic_is_made_described_altered_and_deleted() -> None:
    async def story() -> None:
        async with opened() as door:
            config = {"mode": "eventual", "retention_ms": 5_000}
            wish = {"name": "letters", "partitions": 2, "config": config}
            made = await door.ask("POST", "/v1/topics", wish)
            assert made.status == 201
            assert made.json["config"]["mode"] == "eventual"
            assert door.broker.topics["letters"].config == TopicConfig(
                mode=DeliveryMode.EVENTUAL, retention_ms=5_000
            )
            assert (await door.ask("POST", "/v1/topics", wish)).status == 201, "as it is"
            other = {**wish, "partitions": 3}
            assert (await door.ask("POST", "/v1/topics", other)).status == 409
            more = await door.ask("PATCH", "/v1/topics/letters", {"partitions": 4})
            assert len(more.json["partitions"]) == 4
            names = [one["name"] for one in (await door.ask("GET", "/v1/topics")).json["topics"]]
            assert names == ["letters", "orders"]
            assert (await door.ask("DELETE", "/v1/topics/letters")).status == 204
            assert (await door.ask("GET", "/v1/topics/letters")).status == 404

    run(story())


def test_the_cluster_is_shown_and_steered() -> None:
    async def story() -> None:
        async with opened() as door:
            cluster = (await door.ask("GET", "/v1/cluster")).json
            assert [node["id"] for node in cluster["nodes"]] == [1, 2, 3]
            for method, target, body in (
                ("POST", "/v1/cluster/nodes/3/drain", {}),
                ("DELETE", "/v1/cluster/nodes/3", None),
                ("POST", "/v1/topics/orders/partitions/0/leader", {"to": 2}),
                ("POST", "/v1/cluster/level", {}),
                ("POST", "/v1/producers", {"name": "me"}),
            ):
                assert (await door.ask(method, target, body)).status in (200, 204)
            assert [call[0] for call in door.broker.calls[-4:]] == [
                "drain_node",
                "remove_node",
                "transfer_leader",
                "raise_level",
            ]

    run(story())


def test_every_code_has_the_status_that_the_one_table_says() -> None:
    for code, row in STATUSES.items():
        error = error_of(Failure(code, "why"))
        error.__dict__.setdefault("limit", "x")
        assert http_status(error) == row.http, code


def test_a_problem_says_everything_a_client_needs() -> None:
    async def story() -> None:
        async with opened() as door:
            door.broker.trouble = NotLeader("an election", leader=2)
            answer = await door.ask("GET", RECORDS)
            assert answer.status == 503
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["x-angarium-code"] == "NOT_LEADER"
            assert answer.headers["retry-after"] == "1"
            assert answer.json == {
                "type": "urn:angarium:not-leader",
                "title": "Not leader",
                "status": 503,
                "detail": "an election",
                "code": "NOT_LEADER",
                "retriable": True,
                "fault": "cluster",
                "leader": 2,
            }
            door.broker.trouble = LimitExceeded("batch_bytes_max", "too large")
            answer = await door.ask("POST", "/v1/topics/orders/records", {"value": "x"})
            assert (answer.status, answer.json["limit"]) == (413, "batch_bytes_max")
            door.broker.trouble = QuotaExceeded("requests", "used up", retry_after=2.5)
            answer = await door.ask("GET", RECORDS)
            assert (answer.status, answer.json["code"]) == (429, "QUOTA_EXCEEDED")
            assert (answer.headers["retry-after"], answer.json["retry_after"]) == ("3", 2.5)
            door.broker.trouble = StoredQuotaExceeded("stored_bytes", "full")
            answer = await door.ask("POST", "/v1/topics/orders/records", {"value": "x"})
            assert (answer.status, answer.json["retriable"]) == (429, False)
            assert "retry-after" not in answer.headers
            door.broker.trouble = ZeroDivisionError("secret")
            answer = await door.ask("GET", RECORDS)
            assert (answer.status, answer.json["code"]) == (500, "INTERNAL")
            assert b"secret" not in answer.body

    run(story())


@pytest.mark.parametrize(
    ("method", "target", "status", "code"),
    [
        ("GET", "/v2/topics", 404, "NOT_FOUND"),
        ("GET", "/v1/topics/", 404, "NOT_FOUND"),
        ("GET", "/v1/topics/%ff", 400, "INVALID_ARGUMENT"),
        ("PUT", "/v1/topics", 405, "INVALID_ARGUMENT"),
        ("GET", "/v1/topics?x=1", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/topics?x=%ff", 400, "INVALID_ARGUMENT"),
        ("GET", RECORDS + "?offset=1&offset=2", 400, "INVALID_ARGUMENT"),
        ("GET", RECORDS + "?offset=-1", 400, "INVALID_ARGUMENT"),
        ("GET", RECORDS + "?offset=99999999999999999999", 400, "INVALID_ARGUMENT"),
        ("GET", RECORDS + "?topic=other", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/topics/orders/partitions/x/records", 400, "INVALID_ARGUMENT"),
        ("GET", "/v1/topics/orders/partitions/99/records", 404, "NOT_FOUND"),
        ("GET", RECORDS + "?offset=77", 416, "OFFSET_OUT_OF_RANGE"),
        ("POST", "/v1/topics/orders/records?mode=loud", 400, "INVALID_ARGUMENT"),
    ],
)
def test_a_wrong_request_is_refused_with_its_status_and_code(
    method: str, target: str, status: int, code: str
) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask(method, target)
            assert (answer.status, answer.json["code"]) == (status, code)

    run(story())


def test_json_is_asked_for_where_it_is_needed() -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", "/v1/topics", b"name=x", kind="text/plain")
            assert (answer.status, answer.json["code"]) == (415, "INVALID_ARGUMENT")

    run(story())


def test_head_has_the_head_of_get_and_no_body() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            head = await door.ask("HEAD", "/v1/topics", wire=wire)
            body = await door.ask("GET", "/v1/topics", wire=wire)
            assert int(head.headers["content-length"]) == len(body.body)

    run(story())
