"""What answers tell browsers and proxies: how a page may be shown, and what nothing may keep."""

from __future__ import annotations

import base64
import hashlib
import inspect
import re
from typing import Any

import msgspec
import pytest
from tests.component.doors.http.opened_http import LOCALHOST, Answered, opened
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_access import MemoryAccess

from angarium.api import access
from angarium.api.access import SECRET_FIELD
from angarium_compat.hermes import HermesHttpDoor

HTML = {"Accept": "text/html"}


def check_page(page: Answered) -> str:
    """Check what every page says beside itself; return its policy."""
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "same-origin"
    policy = page.headers["content-security-policy"]
    for said in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert said in policy
    return policy


def test_the_graphql_page_runs_its_own_script_and_no_other() -> None:
    async def story() -> None:
        async with opened() as door:
            pages: Any = HermesHttpDoor(door.broker, door.broker, host=LOCALHOST, port=0)  # type: ignore[arg-type]
            try:
                own, port = door.port, await pages.start()
                for door.port, target in ((own, "/graphql"), (port, "/"), (port, "/query")):
                    page = await door.ask("GET", target, headers=HTML)
                    policy = check_page(page)
                    assert "unsafe" not in policy
                    assert "connect-src 'self'" in policy
                    for name in (b"script", b"style"):
                        (inline,) = re.findall(
                            rb"<%b>(.*?)</%b>" % (name, name), page.body, re.DOTALL
                        )
                        digest = base64.b64encode(hashlib.sha256(inline).digest()).decode()
                        assert f"{name.decode()}-src 'sha256-{digest}'" in policy
                    # Attributes that style or run something are not covered by the digests.
                    assert not re.search(rb"<[^>]* (style|on[a-z]+)=", page.body)
            finally:
                await pages.stop(grace_s=0)

    run(story())


def test_the_front_page_is_shown_in_no_frame() -> None:
    async def story() -> None:
        async with opened() as door:
            check_page(await door.ask("GET", "/", headers=HTML))

    run(story())


TOKEN = 'mutation { createToken(owner: "alice", name: "ci") { info { name } %s } }'
JOIN = "mutation { createJoinToken { info { id } %s } }"


@pytest.mark.parametrize(
    ("target", "body", "is_secret"),
    [
        ("/v1/users/alice/tokens", {"name": "ci"}, True),
        ("/v1/cluster/join-tokens", {}, True),
        ("/graphql", {"query": TOKEN % SECRET_FIELD}, True),
        ("/graphql", {"query": TOKEN % f"shown: {SECRET_FIELD}"}, True),
        ("/graphql", {"query": TOKEN % "... on IssuedToken { secret }"}, True),
        ("/graphql", {"query": JOIN % SECRET_FIELD}, True),
        ("/graphql", [{"query": "{ topics { name } }"}, {"query": JOIN % SECRET_FIELD}], True),
        ("/graphql", {"query": TOKEN % ""}, False),
        ("/graphql", {"query": "{ topics { name } }"}, False),
    ],
)
def test_an_answer_with_a_secret_is_kept_by_nothing(
    target: str, body: object, is_secret: bool
) -> None:
    async def story() -> None:
        async with opened(access=MemoryAccess()) as door:
            await door.ask("POST", "/v1/users", {"name": "alice", "password": "a good password"})
            for _ in range(2):  # GraphQL remembers what it has read
                answer = await door.ask("POST", target, body)
                await door.ask("DELETE", "/v1/users/alice/tokens/ci")
                assert answer.status in {200, 201}
                assert b"rror" not in answer.body
                assert (
                    f'"{SECRET_FIELD}":"'.encode() in answer.body or b"shown" in answer.body
                ) is (is_secret)
                assert answer.headers.get("cache-control") == ("no-store" if is_secret else None)

    run(story())


def test_every_secret_of_the_contract_has_that_name() -> None:
    """What hides a part of itself from logs is what has a secret."""
    hiding = [
        one
        for _, one in inspect.getmembers(access, inspect.isclass)
        if issubclass(one, msgspec.Struct) and "__repr__" in vars(one)
    ]
    assert hiding
    assert all(SECRET_FIELD in one.__struct_fields__ for one in hiding)
