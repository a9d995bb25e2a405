"""One Spark session and one broker for all tests of this folder that run in one process.

There are two processes: one has the session, the other everything that starts a Java of its own.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from angarium import SyncClient
from angarium.api.access import ADMIN
from angarium.client.loop_thread import LoopThread
from angarium.service.audit import AuditChoices
from angarium.testing.broker import BrokerThread, InProcessBroker
from angarium.testing.spark.standalone import QUICK_JAVA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SECONDS_MAX = 600
"""What one test may take: the first one starts Java and every kind of Python worker."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/spark/" in item.nodeid:
            item.add_marker(pytest.mark.timeout(SECONDS_MAX))
            has_session = "spark" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("session" if has_session else "elsewhere"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that the product would start, for tests."""
    pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
    from angarium.errors import PreconditionFailed
    from angarium.spark.java import java
    from angarium.spark.session import spark_session

    try:
        java(tmp_path_factory.mktemp("java"))
    except PreconditionFailed as missing:
        pytest.skip(str(missing))
    session = spark_session(
        "local[2]",
        name="tests",
        config={
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def quick_retention() -> Iterator[None]:
    """Lets brokers of this process look for what is to be trimmed ten times as often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("angarium.node.retention.ROUND_S", 0.5)
        yield


@pytest.fixture(scope="session")
def broker(quick_retention: None) -> Iterator[BrokerThread]:
    """A broker of one node."""
    with BrokerThread() as running:
        yield running


SECURED_PASSWORD = "planted-password-of-spark"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[list[str]]:
    """The addresses of a broker that asks who somebody is, and records what they do.

    Its users `root`, `eyes`, `reader` and `pipes` have the roles admin, auditor, subscriber and
    pipeline, and one password.
    """
    thread = LoopThread("angarium-secured")
    broker = InProcessBroker(
        tmp_path / "node", is_authentication_required=True, audit=AuditChoices()
    )
    try:
        thread.call(broker.start())
        access = broker.accesses[0]
        assert access is not None
        roles = {"root": ADMIN, "eyes": "auditor", "reader": "subscriber", "pipes": "pipeline"}
        for name, role in roles.items():
            thread.call(access.calls.create_user(name, password=SECURED_PASSWORD, roles=[role]))
        yield broker.addresses
    finally:
        thread.call(broker.stop())
        thread.stop()


@pytest.fixture(scope="session")
def client(broker: BrokerThread) -> Iterator[SyncClient]:
    """A client of the broker."""
    with SyncClient(*broker.addresses) as connected:
        yield connected


@pytest.fixture(scope="session")
def servers(broker: BrokerThread) -> str:
    """The broker's address, as an option."""
    return ",".join(broker.addresses)


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    """Names that nobody else uses."""
    return (f"topic-{number}" for number in count(1))


@pytest.fixture
def new_topic(client: SyncClient, names: Iterator[str]) -> Callable[[int], str]:
    """Makes topics with so many partitions."""

    def made(partitions: int) -> str:
        name = next(names)
        client.create_topic(name, partitions=partitions)
        return name

    return made


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A checkpoint for one query."""
    return str(tmp_path / "checkpoint")
