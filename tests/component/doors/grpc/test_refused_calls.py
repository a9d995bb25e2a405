"""What a client learns when its call fails: every code, details, hints, hostile input."""

from __future__ import annotations

import logging
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.component.doors.grpc.opened import Opened, Refused, opened, refusal
from tests.on_a_loop import run
from tests.unit.doors.test_status_table import NAMED

from angarium.doors.status import STATUSES
from angarium.errors import (
    AngariumError,
    Fault,
    InvalidArgument,
    LimitExceeded,
    NotLeader,
    QuotaExceeded,
)
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.errors import RemoteError

LIST = pb.ListTopicsRequest()

EMPTY_CALLS = {
    "Publish": pb.PublishRequest(topic="orders", partition=0, record=pb.NewRecord()),
    "PublishBatch": pb.PublishBatchRequest(topic="orders", records=[pb.NewRecord()]),
    "Fetch": pb.FetchRequest(topic="orders"),
    "FindOffset": pb.FindOffsetRequest(topic="orders"),
    "OpenProducer": pb.OpenProducerRequest(),
    "CreateTopic": pb.CreateTopicRequest(name="fresh"),
    "AlterTopic": pb.AlterTopicRequest(name="orders"),
    "DeleteTopic": pb.DeleteTopicRequest(name="orders"),
    "ListTopics": LIST,
    "DrainNode": pb.DrainNodeRequest(node=1),
    "RemoveNode": pb.RemoveNodeRequest(node=1),
    "TransferLeader": pb.TransferLeaderRequest(topic="orders", to=1),
    "RaiseLevel": pb.RaiseLevelRequest(),
}


async def refused_with(it: Opened, error: Exception) -> Refused:
    it.broker.trouble = error
    return await refusal(it.stub.ListTopics(LIST))


def test_every_code_arrives_with_the_status_of_the_table_and_its_details() -> None:
    async def check() -> None:
        async with opened() as it:
            for error_class in NAMED:
                error = error_of(Failure(error_class.code, "what happened"))
                refused = await refused_with(it, error)
                assert refused.code == error_class.code
                assert refused.status.value[0] == STATUSES[error_class.code].grpc
                assert refused.metadata["retriable"] == str(error.retriable).lower()
                assert refused.metadata["fault"] == error.fault.value
                if error_class is not AngariumError:
                    assert refused.message == "what happened"

    run(check())


def test_who_has_used_up_a_quota_is_told_when_to_come_again() -> None:
    async def check() -> None:
        async with opened() as it:
            error = QuotaExceeded("bytes_in", "used up", retry_after=1.2345)
            refused = await refused_with(it, error)
            assert refused.status is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (refused.code, refused.metadata["limit"]) == ("QUOTA_EXCEEDED", "bytes_in")
            assert refused.retry_after_s == 1.235
            # Inside an answer, too, where other partitions were not refused.
            it.broker.trouble, it.broker.trouble_in[0] = None, error
            batch = pb.PublishBatchRequest(
                topic="orders", partition=0, records=[pb.NewRecord(value=b"1")]
            )
            told = await refusal(it.stub.PublishBatch(batch))
            assert told.retry_after_s == 1.235
            assert told.details[0].acks[0].error.retry_after_ms == 1_235
            # What nobody can say anything about says nothing.
            other = await refused_with(it, LimitExceeded("calls_max", "too many"))
            assert other.retry_after_s is None

    run(check())


@pytest.mark.parametrize("call", EMPTY_CALLS)
def test_every_call_tells_its_errors_alike(call: str) -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.trouble = InvalidArgument("no such thing")
            refused = await refusal(getattr(it.stub, call)(EMPTY_CALLS[call]))
            assert (refused.status, refused.code, refused.message) == (
                grpc.StatusCode.INVALID_ARGUMENT,
                "INVALID_ARGUMENT",
                "no such thing",
            )

    run(check())


def test_the_leader_hint_is_the_address_where_that_node_listens_for_grpc() -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refused_with(it, NotLeader(leader=2))
            assert refused.hint == refused.metadata["leader_hint"] == "10.0.0.2:7401"
            assert refused.metadata["leader"] == "2"
            for unknown in (NotLeader(), NotLeader(leader=77)):
                refused = await refused_with(it, unknown)
                assert refused.hint is None
                assert "leader_hint" not in refused.metadata

    run(check())


def test_a_limit_is_named() -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refused_with(it, LimitExceeded("uncommitted_bytes_max", "wait"))
            assert refused.metadata["limit"] == "uncommitted_bytes_max"

    run(check())


def test_a_code_that_only_a_newer_node_knows_is_passed_on() -> None:
    async def check() -> None:
        async with opened() as it:
            error = RemoteError("later", code="FROM_TOMORROW", retriable=True, fault=Fault.CLUSTER)
            refused = await refused_with(it, error)
            assert (refused.code, refused.metadata["retriable"]) == ("FROM_TOMORROW", "true")

    run(check())


def test_a_mistake_of_ours_is_called_internal_and_its_text_stays_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check() -> None:
        async with opened() as it:
            with caplog.at_level(logging.ERROR):
                refused = await refused_with(it, KeyError("the password is 1234"))
            assert (refused.status, refused.code) == (grpc.StatusCode.INTERNAL, "INTERNAL")
            assert "1234" not in refused.message
            assert "Traceback" not in refused.message

    run(check())
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    "text",
    ["x" * 100_000, "💥" * 10_000, "a\r\nb\x00c", "\ud800 lone", "%25 %zz", ""],
    ids=["long", "wide", "control", "surrogate", "percent", "empty"],
)
def test_a_message_of_any_kind_arrives_or_is_cut(text: str) -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refused_with(it, InvalidArgument(text))
            assert refused.code == "INVALID_ARGUMENT"
            assert len(refused.message.encode()) <= 1_024
            expected = text.encode(errors="replace").decode()
            assert expected.startswith(refused.message)

    run(check())


def test_details_of_any_size_leave_room_for_the_code() -> None:
    async def check() -> None:
        async with opened() as it:
            error = InvalidArgument("x" * 5_000)
            error.__dict__.update({f"detail_{n}": "💥" * 200 for n in range(16)})
            refused = await refused_with(it, error)
            assert refused.code == "INVALID_ARGUMENT"
            assert refused.metadata["retriable"] == "false"

    run(check())


# --- hostile bytes ----------------------------------------------------------------------------


@pytest.mark.parametrize("call", EMPTY_CALLS)
def test_bytes_that_are_no_message_are_the_callers_mistake(call: str) -> None:
    async def check() -> None:
        async with opened() as it:
            ask: Any = it.channel.unary_unary(f"/angarium.v1.Broker/{call}")
            for rubbish in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 99):
                assert await ask(rubbish).code() is grpc.StatusCode.INVALID_ARGUMENT

    run(check())


def test_a_name_that_is_no_text_is_refused() -> None:
    async def check() -> None:
        async with opened() as it:
            ask: Any = it.channel.unary_unary("/angarium.v1.Broker/Publish")
            assert await ask(b"\x0a\x02\xff\xfe").code() is grpc.StatusCode.INVALID_ARGUMENT

    run(check())


def test_a_request_above_the_limit_is_refused_and_the_door_stays_open() -> None:
    async def check() -> None:
        async with opened() as it:
            large = pb.PublishRequest(
                topic="orders", partition=0, record=pb.NewRecord(value=bytes(5 << 20))
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await it.stub.Publish(large)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert it.broker.requests == []
            fitting = pb.PublishRequest(
                topic="orders", partition=0, record=pb.NewRecord(value=bytes((4 << 20) - 1_000))
            )
            assert (await it.stub.Publish(fitting)).ack.offset == 0

    run(check())


def test_an_unknown_method_is_not_implemented() -> None:
    async def check() -> None:
        async with opened() as it:
            ask: Any = it.channel.unary_unary("/angarium.v1.Broker/Gallop")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask(b"")
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED

    run(check())


@settings(max_examples=10)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=40))
def test_random_bytes_never_bring_the_door_down(requests: list[bytes]) -> None:
    async def check() -> None:
        async with opened() as it:
            publish: Any = it.channel.unary_unary("/angarium.v1.Broker/Publish")
            fetch: Any = it.channel.unary_unary("/angarium.v1.Broker/Fetch")
            for data in requests:
                for ask in (publish, fetch):
                    assert await ask(data).code() in (
                        grpc.StatusCode.OK,
                        grpc.StatusCode.INVALID_ARGUMENT,
                        grpc.StatusCode.NOT_FOUND,
                        grpc.StatusCode.OUT_OF_RANGE,
                    )
            assert (await it.stub.ListTopics(LIST)).topics

    run(check())
