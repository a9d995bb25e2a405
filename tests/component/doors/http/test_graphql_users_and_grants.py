"""Users, roles, grants and tokens over GraphQL, against a catalog in memory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.component.doors.http.opened_http import Opened, opened
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_access import MemoryAccess
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.doors.http.graphql.execution import Executor
from angarium.doors.http.graphql.resolving import Resolvers
from angarium.doors.intake import Intake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PASSWORD = "alices good password"
LATER_US = 2_000_000_000_000_000
TEAM = {"actions": ["topic.publish"], "kind": "TOPIC", "name": "team-a"}
TEAM_WHOLE = {**TEAM, "match": "PREFIX", "effect": "ALLOW"}
GRANT = "{ actions kind name match effect }"


@asynccontextmanager
async def administered() -> AsyncIterator[Opened]:
    async with opened(access=MemoryAccess()) as door:
        yield door


async def asked(door: Opened, query: str, **variables: Any) -> Any:
    """Return the data of an operation, which succeeds."""
    body = {"query": query, "variables": variables}
    found = (await door.ask("POST", "/graphql", body)).json
    assert "errors" not in found, found
    return found["data"]


async def refused(door: Opened, query: str, **variables: Any) -> Any:
    """Return the only error of an operation."""
    body = {"query": query, "variables": variables}
    (error,) = (await door.ask("POST", "/graphql", body)).json["errors"]
    return error


def test_a_user_is_made_changed_and_removed() -> None:
    async def check() -> None:
        async with administered() as door:
            fields = "{ name roles isLocked hasPassword tokens }"
            made = await asked(
                door,
                'mutation($p: String!) { createUser(name: "alice", password: $p,'
                f' roles: ["publisher"]) {fields} }}',
                p=PASSWORD,
            )
            user = {
                "name": "alice",
                "roles": ["publisher"],
                "isLocked": False,
                "hasPassword": True,
                "tokens": 0,
            }
            assert made["createUser"] == user
            changed = await asked(
                door, f'mutation {{ alterUser(name: "alice", roles: [], isLocked: true) {fields} }}'
            )
            user |= {"roles": [], "isLocked": True}
            assert changed["alterUser"] == user
            same = await asked(door, f'mutation {{ alterUser(name: "alice") {fields} }}')
            assert same["alterUser"] == user, "what is left out stays"
            found = await asked(door, f'{{ users {fields} user(name: "alice") {fields} }}')
            assert found == {"users": [user], "user": user}
            await asked(door, 'mutation { deleteUser(name: "alice") }')
            found = await asked(door, '{ users { name } user(name: "alice") { name } }')
            assert found == {"users": [], "user": None}

    run(check())


def test_a_grant_is_given_asked_about_and_taken_back() -> None:
    async def check() -> None:
        async with administered() as door:
            await asked(door, 'mutation { createUser(name: "alice") { name } }')
            await asked(door, 'mutation { createRole(name: "quiet", about: "hush") { name } }')
            given = await asked(
                door,
                "mutation($g: GrantInput!) { createGrant(subjectKind: USER, subject: "
                f'"alice", grant: $g) {{ id subjectKind subject grant {GRANT} }} }}',
                g=TEAM,
            )
            expected = {"id": 1, "subjectKind": "USER", "subject": "alice", "grant": TEAM_WHOLE}
            assert given["createGrant"] == expected
            written = await asked(
                door,
                'mutation { createGrant(subjectKind: ROLE, subject: "quiet", grant: {actions: '
                f'["*"], kind: TOPIC, effect: DENY}}) {{ grant {GRANT} }} }}',
            )
            deny = {"actions": ["*"], "kind": "TOPIC", "name": "", "match": "PREFIX"}
            assert written["createGrant"]["grant"] == {**deny, "effect": "DENY"}
            may = await asked(
                door,
                '{ can(user: "alice", action: "topic.publish", kind: TOPIC, name: "team-a.x")'
                f" {{ isAllowed why role grant {GRANT} }} }}",
            )
            assert may["can"] == {
                "isAllowed": True,
                "why": "allow topic.publish on topic prefix 'team-a' (of its own)",
                "role": "",
                "grant": TEAM_WHOLE,
            }
            may = await asked(
                door,
                f'{{ can(user: "alice", action: "topic.read", kind: TOPIC) {{ grant {GRANT} }} }}',
            )
            assert may["can"] == {"grant": None}
            found = await asked(door, "{ roles { name isBuiltIn grants { subject } } }")
            assert found["roles"][0]["isBuiltIn"]
            assert found["roles"][-1]["grants"] == [{"subject": "quiet"}]
            await asked(door, "mutation { deleteGrant(id: 1) }")
            await asked(door, 'mutation { alterUser(name: "alice", roles: ["quiet"]) { name } }')
            await asked(door, 'mutation { deleteRole(name: "quiet", force: true) }')
            assert await asked(door, '{ user(name: "alice") { roles } }') == {"user": {"roles": []}}
            assert await asked(door, "{ grants { id } }") == {"grants": []}

    run(check())


def test_a_token_is_issued_listed_and_revoked() -> None:
    async def check() -> None:
        async with administered() as door:
            await asked(door, 'mutation { createUser(name: "alice") { name } }')
            issued = await asked(
                door,
                "mutation($until: Long, $grants: [GrantInput!]) { createToken(owner: "
                '"alice", name: "ci", untilUs: $until, grants: $grants) { secret info '
                f"{{ owner name untilUs grants {GRANT} }} }} }}",
                until=LATER_US,
                grants=[TEAM],
            )
            assert issued["createToken"]["secret"].startswith("angt_")
            info = {"owner": "alice", "name": "ci", "untilUs": LATER_US, "grants": [TEAM_WHOLE]}
            assert issued["createToken"]["info"] == info
            await asked(door, 'mutation { createToken(owner: "alice", name: "b") { secret } }')
            listed = await asked(door, '{ tokens(owner: "alice") { name grants { name } } }')
            assert listed["tokens"] == [
                {"name": "b", "grants": None},
                {"name": "ci", "grants": [{"name": "team-a"}]},
            ]
            assert await asked(door, '{ tokens(owner: "bob") { name } }') == {"tokens": []}
            await asked(door, 'mutation { deleteToken(owner: "alice", name: "ci") }')
            assert await asked(door, "{ tokens { name } }") == {"tokens": [{"name": "b"}]}

    run(check())


def test_everybody_is_told_who_they_are() -> None:
    async def check() -> None:
        async with administered() as door:
            found = await asked(
                door, "{ whoami { principal { name proof untilUs token } roles authentication } }"
            )
            principal = {"name": "anonymous", "proof": "NONE", "untilUs": None, "token": None}
            assert found["whoami"] == {
                "principal": principal,
                "roles": ["admin"],
                "authentication": "off",
            }

    run(check())


def test_what_makes_no_sense_is_refused_and_tells_no_password() -> None:
    async def check() -> None:
        async with administered() as door:
            query = 'mutation($p: String!) { createUser(name: "bob", password: $p) { name } }'
            short = await refused(door, query, p="xyzzy")
            assert short["extensions"]["code"] == "BAD_USER_INPUT"
            assert "xyzzy" not in short["message"]
            missing = await refused(door, 'mutation { deleteUser(name: "bob") }')
            assert missing["extensions"]["code"] == "NOT_FOUND"
            assert missing["message"] == "there is no user 'bob'"

    run(check())


def test_a_door_without_users_says_that_it_does_not_serve_them() -> None:
    async def check() -> None:
        async with opened() as door:
            told = await refused(door, "{ users { name } }")
            assert told["extensions"]["code"] == "NOT_IMPLEMENTED"

    run(check())


def test_a_document_with_a_password_in_it_is_not_remembered() -> None:
    executor = Executor(Resolvers(Intake(MemoryBroker()), None))
    written = 'mutation { createUser(name: "bob", password: "xyzzy") { name } }'
    passed = "mutation($p: String!) { createUser(name: $p, password: $p) { name } }"
    assert executor.prepared(written) is not executor.prepared(written)
    assert executor.prepared(passed) is executor.prepared(passed)
    assert not any("xyzzy" in one for one in executor._known)
