"""Quotas at the gRPC door: calls wait and are refused, streams take places."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
from tests.component.doors.counted import CountedPrincipal
from tests.component.doors.grpc.opened import refusal, refused
from tests.component.doors.grpc.test_who_calls import LIST, RECORD, Guarded, basic, guarded
from tests.on_a_loop import eventually, run

from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ALICE = basic("alice", "right")
BOB = basic("bob", "b")


def count(it: Guarded, **limits: int) -> CountedPrincipal:
    counted = CountedPrincipal(**limits)
    it.brokers["alice"].counted = counted  # type: ignore[attr-defined]
    return counted


def test_calls_wait_first_and_are_refused_then_and_nobody_elses() -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, requests=5)
            await it.stub.ListTopics(LIST, metadata=ALICE)
            loop = asyncio.get_running_loop()
            began = loop.time()
            calls = [it.stub.Publish(RECORD, metadata=ALICE) for _ in range(30)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            took_s = loop.time() - began
            errors = [one for one in outcomes if isinstance(one, grpc.aio.AioRpcError)]
            assert 0 < len(errors) < 30
            assert 30 - len(errors) <= 5 + 5 * (took_s + 1) + 2
            assert took_s >= 0.8
            told = refused(errors[0])
            assert told.status is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (told.code, told.metadata["limit"]) == ("QUOTA_EXCEEDED", "requests")
            assert told.retry_after_s is not None
            assert told.retry_after_s > 1.0
            for _ in range(20):
                await it.stub.ListTopics(LIST, metadata=BOB)
            counted.limit()
            await it.stub.ListTopics(LIST, metadata=ALICE)

    run(check())


def test_streams_take_places_and_what_is_said_on_them_is_counted() -> None:
    async def asked() -> AsyncIterator[pb.PublishStreamRequest]:
        for number in range(10):
            yield pb.PublishStreamRequest(number=number, publish=RECORD)
        await asyncio.sleep(0)

    async def check() -> None:
        async with guarded() as it:
            counted = count(it, connections=1, requests=4)
            loop = asyncio.get_running_loop()
            began = loop.time()
            call = it.stub.PublishStream(asked(), metadata=ALICE)
            results = [one async for answer in call for one in answer.results]
            assert sorted(one.number for one in results) == list(range(10))
            assert not any(one.HasField("error") for one in results)
            assert loop.time() - began >= 0.8, "it was read no faster than the quota allows"
            await eventually(lambda: counted.open == 0)
            counted.limit(connections=1)
            opening = pb.SubscribeRequest(
                open=pb.SubscribeRequest.Open(interests=[pb.Interest(topic="orders")])
            )

            async def wanting() -> AsyncIterator[pb.SubscribeRequest]:
                yield opening
                await asyncio.Event().wait()

            subscribed = it.stub.Subscribe(wanting(), metadata=ALICE)
            await subscribed.initial_metadata()
            await eventually(lambda: counted.open == 1)
            # It says nothing: a client that is still writing may call the refusal INTERNAL.
            second = it.stub.Subscribe(metadata=ALICE)
            told = await refusal(second.read())
            assert (told.code, told.metadata["limit"]) == ("QUOTA_EXCEEDED", "connections")
            subscribed.cancel()
            await eventually(lambda: counted.open == 0)

    run(check())
