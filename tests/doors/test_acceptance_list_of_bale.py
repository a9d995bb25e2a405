"""The list that the brokers of the bale family shared as their acceptance test, line by line.

Their tests call a module inside the process; these speak to the listener of a three-node cluster
with the client that protoc makes of the schema.
"""

from __future__ import annotations

import asyncio
import random
import string
from typing import TYPE_CHECKING

import grpc
import pytest
from tests.doors.cluster_of_doors import run
from tests.doors.compat.bale_client import Bale, refusal
from tests.doors.compat.profiles_on import profiles_on

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.doors.compat.profiles_on import Profiles


def named(length: int = 12) -> str:
    """Return a subject's name that no other test has."""
    return "".join(random.choices(string.ascii_letters, k=length))


@pytest.fixture
def bale(profiles: Profiles) -> str:
    return profiles.listeners[1].bale


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where a broker was that took a message, and was then closed."""
    folder: Path = tmp_path_factory.mktemp("closed")
    with profiles_on(folder, nodes=1) as one:
        address = one.listeners[0].bale

        async def story() -> grpc.StatusCode:
            async with Bale(address) as client:
                await client.publish("ali", b"before")
                subscriber = await client.subscribe("ali")
                await asyncio.to_thread(one.cluster.stop)
                return await subscriber.code()

        # One that was there when it closed hears the same as those who come later.
        assert run(story()) is grpc.StatusCode.UNAVAILABLE
        yield address


def test_publish_fails_as_unavailable_once_closed(closed: str) -> None:
    async def story() -> None:
        async with Bale(closed) as client:
            code, _ = await refusal(client.publish("ali", b"x"))
            assert code is grpc.StatusCode.UNAVAILABLE

    run(story())


def test_subscribe_fails_as_unavailable_once_closed(closed: str) -> None:
    async def story() -> None:
        async with Bale(closed) as client:
            code, _ = await refusal(client.subscribe("ali"))
            assert code is grpc.StatusCode.UNAVAILABLE

    run(story())


def test_fetch_fails_as_unavailable_once_closed(closed: str) -> None:
    async def story() -> None:
        async with Bale(closed) as client:
            code, _ = await refusal(client.fetch("ali", 0))
            assert code is grpc.StatusCode.UNAVAILABLE

    run(story())


def test_one_subscriber_receives(bale: str) -> None:
    async def story() -> None:
        subject = named()
        async with Bale(bale) as client:
            subscriber = await client.subscribe(subject)
            await client.publish(subject, b"\x00\xffhello")
            assert await subscriber.next() == b"\x00\xffhello"

    run(story())


def test_all_subscribers_receive(profiles: Profiles) -> None:
    async def story() -> None:
        subject = named()
        clients = [Bale(one.bale) for one in profiles.listeners]
        subscribers = [await client.subscribe(subject) for client in clients]
        await clients[0].publish(subject, b"to all")
        assert [await one.next() for one in subscribers] == [b"to all"] * 3
        for client in clients:
            await client.channel.close()

    run(story())


def test_order_is_kept(bale: str) -> None:
    async def story() -> None:
        subject = named()
        async with Bale(bale) as client:
            subscriber = await client.subscribe(subject)
            sent = [b"%d" % number for number in range(50)]
            ids = [await client.publish(subject, body) for body in sent]
            assert [await subscriber.next() for _ in sent] == sent
            assert ids == list(range(50))

    run(story())


def test_subjects_are_isolated(bale: str) -> None:
    async def story() -> None:
        ali, maryam = named(), named()
        async with Bale(bale) as client:
            for_ali, for_maryam = await client.subscribe(ali), await client.subscribe(maryam)
            await client.publish(ali, b"for ali")
            assert await for_ali.next() == b"for ali"
            # Had it gone to maryam as well, it would come before this one.
            await client.publish(maryam, b"for maryam")
            assert await for_maryam.next() == b"for maryam"

    run(story())


def test_a_message_that_has_not_expired_is_fetchable(bale: str) -> None:
    async def story() -> None:
        subject = named()
        async with Bale(bale) as client:
            for_ever = await client.publish(subject, b"for ever")
            for_a_while = await client.publish(subject, b"for a while", 600)
            assert await client.fetch(subject, for_ever) == b"for ever"
            assert await client.fetch(subject, for_a_while) == b"for a while"

    run(story())


def test_an_expired_message_is_refused_with_an_empty_message(bale: str) -> None:
    """A second is the shortest that the call can say; the refusal carries no message at all."""

    async def story() -> None:
        subject = named()
        async with Bale(bale) as client:
            number = await client.publish(subject, b"soon gone", 1)
            refused: grpc.aio.AioRpcError | None = None
            async with asyncio.timeout(60):
                while refused is None:
                    try:
                        assert await client.fetch(subject, number) == b"soon gone"
                    except grpc.aio.AioRpcError as error:
                        refused = error
                    await asyncio.sleep(0.05)
            assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "has expired" in (refused.details() or "")

    run(story())


def test_a_new_subscription_sees_no_earlier_message(bale: str) -> None:
    async def story() -> None:
        subject = named()
        async with Bale(bale) as client:
            await client.publish(subject, b"earlier")
            subscriber = await client.subscribe(subject)
            await client.publish(subject, b"later")
            assert await subscriber.next() == b"later"

    run(story())


def test_concurrent_publishes_on_one_subject_do_not_fail(bale: str) -> None:
    async def story() -> None:
        subject = named()
        async with Bale(bale) as client:
            numbers = await asyncio.gather(*(client.publish(subject, b"x") for _ in range(300)))
            assert sorted(numbers) == list(range(300))

    run(story())


def test_concurrent_publishes_on_many_subjects_do_not_fail(bale: str) -> None:
    async def story() -> None:
        subjects = [named() for _ in range(8)]
        async with Bale(bale) as client:
            found = await asyncio.gather(
                *(client.publish(subject, b"x") for subject in subjects for _ in range(10))
            )
            assert sorted(found) == sorted(list(range(10)) * 8)

    run(story())


def test_concurrent_subscribes_on_one_subject_do_not_fail(bale: str) -> None:
    async def story() -> None:
        subject = named()
        async with Bale(bale) as client:
            subscribers = await asyncio.gather(*(client.subscribe(subject) for _ in range(100)))
            await client.publish(subject, b"x")
            assert await asyncio.gather(*(one.next() for one in subscribers)) == [b"x"] * 100

    run(story())


def test_concurrent_subscribes_on_many_subjects_do_not_fail(bale: str) -> None:
    async def story() -> None:
        subjects = [named() for _ in range(8)]
        async with Bale(bale) as client:
            subscribers = await asyncio.gather(*(client.subscribe(one) for one in subjects * 5))
            assert len(subscribers) == 40

    run(story())


def test_publishing_subscribing_and_fetching_at_once_race_with_nobody(bale: str) -> None:
    async def story() -> None:
        subject = named()
        numbers: asyncio.Queue[int] = asyncio.Queue()
        async with Bale(bale) as client:

            async def publish() -> None:
                for number in range(100):
                    await numbers.put(await client.publish(subject, b"%d" % number, 60))

            async def subscribe() -> None:
                for _ in range(30):
                    (await client.subscribe(subject)).cancel()

            async def fetch() -> None:
                for _ in range(100):
                    number = await numbers.get()
                    assert await client.fetch(subject, number) == b"%d" % number

            await asyncio.gather(publish(), subscribe(), fetch())

    run(story())
