"""A majority of a partition is lost for good, the partition goes on, and the dead return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from angarium.client import Client
from angarium.errors import AngariumError, InvalidArgument, PreconditionFailed
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.api import PartitionInfo
    from angarium.api.recovery import RecoveryInfo

PARTITIONS = 4
RECORDS = 40
QUICK = {"recover_after_s": 2}


async def _values(client: Client, partition: int) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    while records := await client.fetch("orders", partition, offset, fresh=True):
        found += [bytes(record.value or b"") for record in records]
        offset = (records[-1].offset or 0) + 1
    return found


def test_a_partition_goes_on_with_one_replica_and_the_dead_come_back_as_newcomers(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(4, settings=QUICK) as cluster:
            await cluster.create_topic("orders", partitions=PARTITIONS)
            voter_outside = cluster.ids[3]  # three of four vote on the catalog, this one does not
            async with Client(cluster.nodes[cluster.ids[0]].address) as anybody:
                topic = await anybody.describe_topic("orders")
            lost_one = next(one for one in topic.partitions if voter_outside in one.replicas)
            number = lost_one.number
            dead = [voter_outside, next(one for one in lost_one.replicas if one != voter_outside)]
            (survivor,) = set(lost_one.replicas) - set(dead)
            living = [cluster.nodes[one].address for one in cluster.ids if one not in dead]
            async with Client(*living) as client:
                sent = [b"before %d" % one for one in range(RECORDS)]
                for value in sent:
                    await client.publish("orders", value, partition=number)
                healthy = await client.describe_recovery("orders", number)
                assert "has a leader" in healthy.objection
                assert not healthy.code
                for one in dead:
                    cluster.nodes[one].kill()

                early = await _objection(client, number)
                assert "silent" in early or "majority" in early or "leader" in early

                async def allowed() -> RecoveryInfo | None:
                    info = await client.describe_recovery("orders", number)
                    return None if info.objection else info

                plan = await eventually(allowed, what="the recovery is allowed", within_s=60)
                assert plan is not None
                assert plan.source == survivor
                assert sorted(one.node for one in plan.lost) == sorted(dead)
                assert plan.end_offset <= RECORDS
                with pytest.raises(InvalidArgument):
                    await client.recover_partition("orders", number, "00000000")
                done = await client.recover_partition("orders", number, plan.code)
                assert done.is_done

                after = [b"after %d" % one for one in range(RECORDS)]
                for value in after:
                    await client.publish("orders", value, partition=number)
                assert await _values(client, number) == [*sent, *after]
                with pytest.raises((PreconditionFailed, InvalidArgument)):
                    await client.recover_partition("orders", number, plan.code)

                for one in dead:  # with the disks that they had
                    cluster.restart(one)

                async def whole() -> PartitionInfo | None:
                    try:
                        found = await client.describe_topic("orders")
                    except AngariumError:
                        return None
                    one = found.partitions[number]
                    return one if len(one.in_sync or ()) == 3 else None

                await eventually(whole, what="three replicas", within_s=90)
                for one in dead:
                    await cluster.back(one)
                    async with Client(cluster.nodes[one].address) as there:
                        assert await _values(there, number) == [*sent, *after]

    run(scenario())


async def _objection(client: Client, partition: int) -> str:
    return (await client.describe_recovery("orders", partition)).objection
