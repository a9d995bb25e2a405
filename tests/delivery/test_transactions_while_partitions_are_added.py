"""Transactions that are under way while their topic is given partitions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.delivery.on_nodes import on_nodes

from angarium import Client
from angarium.batch import BatchBuilder
from angarium.errors import TransactionAborted

if TYPE_CHECKING:
    from angarium.testing.broker import InProcessBroker

KEY = b"k"


def _batch(value: bytes) -> bytearray:
    builder = BatchBuilder(bytes_max=1 << 20)
    builder.add(value, key=KEY)
    return builder.build()


async def _publish(client: Client, value: bytes) -> None:
    async with client.transaction("job") as transaction:
        await transaction.publish("t", value, key=KEY)


@on_nodes(3)
async def test_one_that_has_begun_ends_by_the_layout_that_it_began_with(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("t", partitions=2)
        left = client.staged("job", epoch=0, sequence=0)
        async with left.stage("of a run that ended") as lost:
            await lost.put_batch("t", 0, _batch(b"lost"), layout=0)
        # Answered although it is not in force: something is staged.
        await client.alter_topic("t", partitions=4)
        info = await client.describe_topic("t")
        assert (info.layouts, info.layout) == ((2, 4), 0)

        # The next run of the same owner goes on by the old layout, also where nothing is staged.
        write = client.staged("job", epoch=1, sequence=0)
        tickets = []
        for partition in (1, 0):
            async with write.stage(f"task {partition}") as stage:
                await stage.put_batch("t", partition, _batch(b"%d" % partition), layout=0)
            tickets.append(stage.ticket)
        # One that has not begun waits, and is told in the end that it has to deal anew.
        late = client.staged("other", epoch=0, sequence=0).stage("late")
        await late.put_batch("t", 0, _batch(b"late"), layout=0)
        closing = asyncio.create_task(late.close())
        assert not (await asyncio.wait((closing,), timeout=0.3))[0]

        assert not (await write.commit(tickets)).repeated
        with pytest.raises(TransactionAborted):
            await closing
        assert late.is_empty
        assert late.outdated == {"t": 0}
        async with asyncio.timeout(10):
            while (await client.describe_topic("t")).layout == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        found = [await client.fetch("t", partition, 0) for partition in (0, 1)]
        assert [[record.value for record in some] for some in found] == [[b"0"], [b"1"]]


@on_nodes(3)
async def test_a_run_that_is_begun_anew_ends_what_it_has_left_in_the_way_of_an_addition(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("t", partitions=2)
        epoch = (await client.open_series("job")).epoch
        # Behind a number that was given up, so the next run does not come by it.
        await client.staged("job", epoch=epoch, sequence=0).abort()
        async with client.staged("job", epoch=epoch, sequence=1).stage("left") as left:
            await left.put_batch("t", 0, _batch(b"left"), layout=0)
        await client.alter_topic("t", partitions=4)
        assert (await client.describe_topic("t")).layout == 0

        async with asyncio.timeout(20):
            # It waits for the addition, and may have dealt its keys before that.
            with suppress(TransactionAborted):
                await _publish(client, b"again")
            while (await client.describe_topic("t")).layout == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await _publish(client, b"and again")
        assert b"left" not in [record.value async for record in client.read("t")]
