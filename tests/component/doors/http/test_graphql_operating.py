"""Evening out, upgrades and lost majorities over GraphQL."""

from __future__ import annotations

from tests.component.doors.http.test_graphql_users_and_grants import administered, asked, refused
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_operating import BEGUN_AT, LARGE

RUNNING = "{ isRunning bytesPerS begunAtUs timeLeftMs }"


def test_a_rebalance_is_begun_paced_and_called_off() -> None:
    async def check() -> None:
        async with administered() as door:
            moves = "moves { topic replicas target isUnderWay storedBytes copiedBytes }"
            before = await asked(door, f"{{ balance {{ isRunning bytesLeft {moves} }} }}")
            assert before["balance"] == {
                "isRunning": False,
                "bytesLeft": LARGE,
                "moves": [
                    {
                        "topic": "orders",
                        "replicas": [1, 2],
                        "target": [1, 3],
                        "isUnderWay": True,
                        "storedBytes": LARGE,
                        "copiedBytes": LARGE - 1,
                    }
                ],
            }
            begun = await asked(door, f"mutation {{ rebalance(bytesPerS: {LARGE}) {RUNNING} }}")
            running = {
                "isRunning": True,
                "bytesPerS": LARGE,
                "begunAtUs": BEGUN_AT,
                "timeLeftMs": LARGE,
            }
            assert begun["rebalance"] == running
            assert (await asked(door, f"mutation {{ rebalance {RUNNING} }}"))[
                "rebalance"
            ] == running
            ended = await asked(door, "mutation { cancelRebalance { isRunning } }")
            assert ended["cancelRebalance"] == {"isRunning": False}
            why = await refused(door, "mutation { cancelRebalance { isRunning } }")
            assert why["extensions"]["angariumCode"] == "PRECONDITION_FAILED"
            changed = await asked(
                door, "mutation { setAutoBalance(automatic: true) { isAutomatic } }"
            )
            assert changed["setAutoBalance"] == {"isAutomatic": True}

    run(check())


def test_whether_a_node_may_be_taken_down_is_told() -> None:
    async def check() -> None:
        async with administered() as door:
            nodes = "nodes { node alive startedAtUs certificateDays diskFreeBytes leadsCatalog }"
            told = await asked(door, f"{{ upgrade {{ hindrances nextNode level {nodes} }} }}")
            assert told["upgrade"] == {
                "hindrances": ["node 3 is away"],
                "nextNode": None,
                "level": 5,
                "nodes": [
                    {
                        "node": 1,
                        "alive": True,
                        "startedAtUs": BEGUN_AT,
                        "certificateDays": 12.5,
                        "diskFreeBytes": LARGE,
                        "leadsCatalog": True,
                    },
                    {
                        "node": 3,
                        "alive": False,
                        "startedAtUs": 0,
                        "certificateDays": None,
                        "diskFreeBytes": None,
                        "leadsCatalog": False,
                    },
                ],
            }

    run(check())


def test_a_partition_is_recovered_with_the_code_that_was_shown() -> None:
    async def check() -> None:
        async with administered() as door:
            parts = "source lastTerm lastIndex commit behind endOffset mayLose code"
            lists = "lost { node address silentMs } left { node } groups { name position }"
            place = 'topic: "orders", partition: 2'
            found = await asked(door, f"{{ recovery({place}) {{ {parts} {lists} }} }}")
            shown = found["recovery"]
            assert (shown["lastTerm"], shown["lastIndex"]) == (7, LARGE)
            assert shown["lost"][0]["silentMs"] == LARGE
            assert shown["groups"] == [{"name": "billing", "position": LARGE - 20}]
            general = await asked(
                door,
                f"query {{ recovery({place}) {{ ...f }} }} "
                f"fragment f on Recovery {{ {parts} {lists} }}",
            )
            assert general == found

            def recover(code: str) -> str:
                return f'mutation {{ recoverPartition({place}, code: "{code}") {{ isDone }} }}'

            why = await refused(door, recover("00000000"))
            assert why["extensions"]["angariumCode"] == "INVALID_ARGUMENT"
            done = await asked(door, recover(shown["code"]))
            assert done["recoverPartition"] == {"isDone": True}

    run(check())
