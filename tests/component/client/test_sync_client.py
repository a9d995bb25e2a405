"""The synchronous client: the same calls from ordinary threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_broker import Cluster, fake_cluster
from tests.component.client.harness import settings

from angarium import DeliveryMode
from angarium.client import (
    Client,
    Consumer,
    DeadLetters,
    Group,
    GroupBatch,
    GroupRecord,
    Subscription,
    SyncClient,
    SyncConsumer,
    SyncGroup,
    SyncGroupBatch,
    SyncGroupRecord,
    SyncSubscription,
)
from angarium.client.groups.sync import SyncDeadLetters
from angarium.client.loop_thread import LoopThread
from angarium.client.transactions.staged import Stage, StagedWrite
from angarium.client.transactions.sync import SyncStage, SyncStagedWrite, SyncTransaction
from angarium.client.transactions.transaction import Transaction
from angarium.errors import LimitExceeded, NotFound
from angarium.wire import DeadlineExceeded, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster of two nodes, in a thread of its own."""
    thread = LoopThread("fake-cluster")
    context = fake_cluster(2)
    cluster = thread.call(context.__aenter__())
    cluster.add_topic("t", partitions=2)
    yield cluster
    thread.call(context.__aexit__(None, None, None))
    thread.stop()


def test_everything_works_without_an_event_loop(cluster: Cluster) -> None:
    with SyncClient(*cluster.addresses, settings=settings()) as client:
        assert client.is_healthy()
        assert client.publish("t", b"1", partition=0).offset == 0
        assert sum(ack.next_offset or 0 for ack in client.publish_batch("t", [b"2"] * 10)) >= 10
        assert client.find_offset("t", 0, "earliest") == 0
        assert client.fetch("t", 0, 0, records_max=1)[0].value == b"1"
        assert len(list(client.read("t"))) == 11
        assert sum(map(len, client.read_batches("t"))) == 11
        assert client.lost_records == 0
        client.create_topic("u")
        client.alter_topic("u", partitions=2)
        assert client.describe_topic("u").name == "u"
        assert [info.name for info in client.list_topics()] == ["t", "u"]
        client.delete_topic("u")
        assert len(client.cluster_status().nodes) == 2
        with pytest.raises(NotFound):
            client.publish("nowhere", b"")


@pytest.mark.parametrize(
    ("asynchronous", "without_asyncio", "left_out"),
    [
        # `open_producer` and `settle` are the contract's: whoever numbers or settles by hand.
        (Client, SyncClient, "buffered_bytes connect open_producer settle take_unattended"),
        (Subscription, SyncSubscription, "begin partitions"),
        (Group, SyncGroup, ""),
        (Consumer, SyncConsumer, "begin stop_reading vanish"),
        (GroupRecord, SyncGroupRecord, ""),
        (GroupBatch, SyncGroupBatch, ""),
        (DeadLetters, SyncDeadLetters, "dealt_with"),
        (Transaction, SyncTransaction, "acknowledge id"),
        (StagedWrite, SyncStagedWrite, ""),
        (Stage, SyncStage, "acknowledge is_empty outdated settle"),
    ],
)
def test_every_word_is_there_without_asyncio(
    asynchronous: type, without_asyncio: type, left_out: str
) -> None:
    words = {word for word in dir(asynchronous) if not word.startswith("_")}
    assert words - set(dir(without_asyncio)) == set(left_out.split())
    for word in words - set(left_out.split()):
        there, here = getattr(asynchronous, word), getattr(without_asyncio, word)
        if callable(there):
            assert signature(here).parameters == signature(there).parameters, word
            assert here.__doc__, f"{word} says nothing"


def test_words_say_what_they_return_and_what_they_are_about() -> None:
    assert signature(SyncClient.group).return_annotation == "SyncGroup"
    assert signature(SyncClient.read_batches).return_annotation == "Iterator[ReceivedBatch]"
    assert SyncClient.publish.__doc__ == Client.publish.__doc__


def test_a_client_that_is_closed_says_so(cluster: Cluster) -> None:
    client = SyncClient(*cluster.addresses, settings=settings())
    group = client.group("g")
    client.close()
    for use in (client.list_topics, client.flush, client.transaction, lambda: group.consume("t")):
        with pytest.raises(Unreachable, match="closed"):
            use()


def test_records_are_iterated_as_they_come(cluster: Cluster) -> None:
    with (
        SyncClient(*cluster.addresses, settings=settings()) as client,
        client.subscribe("t", start="earliest") as records,
    ):
        for at in range(10):
            client.publish("t", b"%d" % at, partition=0)
        stream = iter(records)
        assert [next(stream).value for _ in range(5)] == [b"%d" % at for at in range(5)]
        assert [next(iter(records)).value for _ in range(5)] == [b"%d" % at for at in range(5, 10)]
        client.create_topic("u")
        records.add("u")
        records.drop("t")
        client.publish("t", b"unwanted")
        client.publish("u", b"wanted", mode=DeliveryMode.PERFORMANCE)
        batch = next(records.batches())
        assert (batch.topic, batch.values(), batch.is_live) == ("u", [b"wanted"], True)


def test_many_threads_share_one_client(cluster: Cluster) -> None:
    with SyncClient(*cluster.addresses, settings=settings()) as client:

        def work(name: int) -> None:
            for number in range(20):
                client.publish("t", b"%d %d" % (name, number), partition=name % 2)

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
        for partition, one in enumerate(cluster.topics["t"].partitions):
            pairs = [tuple(map(int, (value or b"").split())) for value in one.values()]
            for name in range(partition, 16, 2):
                assert [number for who, number in pairs if who == name] == list(range(20))


def test_publishing_without_waiting_is_flushed_bounded_and_told(cluster: Cluster) -> None:
    with SyncClient(*cluster.addresses, settings=settings()) as client:
        for number in range(1_000):
            client.publish_nowait("t", b"%d" % number, partition=1)
        client.flush()
        assert cluster.topics["t"].partitions[1].values() == [b"%d" % at for at in range(1_000)]
        client.publish_nowait("t", b"", partition=9)
        with pytest.raises(Exception, match="partitions 0 to 1"):
            client.flush()


def test_at_the_bound_a_thread_is_told_so(cluster: Cluster) -> None:
    def flood(client: SyncClient) -> None:
        for _ in range(10_000):
            client.publish_nowait("t", bytes(1_000), partition=0)

    with (
        SyncClient(*cluster.addresses, settings=settings(buffered_bytes_max=2_000)) as client,
        pytest.raises(LimitExceeded, match="buffered_bytes_max"),
    ):
        flood(client)


def test_close_publishes_what_waits_and_ends_the_thread(cluster: Cluster) -> None:
    client = SyncClient(*cluster.addresses, settings=settings())
    for number in range(100):
        client.publish_nowait("t", b"%d" % number, partition=0)
    client.close()
    client.close()
    assert len(cluster.topics["t"].partitions[0].values()) == 100
    assert "angarium-client" not in {thread.name for thread in threading.enumerate()}


def test_an_unreachable_cluster_is_told_and_leaves_no_thread() -> None:
    # Which of the two depends on whether the refusal or the deadline comes first.
    with (
        pytest.raises((Unreachable, DeadlineExceeded)),
        SyncClient("127.0.0.1:1", settings=settings(request_timeout_s=0.1)),
    ):
        pass
    assert "angarium-client" not in {thread.name for thread in threading.enumerate()}
