"""`trial`: handlers without a cluster."""

from __future__ import annotations

import asyncio

import pytest

from angarium import App, Client, GroupRecord, Retry
from angarium.api import Verb
from angarium.errors import NotFound
from angarium.testing.trial import trial

app = App("127.0.0.1:1")
heard: list[str] = []


@app.subscriber("t", group="one", publish_to="answers")
async def answer(words: str, record: GroupRecord, client: Client) -> str | None:
    if words == "later":
        raise Retry("not now", delay=2)
    if words == "mine":
        await record.release()
        await client.publish("elsewhere", b"!")
        return None
    return f"{words} {record.attempt}"


@app.subscriber("t", group="two")
def listen(words: bytes, record: GroupRecord) -> None:
    assert record.headers == (("h", b"1"),)
    heard.append(words.decode())


def test_every_handler_of_a_topic_has_its_outcome() -> None:
    async def story() -> None:
        async with trial(app) as tried:
            first, second = await tried.publish("t", "hello", headers={"h": "1"}, attempt=3)
            assert (first.is_acked, first.published) == (True, [("answers", "hello 3")])
            assert (second.handler, second.is_acked) == ("listen", True)
            assert heard == ["hello"]

            first, second = await tried.publish("t", b"later")
            assert (first.verb, first.reason, first.delay_ms) == (Verb.NACK, "not now", 2_000)
            assert second.reason.startswith("AssertionError")

            first, _ = await tried.publish("t", "mine")
            assert (first.verb, first.published) == (Verb.RELEASE, [("elsewhere", b"!")])

            with pytest.raises(NotFound):
                await tried.publish("nowhere", b"")

    asyncio.run(story())
