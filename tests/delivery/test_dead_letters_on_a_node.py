"""Dead letters where a node deals with them itself: for its HTTP door, without a client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.component.doors.http.opened_http import LOCALHOST, Answered, Wire, request_bytes
from tests.delivery.on_nodes import on_nodes
from tests.delivery.test_dead_letters_sent_back import DLQ, give_up, open_letters, orders

from angarium import Client
from angarium.api.dead_letters import LetterFilter
from angarium.doors.http import HttpDoor

if TYPE_CHECKING:
    from angarium.api.dead_letters import LettersOfTopic
    from angarium.service.broker import Service
    from angarium.testing.broker import InProcessBroker


def service(broker: InProcessBroker, at: int) -> Service:
    found = broker.services[at]
    assert found is not None
    return found


async def listed(letters: LettersOfTopic, wanted: LetterFilter | None = None) -> list[int]:
    return [letter.offset async for letter in letters.list(wanted)]


@on_nodes(3)
async def test_every_node_deals_with_letters_and_each_goes_back_once(
    broker: InProcessBroker,
) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("orders")
        for number in range(6):
            await give_up(client, number)
        first, second, third = (service(broker, at).dead_letters(DLQ) for at in range(3))
        for letters in (first, second, third):
            assert await listed(letters) == [0, 1, 2, 3, 4, 5]
        chosen = LetterFilter(places=frozenset({(0, 1), (0, 3)}))
        assert (await first.redrive(chosen, dry_run=True)).letters == 2
        assert (await first.redrive(chosen)).letters == 2
        assert (await second.redrive(chosen)).letters == 0
        assert (await second.purge(LetterFilter(reason="FAILED 0"))).letters == 1
        assert await listed(third) == await open_letters(client) == [2, 4, 5]
        assert (await third.redrive(LetterFilter(until=4_000_001))).letters == 1
        assert (await client.dead_letters(DLQ).redrive()).letters == 2
        assert await listed(first) == []
        assert await orders(client) == [b"order 1", b"order 3", b"order 2", b"order 4", b"order 5"]
        (record, *_) = await client.fetch("orders")
        assert (record.key, record.headers) == (b"key 1", (("own", b"header"),))


@on_nodes(1)
async def test_two_at_one_node_do_not_fence_each_other(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        await client.create_topic("orders")
        for number in range(20):
            await give_up(client, number)
        await give_up(client, 20, topic="gone")
        letters = service(broker, 0).dead_letters(DLQ)
        both = await asyncio.gather(letters.redrive(), letters.redrive())
        assert sum(one.letters for one in both) == 20
        assert both[0].skipped == (((0, 20), "gone[0] is gone"),)
        assert len(await orders(client)) == 20


@on_nodes(1)
async def test_letters_over_http(broker: InProcessBroker) -> None:
    behind = service(broker, 0)
    door = HttpDoor(behind, host=LOCALHOST, port=0, letters=behind.dead_letters)
    port = await door.start()

    async def ask(method: str, target: str, body: object = None) -> Any:
        wire = Wire(*await asyncio.open_connection(LOCALHOST, port))
        await wire.say(request_bytes(method, target, body))
        answer: Answered = await wire.hear()
        wire.writer.close()
        assert answer.status == 200
        return answer.json

    async with Client(*broker.addresses) as client:
        await client.create_topic("orders")
        for number in range(3):
            await give_up(client, number)
        target = f"/v1/dead-letters?dead_letter_topic={DLQ}"
        found = (await ask("GET", f"{target}&reason=1"))["letters"]
        assert [(one["partition"], one["offset"], one["from_offset"]) for one in found] == [
            (0, 1, 1)
        ]
        assert found[0]["record"]["value"] == "order 1"
        assert found[0]["record"]["headers"] == [{"name": "own", "value": "header"}]
        wish = {"dead_letter_topic": DLQ, "places": [[0, 1]]}
        done = {"letters": 1, "skipped": []}
        assert await ask("POST", "/v1/dead-letters/redrive", {**wish, "dry_run": True}) == done
        assert await ask("POST", "/v1/dead-letters/redrive", wish) == done
        assert await orders(client) == [b"order 1"]
        purged = await ask("POST", "/v1/dead-letters/purge", {"dead_letter_topic": DLQ})
        assert purged["letters"] == 2
        assert (await ask("GET", target))["letters"] == []
    await door.stop(grace_s=0)
