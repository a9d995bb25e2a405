"""Dead letters from the client and the command line, against a node in this process.

The letters are written here as a leader writes them; who gives records up is tested elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from tests.delivery.on_nodes import on_nodes

from angarium import Client, SyncClient
from angarium.cli.main import main
from angarium.client.dead_letters import LetterFilter
from angarium.errors import InvalidArgument
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from angarium.testing.broker import InProcessBroker

DLQ = "letters"


async def give_up(
    client: Client, number: int, *, topic: str = "orders", group: str = "workers", reason: str = ""
) -> None:
    told = {
        "topic": topic,
        "partition": "0",
        "offset": str(number),
        "group": group,
        "attempts": "5",
        "reason": reason or f"failed {number}",
        "first-at": str(1_000_000 * number),
        "last-at": str(1_000_000 * number + 1),
    }
    headers = {f"angarium-dlq-{name}": value for name, value in told.items()}
    await client.publish(
        DLQ, f"order {number}", key=f"key {number}", headers={**headers, "own": "header"}
    )


async def open_letters(client: Client, wanted: LetterFilter | None = None) -> list[int]:
    return [letter.offset async for letter in client.dead_letters(DLQ).list(wanted)]


async def orders(client: Client) -> list[bytes | None]:
    return [record.value async for record in client.read("orders")]


@on_nodes(1)
async def test_a_letter_goes_back_once_and_is_listed_no_more(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("orders")
        for number in range(5):
            await give_up(client, number)
        letters = client.dead_letters(DLQ)
        assert await open_letters(client) == [0, 1, 2, 3, 4]
        one = await letters.show(0, 3)
        assert (one.topic, one.group, one.attempts, one.reason) == (
            "orders",
            "workers",
            5,
            "failed 3",
        )
        chosen = LetterFilter(places=frozenset({(0, 1), (0, 3)}))
        assert (await letters.redrive(chosen, dry_run=True)).letters == 2
        assert await open_letters(client) == [0, 1, 2, 3, 4]
        assert (await letters.redrive(chosen)).letters == 2
        assert (await letters.redrive(chosen)).letters == 0
        assert await open_letters(client) == [0, 2, 4]
        assert not await letters.is_open(0, 3)
        assert await letters.is_open(0, 4)
        assert await orders(client) == [b"order 1", b"order 3"]
        (record, *_) = await client.fetch("orders")
        assert record.key == b"key 1"
        assert record.headers == (("own", b"header"),)

        assert (await letters.purge(LetterFilter(reason="FAILED 0"))).letters == 1
        assert (await letters.redrive()).letters == 2
        assert await open_letters(client) == []
        assert await orders(client) == [b"order 1", b"order 3", b"order 2", b"order 4"]


@on_nodes(1)
async def test_filters_fit_and_what_cannot_go_back_is_skipped(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("orders")
        await give_up(client, 0)
        await give_up(client, 1, topic="gone")
        await give_up(client, 2, group="mailers", reason="no such address")
        await client.publish(DLQ, b"no letter")
        letters = client.dead_letters(DLQ)
        with pytest.raises(InvalidArgument, match="not a dead letter"):
            await letters.show(0, 3)
        assert await open_letters(client, LetterFilter(group="mail*")) == [2]
        assert await open_letters(client, LetterFilter(topic="gone", reason="fail")) == [1]
        assert await open_letters(client, LetterFilter(since=2_000_000)) == [2]
        assert await open_letters(client, LetterFilter(until=2_000_000)) == [0, 1]
        dealt = await letters.redrive()
        assert dealt.letters == 2
        assert [place for place, _ in dealt.skipped] == [(0, 1)]
        assert await open_letters(client) == [1]


@on_nodes(1)
async def test_two_who_send_the_same_letters_back_send_each_once(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as one, Client(*broker.addresses) as other:
        await one.create_topic("orders")
        for number in range(20):
            await give_up(one, number)
        await asyncio.gather(
            one.dead_letters(DLQ).redrive(),
            other.dead_letters(DLQ).redrive(),
            return_exceptions=True,  # whoever came second may have fenced the first
        )
        await one.dead_letters(DLQ).redrive()
        assert sorted(filter(None, await orders(one))) == sorted(
            f"order {number}".encode() for number in range(20)
        )


@on_nodes(1)
async def test_without_a_dead_letter_topic_there_are_no_letters(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        assert [letter async for letter in client.dead_letters().list()] == []


def test_the_command_line_lists_shows_and_sends_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said(*arguments: str) -> str:
        assert main(["--servers", ",".join(broker.addresses), "dlq", *arguments]) == 0
        return capsys.readouterr().out

    async def prepare() -> None:
        async with Client(*broker.addresses) as client:
            await client.create_topic("orders")
            for number in range(3):
                await give_up(client, number)

    with BrokerThread() as broker:
        asyncio.run(prepare())
        assert "orders/0@1" in said("list", "--topic", DLQ)
        assert "failed 1" in said("show", "0@1", "--topic", DLQ)
        assert said("redrive", "--all", "--dry-run", "--topic", DLQ) == "3 would be sent back\n"
        assert said("redrive", "1", "--topic", DLQ) == "1 sent back\n"
        assert main(["--servers", *broker.addresses, "dlq", "redrive", "1", "--topic", DLQ]) == 0
        again = capsys.readouterr()
        assert again.out == "0 sent back\n"
        assert "1 of those named was dealt with before" in again.err
        listed = json.loads(said("list", "--topic", DLQ, "--format", "json"))
        assert [one["letter"] for one in listed] == ["0@0", "0@2"]
        assert said("purge", "--reason", "failed 0", "--yes", "--topic", DLQ) == "1 purged\n"
        assert said("redrive", "--group", "work*", "--topic", DLQ) == "1 sent back\n"
        assert "no dead letters" in said("list", "--topic", DLQ)
        assert main(["--servers", broker.addresses[0], "dlq", "redrive"]) != 0


def test_programs_without_asyncio_deal_with_letters_too() -> None:
    with BrokerThread() as broker, SyncClient(*broker.addresses) as client:
        client.create_topic("orders")

        async def prepare() -> None:
            async with Client(*broker.addresses) as writer:
                for number in range(4):
                    await give_up(writer, number)

        asyncio.run(prepare())
        letters = client.dead_letters(DLQ)
        assert letters.topic == DLQ
        assert [letter.offset for letter in letters.list()] == [0, 1, 2, 3]
        assert [letter.offset for letter in letters.list(count_max=1)] == [0]
        assert letters.show(0, 2).reason == "failed 2"
        assert letters.redrive(LetterFilter(reason="2"), dry_run=True).letters == 1
        assert letters.redrive(LetterFilter(reason="2")).letters == 1
        assert not letters.is_open(0, 2)
        assert letters.purge(LetterFilter(reason="3")).letters == 1
        assert [letter.offset for letter in letters.list()] == [0, 1]
        assert [record.value for record in client.read("orders")] == [b"order 2"]
