"""Quotas and join tokens over GraphQL, against a catalog in memory."""

from __future__ import annotations

from tests.component.doors.http.opened_http import opened
from tests.component.doors.http.test_graphql_users_and_grants import administered, asked, refused
from tests.on_a_loop import run

QUOTA = "{ subjectKind subject limits { kind limit } }"


def test_a_quota_is_set_added_to_described_and_removed() -> None:
    async def check() -> None:
        async with administered() as door:
            await asked(door, 'mutation { createUser(name: "alice") { name } }')
            alice = 'subjectKind: USER, subject: "alice"'
            first = "limits: [{kind: REQUESTS, limit: 2000}]"
            await asked(door, f"mutation {{ setQuota({alice}, {first}) {QUOTA} }}")
            both = await asked(
                door,
                f"mutation($l: [QuotaLimitInput!]!) {{ setQuota({alice}, limits: $l) {QUOTA} }}",
                l=[{"kind": "BYTES_IN", "limit": -1}],
            )
            assert both["setQuota"] == {
                "subjectKind": "USER",
                "subject": "alice",
                "limits": [
                    {"kind": "BYTES_IN", "limit": -1},
                    {"kind": "REQUESTS", "limit": 2_000},
                ],
            }
            less = await asked(
                door, f"mutation {{ setQuota({alice}, cleared: [REQUESTS]) {QUOTA} }}"
            )
            assert less["setQuota"]["limits"] == [{"kind": "BYTES_IN", "limit": -1}]
            found = await asked(
                door, f"{{ quota({alice}) {{ counts {{ kind limit why used }} }} }}"
            )
            nothing = {"kind": "REQUESTS", "limit": None, "why": "", "used": 0.0}
            assert nothing in found["quota"]["counts"]
            # The short way through a document and the general one show the same.
            general = await asked(
                door,
                f"query {{ quota({alice}) {{ ...f }} }} "
                "fragment f on Quota { counts { kind limit why used } }",
            )
            assert general == found
            assert await asked(door, f"{{ quotas {QUOTA} }}") == {"quotas": [less["setQuota"]]}
            await asked(door, f"mutation {{ deleteQuota({alice}) }}")
            assert await asked(door, "{ quotas { subject } }") == {"quotas": []}
            missing = await asked(door, "{ quota(subjectKind: DEFAULT) { subject } }")
            assert missing == {"quota": None}

    run(check())


def test_a_quota_larger_than_an_int_is_shown() -> None:
    async def check() -> None:
        async with administered() as door:
            topics = 'subjectKind: TOPIC, subject: "team-a*"'
            limits = f"limits: [{{kind: STORED_BYTES, limit: {1 << 40}}}]"
            await asked(door, f"mutation {{ setQuota({topics}, {limits}) {{ subject }} }}")
            found = await asked(
                door, f"{{ quota({topics}) {{ subject limits {{ limit }} counts {{ limit }} }} }}"
            )
            shown = [{"limit": 1 << 40}]
            assert found["quota"] == {"subject": "team-a", "limits": shown, "counts": shown}

    run(check())


def test_a_quota_that_makes_no_sense_is_refused() -> None:
    async def check() -> None:
        async with administered() as door:
            twice = "{kind: REQUESTS, limit: 1}, {kind: REQUESTS, limit: 2}"
            for limits in ("", "{kind: REQUESTS, limit: 0}", twice):
                told = await refused(
                    door,
                    f"mutation {{ setQuota(subjectKind: DEFAULT, limits: [{limits}]) {QUOTA} }}",
                )
                assert told["extensions"]["code"] == "BAD_USER_INPUT"

    run(check())


def test_a_join_token_is_issued_listed_and_withdrawn() -> None:
    async def check() -> None:
        async with administered() as door:
            fields = "{ id createdAtUs untilUs usedBy }"
            issued = await asked(
                door,
                f"mutation($u: Long) {{ createJoinToken(untilUs: $u) {{ secret info {fields} }} }}",
                u=5_000_000,
            )
            assert issued["createJoinToken"]["secret"].startswith("angj_")
            info = {"id": 1, "createdAtUs": 0, "untilUs": 5_000_000, "usedBy": None}
            assert issued["createJoinToken"]["info"] == info
            assert await asked(door, f"{{ joinTokens {fields} }}") == {"joinTokens": [info]}
            await asked(door, "mutation { deleteJoinToken(id: 1) }")
            assert await asked(door, "{ joinTokens { id } }") == {"joinTokens": []}
            gone = await refused(door, "mutation { deleteJoinToken(id: 1) }")
            assert gone["extensions"]["code"] == "NOT_FOUND"

    run(check())


def test_a_door_without_quotas_says_that_it_does_not_serve_them() -> None:
    async def check() -> None:
        async with opened() as door:
            told = await refused(door, "{ quotas { subject } }")
            assert told["extensions"]["code"] == "NOT_IMPLEMENTED"

    run(check())
