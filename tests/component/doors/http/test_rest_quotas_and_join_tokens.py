"""Quotas and join tokens over REST, against a catalog in memory."""

from __future__ import annotations

from typing import Any

from tests.component.doors.http.opened_http import Opened, opened
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_access import MemoryAccess


async def asked(door: Opened, what: str, body: object = None, *, status: int = 200) -> Any:
    method, target = what.split(" ")
    answer = await door.ask(method, target, body)
    assert answer.status == status, answer.body
    return answer.json if answer.body else None


def test_a_quota_is_set_added_to_described_and_removed() -> None:
    async def check() -> None:
        async with opened(access=MemoryAccess()) as door:
            await asked(door, "POST /v1/users", {"name": "alice"}, status=201)
            alice = "/v1/quotas/user/alice"
            await asked(door, f"PATCH {alice}", {"limits": {"requests": 2_000}})
            both = await asked(door, f"PATCH {alice}", {"limits": {"bytes_in": -1}})
            assert both == {
                "subject_kind": "user",
                "subject": "alice",
                "limits": {"requests": 2_000, "bytes_in": -1},
                "counts": [],
            }
            less = await asked(door, f"PATCH {alice}", {"cleared": ["requests"]})
            assert less["limits"] == {"bytes_in": -1}
            found = await asked(door, f"GET {alice}")
            assert {"kind": "requests", "limit": None, "why": "", "used": 0.0} in found["counts"]
            listed = await asked(door, "GET /v1/quotas")
            assert listed == {"quotas": [less]}
            await asked(door, f"DELETE {alice}", status=204)
            gone = await asked(door, f"DELETE {alice}", status=404)
            assert gone["code"] == "NOT_FOUND"

    run(check())


def test_the_default_has_no_name_and_topics_have_a_prefix() -> None:
    async def check() -> None:
        async with opened(access=MemoryAccess()) as door:
            await asked(door, "GET /v1/quotas/default", status=404)
            change = {"limits": {"connections": 100}}
            made = await asked(door, "PATCH /v1/quotas/default", change)
            assert (made["subject_kind"], made["subject"]) == ("default", "")
            assert (await asked(door, "GET /v1/quotas/default"))["limits"] == {"connections": 100}
            await asked(door, "PATCH /v1/quotas/default/alice", change, status=404)
            await asked(door, "DELETE /v1/quotas/default", status=204)
            stored = {"limits": {"stored_bytes": 1 << 40}}
            for written, kept in (("team-a*", "team-a"), ("*", "")):
                made = await asked(door, f"PATCH /v1/quotas/topic/{written}", stored)
                assert made["subject"] == kept
                found = await asked(door, f"GET /v1/quotas/topic/{written}")
                assert [one["limit"] for one in found["counts"]] == [1 << 40]

    run(check())


def test_a_quota_that_makes_no_sense_is_refused() -> None:
    async def check() -> None:
        async with opened(access=MemoryAccess()) as door:
            for limits in (
                *({}, {"requests": 0}, {"requests": -2}, {"requests": 1 << 63}),
                *({"wishes": 1}, {"requests": "many"}, {"stored_bytes": 1}),
            ):
                body = {"limits": limits}
                told = await asked(door, "PATCH /v1/quotas/default", body, status=400)
                assert told["code"] == "INVALID_ARGUMENT", told
            odd = await asked(door, "GET /v1/quotas/nobody/alice", status=400)
            assert odd["code"] == "INVALID_ARGUMENT"

    run(check())


def test_a_join_token_is_issued_listed_and_withdrawn() -> None:
    async def check() -> None:
        async with opened(access=MemoryAccess()) as door:
            tokens = "/v1/cluster/join-tokens"
            issued = await asked(door, f"POST {tokens}", {"until_us": 5_000_000}, status=201)
            assert issued["secret"].startswith("angj_")
            info = {"id": 1, "created_at_us": 0, "until_us": 5_000_000, "used_by": None}
            assert issued["info"] == info
            await asked(door, f"POST {tokens}", {}, status=201)
            listed = await asked(door, f"GET {tokens}")
            assert listed["tokens"][0] == info, "the secret is told once"
            await asked(door, f"DELETE {tokens}/1", status=204)
            await asked(door, f"DELETE {tokens}/1", status=404)
            left = await asked(door, f"GET {tokens}")
            assert [one["id"] for one in left["tokens"]] == [2]
            late = {"until_us": 2_000_000_000_000_000}
            assert "7 days" in (await asked(door, f"POST {tokens}", late, status=400))["detail"]

    run(check())
