"""Evening out, upgrades and lost majorities over REST."""

from __future__ import annotations

from tests.component.doors.http.opened_http import opened
from tests.component.doors.http.test_rest_quotas_and_join_tokens import asked
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_access import MemoryAccess
from tests.unit.doors.grpc.memory_operating import BEGUN_AT, LARGE

BALANCE = "/v1/cluster/balance"
RECOVERY = "/v1/topics/orders/partitions/2/recovery"


def test_a_rebalance_is_begun_paced_and_called_off() -> None:
    async def check() -> None:
        async with opened(access=MemoryAccess()) as door:
            before = await asked(door, f"GET {BALANCE}")
            assert before == {
                "is_running": False,
                "begun_at_us": 0,
                "bytes_per_s": 0,
                "is_automatic": False,
                "is_due": False,
                "is_by_itself": False,
                "moves": [
                    {
                        "topic": "orders",
                        "partition": 2,
                        "replicas": [1, 2],
                        "target": [1, 3],
                        "is_under_way": True,
                        "stored_bytes": LARGE,
                        "copied_bytes": LARGE - 1,
                    }
                ],
                "moves_left": 1,
                "bytes_left": LARGE,
                "time_left_ms": None,
                "waits_for": "",
            }
            begun = await asked(door, f"POST {BALANCE}", {"bytes_per_s": LARGE})
            assert (begun["is_running"], begun["begun_at_us"]) == (True, BEGUN_AT)
            assert (await asked(door, f"POST {BALANCE}", {}))["bytes_per_s"] == LARGE
            assert (await asked(door, f"POST {BALANCE}", {"bytes_per_s": 0}))["bytes_per_s"] == 0
            await asked(door, f"POST {BALANCE}", {"bytes_per_s": -1}, status=400)
            await asked(door, f"POST {BALANCE}", {"pace": 1}, status=400)
            assert not (await asked(door, f"DELETE {BALANCE}"))["is_running"]
            refused = await asked(door, f"DELETE {BALANCE}", status=409)
            assert refused["code"] == "PRECONDITION_FAILED"
            changed = await asked(door, f"PATCH {BALANCE}", {"automatic": True})
            assert changed["is_automatic"]
            await asked(door, f"PATCH {BALANCE}", {}, status=400)

    run(check())


def test_whether_a_node_may_be_taken_down_is_told() -> None:
    async def check() -> None:
        async with opened(access=MemoryAccess()) as door:
            told = await asked(door, "GET /v1/cluster/upgrade")
            assert (told["hindrances"], told["next_node"]) == (["node 3 is away"], None)
            there, away = told["nodes"]
            assert (there["started_at_us"], there["certificate_days"]) == (BEGUN_AT, 12.5)
            assert away == {
                "node": 3,
                "alive": False,
                "version": "",
                "level_max": 1,
                "started_at_us": 0,
                "certificate_days": None,
                "disk_free_bytes": None,
                "leads_catalog": False,
            }

    run(check())


def test_a_partition_is_recovered_with_the_code_that_was_shown() -> None:
    async def check() -> None:
        broker = MemoryAccess()
        async with opened(access=broker) as door:
            shown = await asked(door, f"GET {RECOVERY}")
            assert (shown["source"], shown["last_index"], shown["code"]) == (1, LARGE, "1f0a93c7")
            assert shown["lost"] == [
                {"node": 2, "address": "10.0.0.2:7400", "silent_ms": LARGE},
                {"node": 3, "address": "", "silent_ms": None},
            ]
            assert shown["groups"] == [{"name": "billing", "position": LARGE - 20}]
            wrong = await asked(door, f"POST {RECOVERY}", {"code": "00000000"}, status=400)
            assert wrong["code"] == "INVALID_ARGUMENT"
            await asked(door, f"POST {RECOVERY}", {}, status=400)
            assert broker.recovered == []
            done = await asked(door, f"POST {RECOVERY}", {"code": shown["code"]})
            assert done["is_done"]
            assert broker.recovered == [("orders", 2)]
            healthy = "/v1/topics/orders/partitions/1/recovery"
            assert (await asked(door, f"GET {healthy}"))["objection"] == "a majority is there"
            await asked(door, f"POST {healthy}", {"code": shown["code"]}, status=409)

    run(check())


def test_a_door_without_administration_does_not_have_them() -> None:
    async def check() -> None:
        async with opened() as door:
            for what in (f"GET {BALANCE}", "GET /v1/cluster/upgrade", f"GET {RECOVERY}"):
                await asked(door, what, status=404)

    run(check())
