"""The profile's gRPC listener: the five calls, with reflection."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
import grpc.aio
from grpc_reflection.v1alpha import reflection

from angarium.doors.compat.hermes.feeds import begun
from angarium.doors.compat.hermes.publishing import HermesPublishing
from angarium.doors.compat.hermes.schema import SCHEMA
from angarium.doors.grpc.limits import GrpcLimits
from angarium.doors.status import INTERNAL, status_of
from angarium.errors import AngariumError, InvalidArgument
from angarium.wire.error_codec import failure_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from angarium.api import Broker, GroupBroker
    from angarium.doors.http.lanes import Placed

HINT_KEY = "x-leader-hint"
STREAM_WAITING_MAX = 4_096
"""Messages of one PublishStream that are not answered. At the bound no more are read."""

_CODES = {code.value[0]: code for code in grpc.StatusCode}
Context = Any
"""A grpc.aio context; messages are of classes that exist at run time only."""


class HermesDoor:
    """Serves `broker.BrokerService` on one address."""

    def __init__(
        self,
        broker: Broker,
        groups: GroupBroker,
        *,
        host: str,
        port: int,
        leader_hint: Callable[[str, int], str | None] | None = None,
    ) -> None:
        self._broker = broker
        self._groups = groups
        self._host = host
        self._port = port
        self._leader_hint = leader_hint
        self._publishing = HermesPublishing(broker)
        self._stopping = asyncio.Event()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> int:
        """Open the door; return the port."""
        limits = GrpcLimits()
        server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", limits.message_bytes_max),
                ("grpc.max_send_message_length", -1),
            ],
            maximum_concurrent_rpcs=limits.calls_max,
        )
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SCHEMA.service, self._handlers()),)
        )
        reflection.enable_server_reflection(
            (SCHEMA.service, reflection.SERVICE_NAME), server, pool=SCHEMA.pool
        )
        try:
            port = server.add_insecure_port(f"{self._host}:{self._port}")
        except RuntimeError as error:
            raise OSError(errno.EADDRINUSE, f"hermes cannot listen on {self._port}") from error
        await server.start()
        self._server = server
        return port

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once."""
        self._stopping.set()
        if self._server is not None:
            await self._server.stop(grace_s)
            self._server = None

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        unary = {"Publish": self._publish, "PublishBatch": self._publish_batch, "Join": self._join}
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for name, method in SCHEMA.methods.items():
            request, response = SCHEMA[method.request], SCHEMA[method.response]
            kind = {
                "request_deserializer": request.FromString,
                "response_serializer": response.SerializeToString,
            }
            if name in unary:
                handlers[name] = grpc.unary_unary_rpc_method_handler(unary[name], **kind)
        summed = SCHEMA.methods["PublishStream"]
        handlers["PublishStream"] = grpc.stream_unary_rpc_method_handler(
            self._publish_stream,
            request_deserializer=SCHEMA[summed.request].FromString,
            response_serializer=SCHEMA[summed.response].SerializeToString,
        )
        handlers["Subscribe"] = grpc.stream_stream_rpc_method_handler(
            self._subscribe,
            request_deserializer=SCHEMA["SubscribeRequest"].FromString,
            response_serializer=SCHEMA["Message"].SerializeToString,
        )
        return handlers

    # --- calls ----------------------------------------------------------------------------------

    async def _publish(self, request: Any, context: Context) -> Any:
        try:
            partition = await self._publishing.publish(request.topic, request.payload, request.mode)
        except AngariumError as error:
            await _refuse(context, error)
        self._hint(context, request.topic, partition)
        return SCHEMA["PublishResponse"](success=True)

    async def _publish_batch(self, request: Any, context: Context) -> Any:
        try:
            partition = await self._publishing.publish_batch(
                request.topic, request.payloads, request.mode
            )
        except AngariumError as error:
            await _refuse(context, error)
        self._hint(context, request.topic, partition)
        return SCHEMA["PublishResponse"](success=True)

    async def _publish_stream(self, requests: AsyncIterator[Any], _: Context) -> Any:
        processed = failed = 0
        room = asyncio.Semaphore(STREAM_WAITING_MAX)
        waiting = 0
        nothing_waits = asyncio.Event()
        nothing_waits.set()

        def done(outcome: Placed | Exception) -> None:
            nonlocal processed, failed, waiting
            if isinstance(outcome, Exception):
                failed += 1
            else:
                processed += 1
            waiting -= 1
            room.release()
            if not waiting:
                nothing_waits.set()

        async for request in requests:
            await room.acquire()
            waiting += 1
            nothing_waits.clear()
            try:
                await self._publishing.begin(request.topic, request.payload, request.mode, done)
            except AngariumError as error:
                done(error)
        await nothing_waits.wait()
        return SCHEMA["PublishSummary"](processed_count=processed, failed_count=failed)

    async def _subscribe(self, requests: AsyncIterator[Any], context: Context) -> None:
        first = await anext(requests, None)
        try:
            if first is None or first.action != "SUBSCRIBE" or not first.topic:
                raise InvalidArgument("a subscription begins with SUBSCRIBE and a topic")
            feed = await begun(self._broker, self._groups, first.topic, first.group_id)
        except AngariumError as error:
            await _refuse(context, error)
        message = SCHEMA["Message"]

        async def deliver() -> None:
            async for portion in feed.messages():
                for one in portion:
                    await context.write(
                        message(
                            id=one.id,
                            topic=one.topic,
                            payload=one.payload,
                            timestamp=one.time_us * 1_000,
                        )
                    )

        async def listen() -> None:
            async for request in requests:
                if request.action == "ACK":
                    await feed.acknowledge(request.ack_message_id)

        tasks = [
            asyncio.ensure_future(deliver()),
            asyncio.ensure_future(listen()),
            asyncio.ensure_future(self._stopping.wait()),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            broken = next((one.exception() for one in done if one.exception() is not None), None)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await feed.close()
        if isinstance(broken, AngariumError):
            await _refuse(context, broken)

    async def _join(self, _: Any, context: Context) -> Any:
        await context.abort(
            grpc.StatusCode.PERMISSION_DENIED,
            "nodes join this cluster with `angarium serve --join`, not through this call",
        )

    def _hint(self, context: Context, topic: str, partition: int) -> None:
        if self._leader_hint is not None:
            hint = self._leader_hint(topic, partition)
            if hint is not None:
                context.set_trailing_metadata(((HINT_KEY, hint),))


async def _refuse(context: Context, error: AngariumError) -> NoReturn:
    status = status_of(error) if isinstance(error, AngariumError) else INTERNAL
    await context.abort(_CODES[status.grpc], failure_of(error).message)
    raise AssertionError("abort raises")
