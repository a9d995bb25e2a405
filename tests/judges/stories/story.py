"""What a Python service without asyncio does with the broker; each case is told in a line.

python story.py HOST:PORT TOPIC
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOGETHER = 100
STREAMED = 500
LARGE = 700_000
SOON = 30.0


class Story:
    """The cases, in their order."""

    def __init__(self, channel: grpc.Channel, topic: str) -> None:
        self._channel = channel
        self._topic = topic
        self._broker: Any = BrokerStub(channel)

    def create_topic(self) -> None:
        self._broker.CreateTopic(
            pb.CreateTopicRequest(name=self._topic, partitions=1), timeout=SOON
        )

    def publish(self) -> None:
        self._publish(b"the road is clear")

    def publish_large(self) -> None:
        self._publish(bytes(LARGE))

    def publish_gzip(self) -> None:
        self._publish(b"clear " * 2_000, compression=grpc.Compression.Gzip)

    def publish_together(self) -> None:
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(self._publish, (b"together %d" % one for one in range(TOGETHER))))

    def publish_stream(self) -> None:
        requests = (
            pb.PublishStreamRequest(number=one, publish=self._request(b"streamed %d" % one))
            for one in range(STREAMED)
        )
        answers = self._broker.PublishStream(requests, timeout=SOON)
        numbers = [one.number for answer in answers for one in answer.results]
        assert numbers == list(range(STREAMED)), numbers

    def subscribe_and_cancel(self) -> None:
        answers = self._broker.Subscribe(self._opening(), timeout=SOON)
        next_offset = 0
        while next_offset < 3 + TOGETHER + STREAMED:
            for record in next(answers).records:
                assert record.offset == next_offset, f"{record.offset} instead of {next_offset}"
                next_offset += 1
        answers.cancel()
        _expect(answers, grpc.StatusCode.CANCELLED)
        self._publish(b"after a cancelled call")  # the connection lives on

    def deadline(self) -> None:
        _expect(
            self._broker.Subscribe(self._opening(), timeout=0.3),
            grpc.StatusCode.DEADLINE_EXCEEDED,
        )

    def error_details(self) -> None:
        try:
            self._broker.DescribeTopic(pb.DescribeTopicRequest(name="no-such-topic"), timeout=SOON)
        except grpc.RpcError as error:
            told: Any = error
            assert told.code() is grpc.StatusCode.NOT_FOUND, told
            assert dict(told.trailing_metadata())["x-angarium-code"] == "NOT_FOUND"
            info = error_details_pb2.ErrorInfo()
            status = rpc_status.from_call(told)
            assert status is not None
            assert status.details[0].Unpack(info)
            assert (info.reason, info.domain) == ("NOT_FOUND", "angarium")
        else:
            raise AssertionError("it was answered")

    def unimplemented(self) -> None:
        for method in ("/angarium.v1.Broker/Nothing", "/angarium.v1.Nobody/Publish"):
            call: Any = self._channel.unary_unary(method)
            try:
                call(b"", timeout=SOON)
            except grpc.RpcError as error:
                told: Any = error
                assert told.code() is grpc.StatusCode.UNIMPLEMENTED, told
            else:
                raise AssertionError(f"{method} was answered")

    def health(self) -> None:
        stub: Any = health_pb2_grpc.HealthStub(self._channel)
        asked = health_pb2.HealthCheckRequest(service="angarium.v1.Broker")
        serving = health_pb2.HealthCheckResponse.SERVING
        assert stub.Check(asked, timeout=SOON).status == serving
        watching = stub.Watch(asked, timeout=SOON)
        assert next(watching).status == serving
        watching.cancel()

    def _request(self, value: bytes) -> pb.PublishRequest:
        return pb.PublishRequest(topic=self._topic, record=pb.NewRecord(value=value))

    def _publish(self, value: bytes, **options: Any) -> None:
        answer = self._broker.Publish(self._request(value), timeout=SOON, **options)
        assert answer.ack.HasField("offset"), answer

    def _opening(self) -> Iterator[pb.SubscribeRequest]:
        """Open a subscription, and go on having something to say."""
        interest = pb.Interest(topic=self._topic, start=pb.Start(earliest=pb.Start.Earliest()))
        said: SimpleQueue[pb.SubscribeRequest | None] = SimpleQueue()
        said.put(pb.SubscribeRequest(open=pb.SubscribeRequest.Open(interests=[interest])))
        return iter(said.get, None)  # None never comes


def _expect(answers: Any, code: grpc.StatusCode) -> None:
    try:
        for _ in answers:
            pass
    except grpc.RpcError:
        pass
    assert answers.code() is code, f"{code} was expected, and {answers.code()} came"


CASES: tuple[Callable[[Story], None], ...] = (
    Story.create_topic,
    Story.publish,
    Story.publish_large,
    Story.publish_gzip,
    Story.publish_together,
    Story.publish_stream,
    Story.subscribe_and_cancel,
    Story.deadline,
    Story.error_details,
    Story.unimplemented,
    Story.health,
)


def main(address: str, topic: str) -> int:
    """Run the cases; return the exit status."""
    failed = False
    with grpc.insecure_channel(address) as channel:
        story = Story(channel, topic)
        for case in CASES:
            try:
                case(story)
            except (AssertionError, grpc.RpcError) as error:
                failed = True
                print(f"FAILED {case.__name__}: {error!r}".replace("\n", " "), flush=True)
            else:
                print(f"ok {case.__name__}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
