"""Opening and closing: health, reflection, ports, TLS, deadlines, limits."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.component.doors.grpc.opened import LOCALHOST, Opened, opened
from tests.on_a_loop import eventually, run
from tests.system_programs import require_program
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import TopicConfig
from angarium.doors.grpc import GrpcDoor, GrpcLimits
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.security.tls import CertificateFiles, ClientCertificates, Door
from angarium.security.tls.contexts import listener_context

if TYPE_CHECKING:
    from pathlib import Path

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
BATCH = pb.PublishBatchRequest(topic="orders", partition=0, records=[pb.NewRecord()])


@pytest.mark.parametrize("path", ["/", "/v1/topics"])
def test_curl_is_told_that_this_is_not_the_http_port(path: str) -> None:
    async def check() -> None:
        async with opened() as it:
            reader, writer = await asyncio.open_connection(LOCALHOST, it.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 505 ")
            assert b"this port speaks gRPC" in answer
            writer.close()

    run(check())


async def health(it: Opened, service: str = "angarium.v1.Broker") -> int:
    stub = health_pb2_grpc.HealthStub(it.channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(answer.status)


def test_an_open_door_is_healthy_until_it_is_told_otherwise() -> None:
    async def check() -> None:
        async with opened() as it:
            for service in ("", "angarium.v1.Broker"):
                assert await health(it, service) == SERVING
            await it.door.set_serving(serving=False)
            for service in ("", "angarium.v1.Broker"):
                assert await health(it, service) == NOT_SERVING
            await it.door.set_serving(serving=True)
            assert await health(it) == SERVING

    run(check())


def test_those_who_watch_the_health_hear_that_the_door_closes() -> None:
    async def check() -> None:
        async with opened() as it:
            watch: Any = health_pb2_grpc.HealthStub(it.channel).Watch(
                health_pb2.HealthCheckRequest(service="angarium.v1.Broker")
            )
            assert (await watch.read()).status == SERVING
            async with asyncio.timeout(60):  # far from the grace: nobody has to be cut off
                closing = asyncio.create_task(it.door.stop(grace_s=600))
                assert (await watch.read()).status == NOT_SERVING
                assert await watch.code() is grpc.StatusCode.UNAVAILABLE
                await closing

    run(check())


def test_a_crowd_of_calls_waits_and_nobody_is_sent_away() -> None:
    """A client of an earlier broker has ten thousand calls under way on one connection."""

    async def check() -> None:
        async with opened() as it:
            record = pb.NewRecord(value=b"x")
            request = pb.PublishRequest(topic="orders", partition=0, record=record)
            calls = [it.stub.Publish(request) for _ in range(3_000)]
            answers: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
            assert [one for one in answers if isinstance(one, BaseException)] == []
            assert len({one.ack.offset for one in answers}) == 3_000

    run(check())


def test_reflection_shows_the_service_under_its_public_name() -> None:
    async def check() -> None:
        async with opened() as it:
            call: Any = reflection_pb2_grpc.ServerReflectionStub(it.channel).ServerReflectionInfo()
            await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            listed = (await call.read()).list_services_response.service
            assert {one.name for one in listed} == {
                "angarium.v1.Broker",
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            }
            await call.write(
                reflection_pb2.ServerReflectionRequest(file_containing_symbol="angarium.v1.Broker")
            )
            (data,) = (await call.read()).file_descriptor_response.file_descriptor_proto
            assert b"angarium/v1/broker.proto" in data

    run(check())


def test_two_doors_never_share_a_port() -> None:
    async def check() -> None:
        async with opened() as it:
            second = GrpcDoor(MemoryBroker(), host=LOCALHOST, port=it.port)
            with pytest.raises(OSError, match=f"{LOCALHOST}:{it.port}"):
                await second.start()
            await second.stop()

    run(check())


def test_a_closed_door_leaves_its_port_free() -> None:
    async def check() -> None:
        async with opened() as it:
            await it.door.stop(grace_s=0)
            again = GrpcDoor(it.broker, host=LOCALHOST, port=it.port)
            assert await again.start() == it.port
            await again.stop()
            await again.stop()  # a second time is harmless

    run(check())


def test_a_call_under_way_may_finish_while_the_door_closes() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            request = pb.PublishRequest(topic="orders", partition=0, record=pb.NewRecord())
            call = asyncio.ensure_future(it.stub.Publish(request))
            await eventually(lambda: it.broker.requests)
            closing = asyncio.create_task(it.door.stop(grace_s=10))
            await asyncio.sleep(0)
            it.broker.hang.set()
            assert (await call).ack.offset == 0
            await closing

    run(check())


def test_a_call_that_does_not_finish_is_cut_off_after_the_grace() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            request = pb.PublishRequest(topic="orders", partition=0, record=pb.NewRecord())
            call = it.stub.Publish(request)
            await eventually(lambda: it.broker.requests)
            async with asyncio.timeout(60):
                await it.door.stop(grace_s=0.05)
            assert await call.code() is not grpc.StatusCode.OK
            await eventually(lambda: it.broker.cancelled == 1)

    run(check())


def test_a_publish_past_its_deadline_is_over_and_those_it_travels_with_are_not() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            request = pb.PublishRequest(topic="orders", partition=0, record=pb.NewRecord())
            # Long enough for the call to get there on a busy machine.
            late, patient = it.stub.Publish(request, timeout=2), it.stub.Publish(request)
            assert await late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            it.broker.hang.set()
            assert (await patient).ack.topic == "orders"

    run(check())


def test_a_batch_past_its_deadline_is_cancelled_behind_the_door() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishBatch(BATCH, timeout=2)
            assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            await eventually(lambda: it.broker.cancelled == 1)

    run(check())


def test_a_cancelled_batch_is_cancelled_behind_the_door() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.hang = asyncio.Event()
            call = it.stub.PublishBatch(BATCH)
            await eventually(lambda: it.broker.requests)
            call.cancel()
            await eventually(lambda: it.broker.cancelled == 1)

    run(check())


def test_calls_beyond_the_limit_are_refused_and_the_others_go_on() -> None:
    async def check() -> None:
        async with opened(GrpcLimits(calls_max=3)) as it:
            it.broker.hang = asyncio.Event()
            calls = [it.stub.PublishBatch(BATCH) for _ in range(3)]
            await eventually(lambda: len(it.broker.requests) == 3)
            refused = it.stub.PublishBatch(BATCH)
            assert await refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            it.broker.hang.set()
            # Calls of their own have no order among themselves.
            assert sorted([(await call).acks[0].offset for call in calls]) == [0, 1, 2]
            assert await it.stub.PublishBatch(BATCH).code() is grpc.StatusCode.OK

    run(check())


def test_an_encrypted_door_is_open_to_those_who_know_its_authority(tmp_path: Path) -> None:
    openssl = require_program("openssl", apt="openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )

    async def check() -> None:
        broker = MemoryBroker()
        await broker.create_topic("orders", partitions=1, config=TopicConfig())
        authority = certificate.read_bytes()
        for mutual in (False, True):
            files = CertificateFiles(certificate=certificate, key=key, authorities=certificate)
            clients = ClientCertificates.REQUIRED if mutual else ClientCertificates.NONE
            context = listener_context(files, clients=clients, door=Door.GRPC)
            door = GrpcDoor(broker, host=LOCALHOST, port=0, tls=lambda one=context: one)  # type: ignore[misc]
            address = f"{LOCALHOST}:{await door.start()}"
            with_own = grpc.ssl_channel_credentials(authority, key.read_bytes(), authority)
            without = grpc.ssl_channel_credentials(authority)
            for credentials, welcome in ((with_own, True), (without, not mutual)):
                async with grpc.aio.secure_channel(address, credentials) as channel:
                    stub: Any = BrokerStub(channel)
                    code = await stub.ListTopics(pb.ListTopicsRequest(), timeout=30).code()
                    assert (code is grpc.StatusCode.OK) is welcome
            async with grpc.aio.insecure_channel(address) as channel:
                stub = BrokerStub(channel)
                code = await stub.ListTopics(pb.ListTopicsRequest(), timeout=30).code()
                assert code is not grpc.StatusCode.OK
            await door.stop(grace_s=0)

    run(check())
