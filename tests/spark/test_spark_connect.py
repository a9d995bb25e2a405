"""Through Spark Connect: a server from the wheel, on loopback, and a client that has no Java."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.busy_machine import slowness
from tests.spark.versions import HAS_LIMITS, per_trigger, stream_sink
from tests.unit.spark.shop_messages import an_order, descriptors

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
from angarium.cli.main import main
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
quality = ["pipeline", "run", folder + "/orders.toml", "--master", remote, "--servers", servers]
told["quality"] = main([*quality, "--format", "json"])
print(json.dumps(told))
"""

QUALITY = """
checkpoint = "{folder}/quality"
trigger = "once"
[quality]
startingOffsets = "earliest"
dead_letter_topic = "{dead}"
[quality.topic.{orders}]
schema = "amount DOUBLE"
range.amount.min = 0
[quality.topic.{coded}]
valueFormat = "protobuf"
valueSchema = "{schema}"
valueMessage = "shop.Order"
not_null = ["at"]
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
    orders, coded, dead = new_topic(1), new_topic(1), new_topic(1)
    client.publish_batch(orders, [b'{"amount": 2}', b'{"amount": -2}', b"{"])
    client.publish_batch(coded, [an_order(customer="b"), b"\xff"])
    schema = base64.b64encode(descriptors()).decode()
    (tmp_path / "orders.toml").write_text(
        QUALITY.format(folder=tmp_path, dead=dead, orders=orders, coded=coded, schema=schema),
        encoding="utf-8",
    )
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
    assert told["quality"] == 0
    assert {
        bytes(one.value or b""): dict(one.headers)["angarium-dlq-reason"]
        for one in client.read(dead)
    } == {
        b'{"amount": -2}': b"amount is at least 0",
        b"{": b"the value fits the schema",
        an_order(customer="b"): b"at is not null",
        b"\xff": b"the value fits the schema",
    }
    last = [json.loads(line) for line in done.stdout.splitlines()[:-1]][-1]
    assert {name: count for name, count in last["report"].items() if count} == {
        f"{orders}: records": 3,
        f"{orders}: not: the value fits the schema": 1,
        f"{orders}: not: amount is at least 0": 1,
        f"{coded}: records": 2,
        f"{coded}: not: the value fits the schema": 1,
        f"{coded}: not: at is not null": 1,
    }


def test_a_server_that_is_not_there_is_not_waited_for() -> None:
    from angarium.bench.cluster import free_ports
    from angarium.spark.session import spark_session

    began = time.monotonic()
    with pytest.raises(
        PreconditionFailed, match=r"no Spark Connect server answers at 127\.0\.0\.1"
    ):
        spark_session(f"sc://127.0.0.1:{free_ports(1)[0]}/;user_id=me")
    assert time.monotonic() - began < 30 * slowness()
