"""Audit records reach Spark as a topic like any other, for who may read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import SECURED_PASSWORD as PASSWORD

from angarium import SyncClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_audit_records_are_read_with_the_role_auditor_and_not_without(
    spark: SparkSession, secured: list[str]
) -> None:
    with SyncClient(*secured, user="root", password=PASSWORD) as root:
        root.create_topic("orders")

    def rows(user: str) -> list[tuple[str, ...]]:
        options = {"servers": ",".join(secured), "user": user, "password": PASSWORD}
        read = spark.read.format("angarium").options(subscribe="angarium.audit", **options).load()
        schema = "event string, who string, what string, resource string, previous string"
        found = read.selectExpr(f"from_json(string(value), '{schema}') as r").select("r.*")
        return [tuple(one) for one in found.collect()]

    actions = [one[:4] for one in rows("eyes") if one[0] == "action"]
    assert actions == [("action", "root", "create_topic", "orders")]
    assert all(len(one[4]) == 64 for one in rows("eyes"))
    with pytest.raises(Exception, match="audit"):
        rows("reader")
