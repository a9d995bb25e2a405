"""Through Spark Connect: a server from the wheel, on loopback, and a client that has no Java."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.spark.versions import HAS_LIMITS, per_trigger, stream_sink

from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from angarium import SyncClient

pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
pytest.importorskip("grpc_status", reason="pyspark[connect] is not installed")
pytest.importorskip("zstandard", reason="pyspark[connect] is not installed")

CLIENT = """
import json, sys
from angarium.cli.spark import spark_refusal
from angarium.errors import PreconditionFailed
from angarium.pipelines.analytics import Analytics, analytics
from angarium.pipelines.sql import answer
from angarium.spark.session import is_connect, spark_session

remote, servers, source, sink, folder, limit = sys.argv[1:]
spark = spark_session(remote)
told = {"is connect": is_connect(spark)}
told["sql"] = list(
    answer(
        spark,
        f"SELECT count(*), sum(int(string(value))) FROM `{source}` WHERE offset >= 0",
        topics=[source],
        options={"servers": servers},
    ).first()
)
copying = (
    spark.readStream.format("angarium")
    .options(servers=servers, subscribe=source, startingOffsets="earliest")
    .options(**json.loads(limit))
    .load()
    .selectExpr("key", "value")
    .writeStream.format("angarium")
    .options(servers=servers, topic=sink, checkpointLocation=folder + "/copy")
    .trigger(availableNow=True)
    .start()
)
copying.awaitTermination()
told["batches"] = len(copying.recentProgress)
rows = spark.createDataFrame([("k", "one more")], "key string, value string")
for _ in range(2):
    rows.write.format("angarium").options(
        servers=servers, topic=sink, writeId=sink + "-again"
    ).mode("append").save()
try:
    spark.read.format("angarium").options(servers=servers, subscrbe="a").load().count()
except Exception as error:
    told["refused"] = spark_refusal(error)
try:
    figures = Analytics(options={"servers": servers, "subscribe": source}, table=folder + "/t")
    analytics(spark, figures, checkpoint=folder + "/figures")
except PreconditionFailed as error:
    told["analytics"] = str(error)
spark.stop()
print(json.dumps(told))
"""


@stream_sink
def test_topics_are_read_and_written_once_through_spark_connect(
    client: SyncClient, servers: str, tmp_path: Path, new_topic: Callable[[int], str]
) -> None:
    from angarium.testing.spark.connect import ConnectServer
    from angarium.testing.spark.standalone import driver_environment

    source, sink = new_topic(2), new_topic(2)
    values = [b"%d" % number for number in range(1000)]
    client.publish_batch(source, values, keys=values)
    with ConnectServer(tmp_path / "server") as server:
        job = [server.remote, servers, source, sink, str(tmp_path), json.dumps(per_trigger(400))]
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, *job],
            env={**driver_environment(), "ANGARIUM_JAVA": "/nowhere"},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["is connect"] is True
    assert told["sql"] == [1000, 499_500]
    assert told["batches"] == (3 if HAS_LIMITS else 1)
    assert told["refused"] == (
        "there is no option subscrbe for a batch read; did you mean subscribe?"
    )
    assert "cannot run through Spark Connect" in told["analytics"]
    assert Counter(one.value for one in client.read(sink)) == Counter([*values, b"one more"])


def test_a_server_that_is_not_there_is_not_waited_for() -> None:
    from angarium.bench.cluster import free_ports
    from angarium.spark.session import spark_session

    began = time.monotonic()
    with pytest.raises(
        PreconditionFailed, match=r"no Spark Connect server answers at 127\.0\.0\.1"
    ):
        spark_session(f"sc://127.0.0.1:{free_ports(1)[0]}/;user_id=me")
    assert time.monotonic() - began < 30
