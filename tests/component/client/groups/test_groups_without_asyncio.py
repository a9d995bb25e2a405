"""Groups for programs without an event loop."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.component.client.groups.fake_group import GROUP, fake_group
from tests.component.client.harness import settings

from angarium.api import GroupConfig
from angarium.client import SyncClient
from angarium.client.loop_thread import LoopThread
from angarium.errors import GroupFenced
from angarium.kinds import GroupKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.component.client.groups.fake_group import FakeGroup


@contextmanager
def grouped(**choices: Any) -> Iterator[tuple[FakeGroup, SyncClient]]:
    thread = LoopThread("fake-cluster")
    fake = fake_group(**choices)
    group = thread.call(fake.__aenter__())
    try:
        with SyncClient(*group.cluster.addresses, settings=settings()) as client:
            yield group, client
    finally:
        thread.call(fake.__aexit__(None, None, None))
        thread.stop()


def test_each_word_returns_when_it_is_committed() -> None:
    with grouped() as (group, client):
        client.publish_batch("t", [b"a", b"b", b"c"])
        with client.group(GROUP).consume("t") as consumer:
            assert consumer.kind is GroupKind.QUEUE
            for record in consumer:
                if record.attempt == 1 and record.offset == 1:
                    record.nack(reason="once more")
                    continue
                record.ack()
                assert record.offset in group.offsets()
                if len(group.acked) == 3:
                    break
    assert group.reasons == ["once more"]


def test_batches_are_settled_whole() -> None:
    with grouped() as (group, client):
        client.publish_batch("t", [b"%d" % n for n in range(1_000)])
        seen = 0
        for batch in client.group(GROUP).consume_batches("t"):
            seen += len(batch)
            batch.ack()
            if seen == 1_000:
                break
        assert group.offsets() == list(range(1_000))


def test_automatic_acks_follow_the_loop() -> None:
    with grouped() as (group, client):
        client.publish_batch("t", [b"a", b"b", b"c"])
        with client.group(GROUP).consume("t", ack="auto") as consumer:
            for record in consumer:
                if record.offset == 1:
                    break
        assert group.offsets() == [0, 1]


def test_a_foreign_lease_is_not_settled() -> None:
    with grouped() as (group, client):
        client.publish("t", b"a")
        with client.group(GROUP).consume("t") as consumer:
            record = next(iter(consumer))
            group.leases["t", 0, 0].member = "another"
            with pytest.raises(GroupFenced):
                record.ack()
            consumer.flush()


def test_a_thread_that_waits_long_keeps_its_record() -> None:
    with grouped(config=GroupConfig(ack_timeout_ms=1_500)) as (group, client):
        client.publish("t", b"a")
        with client.group(GROUP).consume("t") as consumer:
            record = next(iter(consumer))
            asyncio.run(group.until(lambda: len(group.frames) > 6))  # renewed again and again
            record.ack()
        assert group.handed == 1
