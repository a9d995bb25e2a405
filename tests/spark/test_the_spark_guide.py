"""The guide: its examples run one after the other, as they are printed, against a real broker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.versions import limits

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

    from angarium import SyncClient

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "spark.md"
PRINTED = "127.0.0.1:7400"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


@limits
def test_the_examples_run_as_they_are_printed(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The guide's names are taken where another guide's examples have run on this broker.
    for name in {"orders", "invoices"} & {info.name for info in client.list_topics()}:
        client.delete_topic(name)
    monkeypatch.chdir(tmp_path)
    # `spark_session` joins the session that runs already, and gives it the guide's settings.
    names: dict[str, Any] = {}
    partitions = spark.conf.get("spark.sql.shuffle.partitions") or "1"
    try:
        for code in EXAMPLES:
            exec(compile(code.replace(PRINTED, servers), str(GUIDE), "exec"), names)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
    assert names["orders"].count() == 2
    assert {row.value for row in names["lines"].collect()} == {"tea", "cake"}
    assert spark.table("texts").count() == 2
    written = {record.value for record in client.read("invoices")}
    assert written == {b"two teas", b"TEA", b"CAKE"}
