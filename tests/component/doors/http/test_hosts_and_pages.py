"""Who may ask over HTTP: requests for a host that is ours, from web pages that may."""

from __future__ import annotations

import base64

import pytest
from tests.component.doors.http.opened_http import Opened, opened, request_bytes
from tests.on_a_loop import run

from angarium.wire.http.admission import Admission
from angarium.wire.http.hosts import Hosts
from angarium.wire.http.origins import Origins
from angarium_compat.bale.metrics import BaleMetrics, BaleMetricsDoor
from angarium_compat.hermes import HermesHttpDoor

CONSOLE = "https://console.example.org"
EVIL = "evil.example"


def asked(method: str, target: str, host: str, *more: str) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *more, "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def told(door: Opened, said: bytes) -> tuple[int, str]:
    """Say it on a connection of its own; return the status and the sentence."""
    wire = await door.connect()
    await wire.say(said)
    answer = await wire.hear()
    kind = answer.headers.get("content-type", "")
    return answer.status, answer.json["detail"] if "problem" in kind else ""


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/"),
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("GET", "/v1/topics"),
        ("GET", "/v1/topics/orders/stream"),
        ("DELETE", "/v1/topics/orders"),
        ("POST", "/v1/topics/orders/records"),
        ("GET", "/graphql"),
        ("POST", "/graphql"),
        ("GET", "/nowhere"),
        ("OPTIONS", "/v1/topics"),
    ],
)
def test_a_page_that_came_by_a_name_of_its_own_gets_nothing(method: str, target: str) -> None:
    """DNS rebinding: the page's own name points here by now, and the browser is content."""

    async def story() -> None:
        async with opened() as door:
            for origin in ((f"Origin: http://{EVIL}:7402",), ()):
                said = asked(method, target, f"{EVIL}:7402", *origin, "Content-Length: 0")
                status, detail = await told(door, said)
                assert status == 421
                assert EVIL in detail
                assert "[http] hosts" in detail
            assert (await door.ask("GET", "/v1/topics/orders")).status == 200

    run(story())


def test_a_web_socket_by_another_name_is_refused() -> None:
    async def story() -> None:
        async with opened() as door:
            key = base64.b64encode(bytes(16)).decode()
            for target in ("/v1/topics/orders/ws", "/graphql"):
                said = asked(
                    "GET",
                    target,
                    EVIL,
                    f"Origin: http://{EVIL}",
                    "Connection: Upgrade",
                    "Upgrade: websocket",
                    "Sec-WebSocket-Version: 13",
                    f"Sec-WebSocket-Key: {key}",
                )
                assert (await told(door, said))[0] == 421

    run(story())


OURS = [
    "localhost",
    "LOCALHOST:7402",
    "localhost.",
    "localhost.:80",
    "console.localhost",
    "127.0.0.1:7402",
    "10.1.2.3",
    "[::1]:7402",
    "[FE80::1]",
    "node-1.example.org",
    "Node-1.Example.org.:99",
    "a.lan.example",
    "a.b.lan.example:1",
]

NOT_OURS = [
    "",
    EVIL,
    "example.org",
    "xnode-1.example.org",
    "node-1.example.org.evil.example",
    "localhost.evil.example",
    "evillocalhost",
    "lan.example",
    "notlan.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "evil.example/127.0.0.1",
    "2130706433",
    "0x7f000001",
    "[::1].evil.example",
    "[evil.example]",
    "::1",
    "localhost:7402:7402",
    "localhost:http",
    "localhost, evil.example",
    "*",
]


def test_which_names_are_ours() -> None:
    hosts = Hosts(["node-1.example.org", "*.lan.example"])
    assert [one for one in OURS if not hosts.has(one)] == []
    assert [one for one in NOT_OURS if hosts.has(one)] == []


def test_a_request_says_one_host_and_nothing_else_counts() -> None:
    async def story() -> None:
        async with opened() as door:
            line = "GET /v1/topics HTTP/1.{}\r\n"
            for said, status in (
                (line.format(1) + "\r\n", 400),
                (line.format(1) + "Host: localhost\r\nHost: localhost\r\n\r\n", 400),
                (line.format(0) + f"Host: localhost\r\nHost: {EVIL}\r\n\r\n", 400),
                (line.format(1) + "Host:\r\n\r\n", 421),
                (line.format(0) + f"Host: {EVIL}\r\n\r\n", 421),
                # Nothing that browsers could be made to say.
                (line.format(0) + "\r\n", 200),
                # The form for proxies. This is none, whatever its name.
                (f"GET http://{EVIL}/v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                (f"GET http://localhost/v1/topics HTTP/1.1\r\nHost: {EVIL}\r\n\r\n", 421),
            ):
                assert (await told(door, said.encode()))[0] == status, said

    run(story())


def test_a_trailer_is_no_header() -> None:
    async def story() -> None:
        async with opened() as door:
            wire = await door.connect()
            head = asked(
                "POST",
                "/v1/topics/orders/records?partition=0",
                "localhost",
                "Content-Type: text/plain",
                "Transfer-Encoding: chunked",
            )
            await wire.say(head + b"1\r\nx\r\n0\r\nAngarium-Header-a: b\r\n\r\n")
            assert (await wire.hear()).status == 200
            kept = await door.ask("GET", "/v1/topics/orders/partitions/0/records/0")
            assert [one["name"] for one in kept.json["headers"]] == ["content-type"]

    run(story())


def test_any_name_will_do_where_the_settings_say_so() -> None:
    async def story() -> None:
        async with opened(admission=Admission(Hosts(["*"]))) as door:
            assert (await told(door, asked("GET", "/v1/topics", EVIL)))[0] == 200

    run(story())


def test_listeners_for_earlier_clients_answer_to_their_names_alone() -> None:
    async def story() -> None:
        async with opened() as door:
            pages = HermesHttpDoor(door.broker, door.broker, host="127.0.0.1", port=0)  # type: ignore[arg-type]
            metrics = BaleMetricsDoor(BaleMetrics(), host="127.0.0.1", ports=[0])
            try:
                ports = [await pages.start(), *await metrics.start()]
                for port, target in zip(ports, ("/status", "/metrics"), strict=True):
                    door.port = port
                    assert (await told(door, asked("GET", target, EVIL)))[0] == 421
                    assert (await told(door, asked("GET", target, "localhost")))[0] == 200
            finally:
                await pages.stop(grace_s=0)
                await metrics.stop(grace_s=0)

    run(story())


def test_a_refused_page_is_told_which_setting_would_let_it_in() -> None:
    async def story() -> None:
        said = asked("GET", "/v1/topics", "localhost", f"Origin: https://{EVIL}")
        async with opened() as door:
            status, detail = await told(door, said)
            assert status == 403
            assert "[http] origins" in detail
            assert EVIL in detail
        origins = Origins(setting="--origin of the gateway")
        async with opened(admission=Admission(origins=origins)) as door:
            assert "--origin" in (await told(door, said))[1]

    run(story())


def test_pages_from_elsewhere_are_refused_and_our_own_are_not() -> None:
    async def story() -> None:
        async with opened(admission=Admission(origins=Origins([CONSOLE]))) as door:
            for origin, status in (
                ("http://localhost", 200),
                ("https://console.example.org", 200),
                ("https://evil.example.org", 403),
                ("null", 403),
            ):
                answer = await door.ask("GET", "/v1/topics", headers={"Origin": origin})
                assert answer.status == status, origin

    run(story())


def test_a_browser_is_told_that_a_page_from_elsewhere_may() -> None:
    """Else it keeps the answers from the page, or does not even ask."""

    async def story() -> None:
        async with opened(admission=Admission(origins=Origins([CONSOLE]))) as door:
            asked = {
                "Origin": CONSOLE,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type,idempotency-key",
            }
            told = await door.ask("OPTIONS", "/v1/topics/orders/records", headers=asked)
            assert (told.status, told.body) == (204, b"")
            assert told.headers["access-control-allow-origin"] == CONSOLE
            assert "POST" in told.headers["access-control-allow-methods"]
            assert "idempotency-key" in told.headers["access-control-allow-headers"]
            for target in ("/v1/topics", "/v1/topics/nowhere", "/nowhere", "/graphql"):
                answer = await door.ask("GET", target, headers={"Origin": CONSOLE})
                assert answer.headers["access-control-allow-origin"] == CONSOLE, target
                assert "X-Leader-Hint" in answer.headers["access-control-expose-headers"]
                assert answer.headers["vary"] == "Origin"
            wire = await door.connect()
            target = "/v1/topics/orders/stream"
            await wire.say(request_bytes("GET", target, headers={"Origin": CONSOLE}))
            stream = await wire.hear(has_body=False)
            assert stream.headers["access-control-allow-origin"] == CONSOLE

    run(story())


def test_every_page_may_where_the_settings_say_so() -> None:
    async def story() -> None:
        async with opened(admission=Admission(origins=Origins(["*"]))) as door:
            for origin in ("https://any.example", "null"):
                answer = await door.ask("GET", "/v1/topics", headers={"Origin": origin})
                assert answer.status == 200
                assert answer.headers["access-control-allow-origin"] == origin

    run(story())


def test_nobody_else_is_told_anything_about_pages() -> None:
    async def story() -> None:
        async with opened(admission=Admission(origins=Origins([CONSOLE]))) as door:
            for headers in ({}, {"Origin": "http://localhost"}, {"Origin": "https://evil.example"}):
                answer = await door.ask("GET", "/v1/topics", headers=headers)
                assert "access-control-allow-origin" not in answer.headers
            asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
            assert (await door.ask("OPTIONS", "/v1/topics", headers=asked)).status == 403
            assert (
                await door.ask("OPTIONS", "/v1/topics", headers={"Origin": CONSOLE})
            ).status == 405

    run(story())


def test_a_request_brings_one_proof() -> None:
    """Whoever stands in front may have looked at the other one."""

    async def story() -> None:
        async with opened() as door:
            proofs = ("Authorization: Bearer a", "authorization: Bearer b")
            status, detail = await told(door, asked("GET", "/v1/topics", "localhost", *proofs))
            assert (status, "one Authorization header" in detail) == (400, True)

    run(story())


def test_what_a_page_from_elsewhere_has_fetched_without_a_word_is_refused() -> None:
    """A browser names no origin when a page only shows or links to something."""

    async def story() -> None:
        async with opened() as door:
            for site, dest, target, status in (
                ("cross-site", "image", "/v1/topics", 403),
                ("same-site", "iframe", "/v1/topics/orders/stream?group=g", 403),
                ("cross-site", "document", "/v1/topics/orders/stream?group=g", 403),
                ("cross-site", "document", "/v1/topics", 200),
                ("same-origin", "empty", "/v1/topics", 200),
                ("none", "document", "/v1/topics", 200),
            ):
                said = (f"Sec-Fetch-Site: {site}", f"Sec-Fetch-Dest: {dest}")
                answer = await told(door, asked("GET", target, "localhost", *said))
                assert answer[0] == status, (site, dest, target)

    run(story())


def test_a_publish_that_came_before_is_still_asked_where_it_comes_from() -> None:
    """Heads are recognised, and lead straight to the intake; pages and other names do not."""

    def publish(host: str, *more: str) -> bytes:
        lines = ("Content-Type: application/json", "Content-Length: 13", *more)
        return asked("POST", "/v1/topics/orders/records", host, *lines) + b'{"value":"x"}'

    async def story() -> None:
        admission = Admission(Hosts(), Origins([CONSOLE]))
        async with opened(admission=admission) as door:
            wire = await door.connect()
            for _ in range(3):
                await wire.say(publish("localhost"))
                assert (await wire.hear()).status == 200
                await wire.say(publish("localhost", f"Origin: {CONSOLE}"))
                answer = await wire.hear()
                assert answer.status == 200
                assert answer.headers["access-control-allow-origin"] == CONSOLE
                assert (await told(door, publish(EVIL)))[0] == 421
                refused = publish("localhost", f"Origin: http://{EVIL}")
                assert (await told(door, refused))[0] == 403

    run(story())
