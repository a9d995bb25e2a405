"""What a client of hermes does, unchanged: run with the address of its gRPC listener."""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import sys
import time

import grpc
import hermes_pb2 as pb
from hermes_pb2_grpc import BrokerServiceStub


class Subscriber:
    """A subscription with its own words."""

    def __init__(self, stub: BrokerServiceStub) -> None:
        self.call = stub.Subscribe()

    async def begin(self, topic: str, group: str = "") -> None:
        await self.call.write(pb.SubscribeRequest(topic=topic, action="SUBSCRIBE", group_id=group))

    async def next(self, within_s: float = 60.0) -> pb.Message:
        message = await asyncio.wait_for(self.call.read(), within_s)
        assert message is not grpc.aio.EOF
        return message

    async def ack(self, message: pb.Message) -> None:
        await self.call.write(pb.SubscribeRequest(action="ACK", ack_message_id=message.id))

    async def end(self) -> None:
        await self.call.done_writing()
        while await asyncio.wait_for(self.call.read(), 60) is not grpc.aio.EOF:
            pass


async def code_of(call) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    raise AssertionError("it was not refused")


async def until_heard(live: Subscriber, stub, topic: str) -> None:
    """Knock until the subscriber hears it: nodes hear of a subscription in their own time."""
    hearing = asyncio.ensure_future(live.next())
    knock = pb.PublishRequest(topic=topic, payload=KNOCK, mode=pb.PERFORMANCE)
    while not hearing.done():
        assert (await stub.Publish(knock)).success
        await asyncio.wait((hearing,), timeout=0.1)
    assert hearing.result().payload == KNOCK


async def every_mode(stub) -> None:
    live = Subscriber(stub)
    await live.begin("modes")
    await until_heard(live, stub, "modes")
    for mode in (pb.CONSISTENT, pb.EVENTUAL, pb.PERFORMANCE):
        payload = bytes([mode, 255])
        answer = await stub.Publish(pb.PublishRequest(topic="modes", payload=payload, mode=mode))
        assert answer.success
        while (message := await live.next()).payload == KNOCK:
            pass
        assert (message.topic, message.payload) == ("modes", payload)
        assert abs(message.timestamp / 1e9 - time.time()) < 60
    await live.end()


async def performance_for_everybody(stub) -> None:
    """Whoever is there gets it, members of groups included, each message under an id of its own."""
    subscribers = [Subscriber(stub) for _ in range(3)]
    for one, group in zip(subscribers, ("", "__REPLAY__", "porters"), strict=True):
        await one.begin("passing", group)
        await one.call.initial_metadata()
    seen = {one: [] for one in subscribers}

    async def listen(one: Subscriber) -> None:
        while True:
            seen[one].append(await one.next())

    tasks = [asyncio.create_task(listen(one)) for one in subscribers]
    request = pb.PublishRequest(topic="passing", payload=b"hello", mode=pb.PERFORMANCE)
    # Other nodes hear of a subscription in a moment, and what passes before that is missed.
    while any(len(messages) < 3 for messages in seen.values()):
        await stub.Publish(request)
        await asyncio.sleep(0.05)
    for one, messages in seen.items():
        assert len({message.id for message in messages}) == len(messages)
        assert all(abs(message.timestamp / 1e9 - time.time()) < 60 for message in messages)
        await one.ack(messages[0])  # there is nothing to acknowledge, and nothing wrong with it
        count = len(messages)
        while len(messages) == count:
            await stub.Publish(request)
            await asyncio.sleep(0.05)
    for one, task in zip(subscribers, tasks, strict=True):
        task.cancel()
        one.call.cancel()


async def odd_acknowledgements(stub) -> None:
    """An id that nothing on loan has is no matter: the stream goes on."""
    await stub.Publish(pb.PublishRequest(topic="odd", payload=b"first"))
    one = Subscriber(stub)
    await one.begin("odd", "odd-ones")
    first = await one.next()
    for word in ("", "nonsense", "dlq-odd/0/0", "odd/0/" + "9" * 30, "odd/" + "9" * 30 + "/0"):
        await one.call.write(pb.SubscribeRequest(action="ACK", ack_message_id=word))
    for word in ("odd/7/0", "odd/0/99", "elsewhere/0/0", f"odd/0/{2**63 - 1}", "odd/0/live"):
        await one.call.write(pb.SubscribeRequest(action="ACK", ack_message_id=word))
    await one.call.write(pb.SubscribeRequest(action="WAVE"))
    for _ in range(2):
        await one.ack(first)
    await stub.Publish(pb.PublishRequest(topic="odd", payload=b"second"))
    second = await one.next()
    assert second.payload == b"second"
    await one.ack(second)
    await one.end()


async def many_at_once(stub) -> None:
    async def requests():
        for number in range(500):
            yield pb.PublishRequest(topic="many", payload=b"%d" % number, mode=pb.EVENTUAL)

    summary = await stub.PublishStream(requests())
    assert (summary.processed_count, summary.failed_count) == (500, 0)
    payloads = [b"%d" % number for number in range(500, 600)]
    assert (
        await stub.PublishBatch(pb.PublishBatchRequest(topic="many", payloads=payloads))
    ).success
    replay = Subscriber(stub)
    await replay.begin("many", "__REPLAY__")
    seen = [int((await replay.next()).payload) for _ in range(600)]
    assert seen == list(range(600))
    await replay.end()


async def groups(stub) -> None:
    from angarium.client import Client

    for number in range(10):
        await stub.Publish(pb.PublishRequest(topic="work", payload=b"%d" % number))
    first = Subscriber(stub)
    await first.begin("work", "workers")
    for number in range(6):
        message = await first.next()
        assert message.payload == b"%d" % number
        await first.ack(message)
    async with Client(MEMBER) as client:
        while (await client.group("workers").describe()).lag != 4:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await first.end()
    second = Subscriber(stub)
    await second.begin("work", "workers")
    seen = sorted([int((await second.next()).payload) for _ in range(4)])
    assert seen == [6, 7, 8, 9], seen
    await second.end()


async def giving_up(stub) -> None:
    """What nobody acknowledges becomes a dead letter, in the topic of that name."""
    from angarium.api import GroupConfig
    from angarium.client import Client

    await stub.Publish(pb.PublishRequest(topic="heavy", payload=b"too heavy"))
    one = Subscriber(stub)
    await one.begin("heavy", "weak")
    assert (await one.next()).payload == b"too heavy"
    # Thirty seconds for each of five attempts are too long for a test.
    config = GroupConfig(
        ack_timeout_ms=300, max_attempts=2, backoff_min_ms=10, dead_letter_topic="hermes.dlq"
    )
    async with Client(MEMBER) as client:
        assert (await client.group("weak").describe()).config.dead_letter_topic == "hermes.dlq"
        await client.group("weak").alter(config)
    await one.end()
    again = Subscriber(stub)
    await again.begin("heavy", "weak")
    await again.next()
    letters = Subscriber(stub)
    await letters.begin("hermes.dlq", "__REPLAY__")
    assert (await letters.next()).payload == b"too heavy"
    again.call.cancel()
    await letters.end()


async def refusals(stub) -> None:
    nameless = Subscriber(stub)
    await nameless.call.write(pb.SubscribeRequest(action="ACK"))
    assert await code_of(nameless.call.read()) is grpc.StatusCode.INVALID_ARGUMENT
    empty = stub.Publish(pb.PublishRequest(payload=b"x"))
    assert await code_of(empty) is grpc.StatusCode.INVALID_ARGUMENT
    garbage = channel_of(stub).unary_unary("/broker.BrokerService/Publish")
    assert await code_of(garbage(b"\xff\xff")) is grpc.StatusCode.INVALID_ARGUMENT


def channel_of(stub) -> grpc.aio.Channel:
    return CHANNELS[stub]


async def joining(stub) -> None:
    stranger = pb.JoinRequest(node_id="evil", raft_addr="x:1")
    assert await code_of(stub.Join(stranger)) is grpc.StatusCode.PERMISSION_DENIED
    guess = (("authorization", "bearer guess"),)
    refused = stub.Join(stranger, metadata=guess)
    assert await code_of(refused) is grpc.StatusCode.PERMISSION_DENIED
    proof = (("authorization", f"bearer {TOKEN}"),)
    member = pb.JoinRequest(node_id="1", raft_addr=MEMBER)
    answer = await stub.Join(member, metadata=proof)
    assert (answer.success, answer.error) == (True, "")
    answer = await stub.Join(stranger, metadata=proof)
    assert not answer.success
    assert "angarium serve --join" in answer.error


async def reflected(stub) -> None:
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    async def wishes():
        yield reflection_pb2.ServerReflectionRequest(list_services="")

    asked = reflection_pb2_grpc.ServerReflectionStub(channel_of(stub))
    async for answer in asked.ServerReflectionInfo(wishes()):
        names = {one.name for one in answer.list_services_response.service}
        assert "broker.BrokerService" in names


async def hints(stubs) -> None:
    """Followers answer too, and name the leader's listener of this profile; the leader does not."""
    first = pb.PublishRequest(topic="hinted", payload=b"x")
    await stubs[0].Publish(first)
    # A partition may get another leader soon after its topic was made: then they are asked again.
    while (told := await named_by(stubs, first)).count(None) != 1 or len(set(told)) != 2:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    leader = ADDRESSES[told.index(None)]
    assert [one for one in told if one is not None] == [leader, leader], told


async def named_by(stubs, request) -> list[str | None]:
    """Return whom each node names as the leader."""
    told = []
    for stub in stubs:
        call = stub.Publish(request)
        assert (await call).success
        headers = dict(await call.initial_metadata())
        trailers = dict(await call.trailing_metadata())
        assert headers.get("x-leader-hint") == trailers.get("x-leader-hint")
        told.append(headers.get("x-leader-hint"))
    return told


async def main() -> None:
    stubs = []
    for address in ADDRESSES:
        channel = grpc.aio.insecure_channel(address)
        stub = BrokerServiceStub(channel)
        CHANNELS[stub] = channel
        stubs.append(stub)
    for story in (
        every_mode,
        performance_for_everybody,
        many_at_once,
        groups,
        odd_acknowledgements,
        giving_up,
        refusals,
        joining,
        reflected,
    ):
        await asyncio.wait_for(story(stubs[0]), 90)
        print(story.__name__, "ok")
    await asyncio.wait_for(hints(stubs), 90)
    for channel in CHANNELS.values():
        await channel.close()


CHANNELS = {}
KNOCK = b"is anybody there?"
ADDRESSES, TOKEN, MEMBER = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
asyncio.run(main())
