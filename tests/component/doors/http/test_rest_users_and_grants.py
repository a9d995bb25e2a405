"""Users, roles, grants and tokens over REST, against a catalog in memory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.component.doors.http.opened_http import Opened, opened
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_access import MemoryAccess

from angarium.api.access import Effect, Grant, Match, ResourceKind
from angarium.doors.http.access_routes import NewUser, UserChange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PASSWORD = "alices good password"
TEAM = {"actions": ["topic.publish"], "kind": "topic", "name": "team-a"}
TEAM_WHOLE = {**TEAM, "match": "prefix", "effect": "allow"}
LATER_US = 2_000_000_000_000_000


@asynccontextmanager
async def administered() -> AsyncIterator[tuple[Opened, MemoryAccess]]:
    access = MemoryAccess()
    async with opened(access=access) as door:
        yield door, access


async def asked(door: Opened, what: str, body: object = None, *, status: int = 200) -> Any:
    method, target = what.split(" ")
    answer = await door.ask(method, target, body)
    assert answer.status == status, answer.body
    return answer.json if answer.body else None


def test_a_user_is_made_changed_and_removed() -> None:
    async def check() -> None:
        async with administered() as (door, _):
            body = {"name": "alice", "password": PASSWORD, "roles": ["publisher"]}
            made = await asked(door, "POST /v1/users", body, status=201)
            assert made == {
                "name": "alice",
                "roles": ["publisher"],
                "is_locked": False,
                "has_password": True,
                "created_at_us": made["created_at_us"],
                "tokens": 0,
            }
            change: dict[str, object] = {"roles": [], "is_locked": True}
            changed = await asked(door, "PATCH /v1/users/alice", change)
            assert (changed["roles"], changed["is_locked"]) == ([], True)
            # What is absent stays.
            assert await asked(door, "PATCH /v1/users/alice", {}) == changed
            assert await asked(door, "GET /v1/users/alice") == changed
            assert await asked(door, "GET /v1/users") == {"users": [changed]}
            await asked(door, "DELETE /v1/users/alice", status=204)
            gone = await asked(door, "GET /v1/users/alice", status=404)
            assert (gone["code"], gone["detail"]) == ("NOT_FOUND", "there is no user 'alice'")

    run(check())


def test_a_name_with_a_slash_is_one_name() -> None:
    async def check() -> None:
        async with administered() as (door, _):
            await asked(door, "POST /v1/users", {"name": "team/alice"}, status=201)
            found = await asked(door, "GET /v1/users/team%2Falice")
            assert found["name"] == "team/alice"
            await asked(door, "POST /v1/users/team%2Falice/tokens", {"name": "a/b"}, status=201)
            await asked(door, "DELETE /v1/users/team%2Falice/tokens/a%2Fb", status=204)

    run(check())


def test_a_grant_is_given_asked_about_and_taken_back() -> None:
    async def check() -> None:
        async with administered() as (door, access):
            await asked(door, "POST /v1/users", {"name": "alice"}, status=201)
            role = {"name": "quiet", "about": "says nothing"}
            made = await asked(door, "POST /v1/roles", role, status=201)
            assert made == {**role, "is_built_in": False, "grants": []}
            given = {"subject_kind": "user", "subject": "alice", "grant": TEAM}
            grant = await asked(door, "POST /v1/grants", given, status=201)
            assert grant == {**given, "id": 1, "grant": TEAM_WHOLE}
            deny = {
                "actions": ["*"],
                "kind": "topic",
                "name": "team-a.secret",
                "match": "exact",
                "effect": "deny",
            }
            banned = {"subject_kind": "role", "subject": "quiet", "grant": deny}
            await asked(door, "POST /v1/grants", banned, status=201)
            assert (await access.list_grants())[1].grant == Grant(
                actions=("*",),
                kind=ResourceKind.TOPIC,
                name="team-a.secret",
                match=Match.EXACT,
                effect=Effect.DENY,
            )
            may = "GET /v1/users/alice/can?action=topic.publish&kind=topic&name="
            allowed = await asked(door, f"{may}team-a.orders")
            assert allowed == {
                "is_allowed": True,
                "why": "allow topic.publish on topic prefix 'team-a' (of its own)",
                "grant": TEAM_WHOLE,
                "role": "",
            }
            refused = await asked(door, f"{may}team-ab")
            assert (refused["is_allowed"], refused["grant"]) == (False, None)
            roles = (await asked(door, "GET /v1/roles"))["roles"]
            assert (roles[0]["name"], roles[0]["is_built_in"]) == ("admin", True)
            (quiet,) = [one for one in roles if one["name"] == "quiet"]
            assert quiet["grants"][0]["grant"] == deny
            await asked(door, "DELETE /v1/grants/1", status=204)
            left = (await asked(door, "GET /v1/grants"))["grants"]
            assert [one["subject"] for one in left] == ["quiet"]
            await asked(door, "PATCH /v1/users/alice", {"roles": ["quiet"]})
            held = await asked(door, "DELETE /v1/roles/quiet", status=409)
            assert (held["code"], held["retriable"]) == ("ROLE_HELD", False)
            assert "held by 'alice'" in held["detail"]
            await asked(door, "DELETE /v1/roles/quiet?force=maybe", status=400)
            await asked(door, "DELETE /v1/roles/quiet?force=true", status=204)
            assert (await asked(door, "GET /v1/users/alice"))["roles"] == []
            assert await asked(door, "GET /v1/grants") == {"grants": []}

    run(check())


def test_a_token_is_issued_listed_and_revoked() -> None:
    async def check() -> None:
        async with administered() as (door, _):
            await asked(door, "POST /v1/users", {"name": "alice"}, status=201)
            body = {"name": "ci", "until_us": LATER_US, "grants": [TEAM]}
            issued = await asked(door, "POST /v1/users/alice/tokens", body, status=201)
            assert issued["secret"].startswith("angt_")
            assert issued["info"]["until_us"] == LATER_US
            assert issued["info"]["grants"] == [TEAM_WHOLE]
            plain = {"name": "wide"}
            wide = await asked(door, "POST /v1/users/alice/tokens", plain, status=201)
            assert (wide["info"]["grants"], wide["info"]["until_us"]) == (None, None)
            listed = await asked(door, "GET /v1/users/alice/tokens")
            assert listed == {"tokens": [issued["info"], wide["info"]]}
            assert await asked(door, "GET /v1/tokens") == listed
            assert await asked(door, "GET /v1/users/bob/tokens") == {"tokens": []}
            await asked(door, "DELETE /v1/users/alice/tokens/ci", status=204)
            assert await asked(door, "GET /v1/tokens") == {"tokens": [wide["info"]]}

    run(check())


def test_everybody_is_told_who_they_are() -> None:
    async def check() -> None:
        async with administered() as (door, _):
            who = await asked(door, "GET /v1/whoami")
            assert who == {
                "principal": {
                    "name": "anonymous",
                    "roles": ["admin"],
                    "proof": "none",
                    "until_us": None,
                    "token": None,
                    "since_us": None,
                    "key": None,
                },
                "roles": ["admin"],
                "authentication": "off",
            }

    run(check())


def test_what_makes_no_sense_is_refused_and_tells_no_password() -> None:
    async def check() -> None:
        async with administered() as (door, _):
            await asked(door, "POST /v1/users", {"name": "alice"}, status=201)
            wrong: list[tuple[str, object]] = [
                ("POST /v1/users", {"name": "bob", "password": "xyzzy"}),
                ("POST /v1/users", {"name": "bob", "password": 123456789}),
                ("POST /v1/users?password=xyzzy", {"name": "bob"}),
                ("PATCH /v1/users/alice", {"password": "xyzzy", "colour": "red"}),
                ("POST /v1/grants", {"subject_kind": "user", "subject": "alice", "grant": {}}),
            ]
            for what, body in wrong:
                told = await asked(door, what, body, status=400)
                assert told["code"] == "INVALID_ARGUMENT"
                assert "xyzzy" not in told["detail"]
                assert "123456789" not in told["detail"]
            odd = {**TEAM, "actions": ["topic.fly"]}
            given = {"subject_kind": "user", "subject": "alice", "grant": odd}
            told = await asked(door, "POST /v1/grants", given, status=400)
            assert "no action" in told["detail"]
            await asked(door, "POST /v1/users", {"name": "alice"}, status=409)

    run(check())


def test_a_door_without_users_does_not_serve_them() -> None:
    async def check() -> None:
        async with opened() as door:
            await asked(door, "GET /v1/users", status=404)

    run(check())


def test_nothing_secret_is_in_what_is_printed_of_a_request() -> None:
    assert PASSWORD not in repr(NewUser(name="alice", password=PASSWORD))
    assert PASSWORD not in repr(UserChange(password=PASSWORD))
