"""Evening out, upgrades and lost majorities over a real connection."""

from __future__ import annotations

import grpc
from tests.component.doors.grpc.opened import opened, refusal
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_operating import BEGUN_AT, LARGE

from angarium.proto.v1 import broker_pb2 as pb


def test_a_rebalance_is_begun_paced_and_called_off() -> None:
    async def check() -> None:
        async with opened() as it:
            stub = it.stub
            before = (await stub.DescribeBalance(pb.DescribeBalanceRequest())).balance
            assert not before.is_running
            assert not before.HasField("time_left_ms"), "nobody can tell yet"
            (move,) = before.moves
            assert (move.topic, move.partition) == ("orders", 2)
            assert (list(move.replicas), list(move.target)) == ([1, 2], [1, 3])
            assert (move.stored_bytes, move.copied_bytes) == (LARGE, LARGE - 1)
            begun = (await stub.Rebalance(pb.RebalanceRequest(bytes_per_s=LARGE))).balance
            assert (begun.is_running, begun.bytes_per_s) == (True, LARGE)
            assert (begun.begun_at_us, begun.time_left_ms) == (BEGUN_AT, LARGE)
            again = (await stub.Rebalance(pb.RebalanceRequest())).balance
            assert again.bytes_per_s == LARGE, "what is not said stays"
            unlimited = (await stub.Rebalance(pb.RebalanceRequest(bytes_per_s=0))).balance
            assert unlimited.bytes_per_s == 0, "0 is said"
            wrong = await refusal(stub.Rebalance(pb.RebalanceRequest(bytes_per_s=-1)))
            assert wrong.code == "INVALID_ARGUMENT"
            ended = (await stub.CancelRebalance(pb.CancelRebalanceRequest())).balance
            assert not ended.is_running
            refused = await refusal(stub.CancelRebalance(pb.CancelRebalanceRequest()))
            assert (refused.status, refused.code) == (
                grpc.StatusCode.FAILED_PRECONDITION,
                "PRECONDITION_FAILED",
            )
            for automatic in (True, False):
                wish = pb.SetAutoBalanceRequest(automatic=automatic)
                assert (await stub.SetAutoBalance(wish)).balance.is_automatic == automatic

    run(check())


def test_whether_a_node_may_be_taken_down_is_told() -> None:
    async def check() -> None:
        async with opened() as it:
            told = await it.stub.DescribeUpgrade(pb.DescribeUpgradeRequest())
            assert (list(told.hindrances), list(told.remarks)) == (
                ["node 3 is away"],
                ["node 1 leads the catalog"],
            )
            assert not told.HasField("next_node")
            there, away = told.nodes
            assert (there.version, there.started_at_us) == ("1.2.3", BEGUN_AT)
            assert (there.certificate_days, there.disk_free_bytes) == (12.5, LARGE)
            assert not away.HasField("certificate_days")
            assert not away.HasField("disk_free_bytes")
            assert (told.level, told.level_possible) == (5, 6)

    run(check())


def test_a_partition_is_recovered_with_the_code_that_was_shown() -> None:
    async def check() -> None:
        async with opened() as it:
            stub = it.stub
            asked = pb.DescribeRecoveryRequest(topic="orders", partition=2)
            shown = (await stub.DescribeRecovery(asked)).recovery
            assert (shown.source, shown.last_term, shown.last_index) == (1, 7, LARGE)
            gone, without = shown.lost
            assert (gone.node, gone.address, gone.silent_ms) == (2, "10.0.0.2:7400", LARGE)
            assert not without.HasField("silent_ms"), "its node is there"
            assert [(one.name, one.position) for one in shown.groups] == [("billing", LARGE - 20)]
            assert list(shown.may_lose) == ["At least 3 entries are lost."]
            wrong = pb.RecoverPartitionRequest(topic="orders", partition=2, code="00000000")
            assert (await refusal(stub.RecoverPartition(wrong))).code == "INVALID_ARGUMENT"
            assert it.broker.recovered == []
            right = pb.RecoverPartitionRequest(topic="orders", partition=2, code=shown.code)
            assert (await stub.RecoverPartition(right)).recovery.is_done
            assert it.broker.recovered == [("orders", 2)]

            healthy = pb.DescribeRecoveryRequest(topic="orders", partition=1)
            objection = (await stub.DescribeRecovery(healthy)).recovery
            assert objection.objection == "a majority is there"
            assert not objection.HasField("source")
            needless = pb.RecoverPartitionRequest(topic="orders", partition=1, code=shown.code)
            assert (await refusal(stub.RecoverPartition(needless))).code == "PRECONDITION_FAILED"
            unnumbered = pb.DescribeRecoveryRequest(topic="orders", partition=-1)
            assert (await refusal(stub.DescribeRecovery(unnumbered))).code == "INVALID_ARGUMENT"

    run(check())
