"""Transactions through the client, a real node's door and three nodes in this process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.delivery.on_nodes import on_nodes

from angarium import Client, SyncClient
from angarium.errors import InvalidArgument, NotFound, ProducerFenced, TransactionAborted
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from angarium.client.transactions.transaction import Transaction
    from angarium.testing.broker import InProcessBroker


async def values(client: Client, topic: str) -> list[bytes | None]:
    return [record.value async for record in client.read(topic)]


async def publish_and_fail(tx: Transaction) -> None:
    async with tx:
        await tx.publish("invoices", b"never")
        raise ZeroDivisionError


@on_nodes(3)
async def test_what_is_published_in_a_transaction_is_seen_after_its_commit(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses, producer="billing") as client:
        await client.create_topic("invoices", partitions=3)
        await client.create_topic("audit")
        async with client.transaction() as tx:
            for number in range(9):
                await tx.publish("invoices", f"invoice {number}", key=f"customer {number}")
            await tx.publish_batch("audit", [b"one", b"two"])
            assert await values(client, "invoices") == []
            assert await values(client, "audit") == []
        assert tx.committed is not None
        assert not tx.committed.repeated
        invoices = set(await values(client, "invoices"))
        assert invoices == {f"invoice {number}".encode() for number in range(9)}
        assert await values(client, "audit") == [b"one", b"two"]
        placed = {(one.topic, one.partition): one for one in tx.committed.partitions}
        assert placed["audit", 0].base_offset == 0
        assert placed["audit", 0].next_offset == 2


@on_nodes(3)
async def test_an_exception_leaves_nothing_behind(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses, producer="billing") as client:
        await client.create_topic("invoices")
        tx = client.transaction()
        with pytest.raises(ZeroDivisionError):
            await publish_and_fail(tx)
        with pytest.raises(TransactionAborted):
            await tx.publish("invoices", b"too late")
        async with client.transaction() as tx:
            await tx.publish("invoices", b"seen")
        assert await values(client, "invoices") == [b"seen"]


@on_nodes(3)
async def test_transactions_need_a_name(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        with pytest.raises(InvalidArgument, match="name"):
            client.transaction()


@on_nodes(3)
async def test_an_empty_transaction_is_fine(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses, producer="billing") as client:
        async with client.transaction() as tx:
            pass
        assert tx.committed is not None


@on_nodes(3)
async def test_a_second_client_of_the_same_name_ends_the_first_ones_transaction(
    broker: InProcessBroker,
) -> None:
    async with (
        Client(*broker.addresses, producer="billing") as old,
        Client(*broker.addresses, producer="billing") as new,
    ):
        await old.create_topic("invoices")
        late = old.transaction()
        await late.__aenter__()
        await late.publish("invoices", b"of the old run")
        async with new.transaction() as tx:
            await tx.publish("invoices", b"of the new run")
        with pytest.raises(ProducerFenced):
            await late.__aexit__(None, None, None)
        with pytest.raises(ProducerFenced):
            async with old.transaction():
                pass
        async with new.transaction() as tx:
            await tx.publish("invoices", b"and another")
        assert await values(new, "invoices") == [b"of the new run", b"and another"]


@on_nodes(3)
async def test_many_transactions_side_by_side_under_different_names(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("invoices", partitions=2)

        async def work(worker: int) -> None:
            for number in range(10):
                async with client.transaction(f"worker {worker}") as tx:
                    await tx.publish("invoices", f"{worker}.{number}", partition=0)
                    await tx.publish("invoices", f"{worker}.{number}", partition=1)

        await asyncio.gather(*(work(worker) for worker in range(5)))
        expected = sorted(
            f"{worker}.{number}".encode() for worker in range(5) for number in range(10)
        )
        found = [(one.partition, one.value or b"") async for one in client.read("invoices")]
        assert sorted(found) == [(number, value) for number in (0, 1) for value in expected]


@on_nodes(3)
async def test_a_staged_write_publishes_what_its_tickets_say_and_nothing_else(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses) as driver, Client(*broker.addresses) as executor:
        await driver.create_topic("table", partitions=2)
        series = await driver.open_series("query")
        assert series.last_sequence is None
        write = executor.staged("query", epoch=series.epoch, sequence=0)
        tickets = []
        for attempt in ("a", "b"):
            async with write.stage(f"task-0-{attempt}") as stage:
                await stage.publish_batch("table", [f"row {n}".encode() for n in range(100)])
            tickets.append(stage.ticket)
        commit = driver.staged("query", epoch=series.epoch, sequence=0)
        assert not (await commit.commit([tickets[1]])).repeated
        assert (await commit.commit([tickets[1]])).repeated
        assert len(await values(driver, "table")) == 100

        # A restarted driver repeats the batch that it is not sure of.
        again = await driver.open_series("query")
        assert again.epoch > series.epoch
        assert again.last_sequence == 0
        rewrite = executor.staged("query", epoch=again.epoch, sequence=0)
        async with rewrite.stage("task-0-c") as stage:
            await stage.publish_batch("table", [f"row {n}".encode() for n in range(100)])
        assert stage.ticket.is_committed
        assert (await rewrite.commit([stage.ticket])).repeated
        assert len(await values(driver, "table")) == 100

        # The surviving old driver is refused.
        async with executor.staged("query", epoch=again.epoch, sequence=1).stage("t") as stage:
            await stage.publish_batch("table", [b"new"])
        with pytest.raises(ProducerFenced):
            await driver.staged("query", epoch=series.epoch, sequence=1).commit([stage.ticket])
        done = await driver.staged("query", epoch=again.epoch, sequence=1).commit([stage.ticket])
        assert not done.repeated
        assert len(await values(driver, "table")) == 101

        await driver.staged("query", epoch=again.epoch, sequence=1).forget("table")
        assert (await driver.open_series("query")).last_sequence is None


@on_nodes(3)
async def test_a_write_of_one_id_is_done_once_wherever_its_records_go(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("table", partitions=4)
        for partition in (1, 0, 2, 1):
            write = client.staged("nightly", epoch=0, sequence=0)
            async with write.stage(f"run-{partition}") as stage:
                await stage.publish("table", f"into {partition}", partition=partition)
            done = await write.commit([stage.ticket])
            assert done.repeated == (partition != 1 or stage.ticket.is_committed)
        assert await values(client, "table") == [b"into 1"]


@on_nodes(3)
async def test_numbers_of_ones_own_are_stored_once_across_clients(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses, producer="importer") as first:
        await first.create_topic("lines", partitions=3)
        assert await first.last_sequences("lines") == {0: None, 1: None, 2: None}
        for number in range(9):
            receipt = await first.publish_once("lines", f"line {number}", sequence=number)
            assert not receipt.ack.duplicate
            assert receipt.partition == number % 3
        receipt = await first.publish_once("lines", b"line 9", sequence=9)
        again = await first.publish_once("lines", b"line 9", sequence=9)
        assert again.ack.duplicate
        assert again.offset == receipt.offset
        async with Client(*broker.addresses, producer="importer") as second:
            assert await second.last_sequences("lines") == {0: 9, 1: 7, 2: 8}
            with pytest.raises(ProducerFenced):
                await first.publish_once("lines", b"line 10", sequence=10)
            for number in range(5, 15):
                receipt = await second.publish_once("lines", f"line {number}", sequence=number)
                assert receipt.ack.duplicate == (number < 10)
            acks = await second.publish_batch_once(
                "lines", [b"many", b"at once"], keys=[b"a", b"b"], sequence=20
            )
            assert all(ack.base_offset is not None for ack in acks)
            assert await second.last_sequences("lines") == await second.last_sequences("lines")
            found = sorted(filter(None, await values(second, "lines")))
        assert found == sorted([b"many", b"at once", *(f"line {n}".encode() for n in range(15))])


@on_nodes(1)
async def test_a_producer_that_is_forgotten_begins_anew_where_it_is(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses, producer="importer") as client:
        await client.create_topic("lines", partitions=2)
        await client.create_topic("other")
        for topic in ("lines", "other"):
            await client.publish_once(topic, b"line", sequence=4)
        with pytest.raises(InvalidArgument, match="in which topics"):
            await client.forget_producer()
        with pytest.raises(NotFound):
            await client.forget_producer("lines", "nowhere")
        await client.forget_producer("lines")
        assert await client.last_sequences("lines") == {0: None, 1: None}
        assert await client.last_sequences("other") == {0: 4}
        assert not (await client.publish_once("lines", b"line", sequence=4)).ack.duplicate
        assert (await client.publish_once("other", b"line", sequence=4)).ack.duplicate


def test_programs_without_asyncio_have_the_same_words() -> None:
    with BrokerThread() as broker, SyncClient(*broker.addresses, producer="billing") as client:
        client.create_topic("t")
        with client.transaction() as tx:
            tx.publish("t", b"one")
            tx.publish_batch("t", [b"two", b"three"])
        assert tx.committed is not None
        series = client.open_series("query")
        write = client.staged("query", epoch=series.epoch, sequence=0)
        with write.stage("task") as stage:
            stage.publish_batch("t", [b"four"])
        assert not write.commit([stage.ticket]).repeated
        assert not client.publish_once("t", b"five", sequence=7).ack.duplicate
        assert client.last_sequences("t") == {0: 7}
        client.forget_producer("t")
        assert client.last_sequences("t") == {0: None}
        found = [record.value for record in client.read("t")]
        assert found == [b"one", b"two", b"three", b"four", b"five"]


@on_nodes(1)
async def test_a_topic_that_was_made_anew_with_fewer_partitions_is_looked_up_again(
    broker: InProcessBroker,
) -> None:
    async with (
        Client(*broker.addresses, producer="billing") as client,
        Client(*broker.addresses) as operator,
    ):
        keys = [f"customer {number}" for number in range(8)]
        await operator.create_topic("invoices", partitions=4)
        async with client.transaction() as tx:
            for key in keys:
                await tx.publish("invoices", b"before", key=key)
        await operator.delete_topic("invoices")
        await operator.create_topic("invoices", partitions=1)

        async def publish_all() -> None:
            async with client.transaction() as tx:
                for key in keys:
                    await tx.publish("invoices", b"after", key=key)

        with suppress(NotFound):  # dealt by what was known of the old one
            await publish_all()
        await publish_all()
        assert await values(operator, "invoices") == [b"after"] * len(keys)


@on_nodes(1)
async def test_numbered_records_find_a_topic_that_was_made_anew_with_fewer_partitions(
    broker: InProcessBroker,
) -> None:
    async with (
        Client(*broker.addresses, producer="billing") as client,
        Client(*broker.addresses) as operator,
    ):
        await operator.create_topic("invoices", partitions=4)
        await client.publish_once("invoices", b"before", sequence=3)
        await operator.delete_topic("invoices")
        await operator.create_topic("invoices", partitions=1)
        with suppress(NotFound):
            await client.publish_once("invoices", b"after", sequence=7)
        await client.publish_once("invoices", b"after", sequence=7)
        assert await values(operator, "invoices") == [b"after"]
