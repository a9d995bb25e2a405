"""A write that is large for one partition: committed whole, or refused with what helps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from angarium import SyncClient
from angarium.node.config import NodeConfig
from angarium.replica.config import ReplicaConfig
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGED_BYTES_MAX = 16 << 20


def test_a_write_of_several_steps_is_there_whole_and_one_beyond_the_bound_not_at_all(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkException

    bounded = partial(NodeConfig, staged_bytes_max=STAGED_BYTES_MAX)
    monkeypatch.setattr("angarium.testing.broker.NodeConfig", bounded)
    with BrokerThread() as broker, SyncClient(*broker.addresses) as client:
        client.create_topic("one", partitions=1)

        def write(mebibytes: int) -> None:
            thousands = spark.range(0, mebibytes * 1_024, 1, 3)
            # Hashes are what no codec makes smaller.
            hashes = ",".join(f"unhex(sha2(string(id * 16 + {one}), 512))" for one in range(16))
            rows = thousands.selectExpr(f"concat({hashes}) AS value").write.format("angarium")
            rows.options(servers=broker.addresses[0], topic="one").mode("append").save()

        assert 2 * ReplicaConfig().commit_step_bytes < 12 << 20 < STAGED_BYTES_MAX
        write(12)
        assert client.describe_topic("one").partitions[0].end_offset == 12 * 1_024
        with pytest.raises(PySparkException, match=r"\[cluster\] staged_bytes_max"):
            write(24)
        assert client.describe_topic("one").partitions[0].end_offset == 12 * 1_024
        # What was refused makes room again.
        write(12)
        values = [record.value for record in client.read("one")]
        assert (len(values), len(set(values))) == (2 * 12 * 1_024, 12 * 1_024)
