"""Spark at a broker that asks who somebody is: it comes in, and tells nobody by what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import SECURED_PASSWORD as PASSWORD

from angarium import SyncClient

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

WRONG = "planted-guess-of-spark"


def plans(frame: DataFrame) -> str:
    """Return every plan of a query, as `explain` and the pages of Spark show them."""
    return str(frame._jdf.queryExecution().toString())


def shown(spark: SparkSession) -> str:
    """Return what Spark's pages and its REST answers are made of."""
    state = spark._jsparkSession.sharedState().statusStore()
    executions = state.executionsList()
    told = [executions.apply(at) for at in range(executions.size())]
    pages = [f"{one.description()} {one.details()} {one.physicalPlanDescription()}" for one in told]
    assert any("angarium" in one.lower() for one in pages), "these are our queries"
    return "\n".join(pages) + repr(spark.sparkContext.getConf().getAll())


def written(folder: Path) -> str:
    """Return all that is in the files below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def test_passwords_and_tokens_let_spark_in_and_are_in_no_plan_page_or_checkpoint(
    spark: SparkSession, secured: list[str], tmp_path: Path
) -> None:
    with SyncClient(*secured, user="root", password=PASSWORD) as root:
        for topic in ("orders", "copied", "streamed"):
            root.create_topic(topic)
        root.publish_batch("orders", [b"a", b"b", b"c"])
        token = root.create_token("pipes", "spark").secret
    servers = {"servers": ",".join(secured)}
    by_password = {**servers, "user": "pipes", "password": PASSWORD}
    by_token = {**servers, "token": token}

    read = spark.read.format("angarium").options(subscribe="orders", **by_password).load()
    values = read.select("value")
    assert [bytes(one.value) for one in values.collect()] == [b"a", b"b", b"c"]
    values.write.format("angarium").options(topic="copied", **by_token).mode("append").save()

    checkpoint = tmp_path / "checkpoint"
    earliest = {"subscribe": "copied", "startingOffsets": "earliest"}
    query = (
        spark.readStream.format("angarium")
        .options(**earliest, **by_token)
        .load()
        .select("value")
        .writeStream.format("angarium")
        .options(topic="streamed", checkpointLocation=str(checkpoint), **by_password)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    progress = repr(query.lastProgress) + repr(query.recentProgress)
    with SyncClient(*secured, user="reader", password=PASSWORD) as reader:
        assert sorted(one.value or b"" for one in reader.read("streamed")) == [b"a", b"b", b"c"]

    said = [plans(read), plans(values), progress, shown(spark), written(checkpoint)]
    for secret in (PASSWORD, token):
        assert [one for one in said if secret in one] == []


def test_whom_the_broker_does_not_let_in_is_told_so_without_the_secret(
    spark: SparkSession, secured: list[str]
) -> None:
    for proof in ({"user": "pipes", "password": WRONG}, {"token": WRONG}):
        options = {"servers": ",".join(secured), "subscribe": "orders", **proof}
        with pytest.raises(Exception, match=r"UNAUTHENTICATED|wrong|unknown|token") as refused:
            spark.read.format("angarium").options(**options).load().collect()
        assert WRONG not in str(refused.value)
