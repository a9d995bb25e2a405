"""What people send for a value: text, any other JSON, and JSON that calls itself a form."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from tests.component.doors.http.opened_http import Answered, Opened, opened
from tests.on_a_loop import run

RECORDS = "/v1/topics/orders/records?partition=0"
MIB = 1 << 20
FORM = "application/x-www-form-urlencoded"


async def stored(door: Opened, answer: Answered) -> tuple[str | None, dict[str, str]]:
    """Return the value and the headers of the record that was published."""
    assert answer.status == 200, answer.body
    offset = answer.json["offset"]
    kept = (await door.ask("GET", f"/v1/topics/orders/partitions/0/records/{offset}")).json
    return kept["value"], {one["name"]: one["value"] for one in kept.get("headers", ())}


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ('{"a": {"b": [1, null, true]}}', '{"a":{"b":[1,null,true]}}'),
        ("[]", "[]"),
        ('{ "price": 1.10, "tiny": 1e-400 }', '{"price":1.10,"tiny":1E-400}'),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("42", "42"),
        ("0.10", "0.10"),
        ("false", "false"),
        ('{"caf\\u00e9": "\\u2713"}', '{"café":"✓"}'),
    ],
)
def test_a_value_of_json_is_stored_as_its_text(sent: str, text: str) -> None:
    async def story() -> None:
        async with opened() as door:
            for body, target in (
                (f'{{"value": {sent}}}', RECORDS),
                (f'{{"value": {sent}, "key": "k"}}', RECORDS),
            ):
                answer = await door.ask("POST", target, body.encode())
                assert await stored(door, answer) == (text, {"content-type": "application/json"})
            many = f'{{"records": [{{"value": {sent}}}, {{"value": "text"}}]}}'
            batch = RECORDS.replace("records", "records/batch")
            answer = await door.ask("POST", batch, many.encode())
            assert answer.status == 200
            fetched = await door.ask("GET", "/v1/topics/orders/partitions/0/records?offset=2")
            first, second = fetched.json["records"]
            assert first["value"] == text
            assert first["headers"] == [{"name": "content-type", "value": "application/json"}]
            assert (second["value"], second.get("headers")) == ("text", None)

    run(story())


def test_text_and_null_stay_what_they_are_and_a_content_type_is_the_senders_own() -> None:
    async def story() -> None:
        async with opened() as door:
            for value, headers in (("{}", []), ("42", []), (None, [])):
                answer = await door.ask("POST", RECORDS, {"value": value, "headers": headers})
                assert await stored(door, answer) == (value, {})
            own = [{"name": "Content-Type", "value": "application/vnd.order+json"}]
            answer = await door.ask("POST", RECORDS, {"value": {}, "headers": own})
            assert await stored(door, answer) == (
                "{}",
                {"Content-Type": "application/vnd.order+json"},
            )

    run(story())


@pytest.mark.parametrize(
    "body",
    [
        '{"value": {"a": 1, "a": 2}}',
        '{"value": NaN}',
        '{"value": {}, "value_base64": "AAAA"}',
        '{"value": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"order": 7}',
        "[1]",
    ],
)
def test_what_means_nothing_or_two_things_is_refused(body: str) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", RECORDS, body.encode())
            assert (answer.status, answer.json["code"]) == (400, "INVALID_ARGUMENT")

    run(story())


def test_nothing_is_kept_of_what_was_refused() -> None:
    """Not even until the garbage collector comes: an error must not hold its own frame."""

    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            body = b'{"value": "%b"}' % (b"x" * MIB)
            target = "/v1/topics/nowhere/records?partition=7"
            for is_measured in (False, True):
                gc.collect()
                gc.disable()
                tracemalloc.start()
                try:
                    for _ in range(10):
                        answer = await door.ask("POST", target, body, wire=wire)
                        assert answer.status == 404
                        door.broker.requests.clear()
                    kept = tracemalloc.get_traced_memory()[0]
                finally:
                    tracemalloc.stop()
                    gc.enable()
                assert not is_measured or kept < 4 * MIB

    run(story())


def test_what_curl_sends_without_being_told_is_json_if_it_is() -> None:
    async def story() -> None:
        async with opened() as door:
            for said in ('{"value": "x"}', ' {"value": "x", "key": "k"}'):
                answer = await door.ask("POST", RECORDS, said.encode(), kind=FORM)
                assert await stored(door, answer) == ("x", {})
            batch = RECORDS.replace("records", "records/batch")
            answer = await door.ask("POST", batch, b'{"records": [{"value": "x"}]}', kind=FORM)
            assert answer.status == 200
            answer = await door.ask("POST", "/v1/topics", b'{"name": "made"}', kind=FORM)
            assert answer.status == 201
            # No record, and no form either: whoever sent it is told what to do.
            answer = await door.ask("POST", RECORDS, b'{"order": 7}', kind=FORM)
            assert answer.status == 400
            assert "Content-Type" in answer.json["detail"]
            # Forms, and what else curl is given, are what they are.
            for said in ("a=1&b=%7B%7D", "hello", '"hello"'):
                answer = await door.ask("POST", RECORDS, said.encode(), kind=FORM)
                assert await stored(door, answer) == (said, {"content-type": FORM})

    run(story())


def test_a_browser_finds_a_page_with_links_that_lead_somewhere() -> None:
    async def story() -> None:
        async with opened() as door:
            page = await door.ask("GET", "/", headers={"Accept": "text/html,*/*;q=0.8"})
            assert page.status == 200
            assert page.headers["content-type"].startswith("text/html")
            assert "default-src 'none'" in page.headers["content-security-policy"]
            text = page.body.decode()
            assert "<script" not in text
            assert "src=" not in text
            links = (await door.ask("GET", "/")).json["links"]
            assert {"/v1/topics", "/v1/cluster", "/graphql", "/metrics", "/v1/openapi.json"} <= set(
                links
            )
            for link in links:
                assert f'href="{link}"' in text
                answer = await door.ask("GET", link, headers={"Accept": "text/html"})
                assert answer.status == 200, link

    run(story())


def test_nothing_of_a_request_gets_into_the_page_unquoted() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            await wire.say(b"GET / HTTP/1.1\r\nHost: <b>.localhost\r\nAccept: text/html\r\n\r\n")
            page = await wire.hear()
            assert page.status == 200
            assert b"<b>" not in page.body

    run(story())
