"""The gRPC door, with the stubs that everybody has."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
from tests.doors.matrix.answers import ANSWER_S_MAX, Answer, Door, agreeing, listed

from angarium.api import GroupConfig, Settlement, Start, TopicConfig
from angarium.api.access import Grant
from angarium.api.groups import Checkpoint
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.protobuf.message import Message
    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.world import World

    from angarium.bench.cluster import BenchNode

EARLIEST: Final = pb.Start(earliest=pb.Start.Earliest())


def _publish(given: Mapping[str, Any]) -> Message:
    topic = given["request"].topic
    return pb.PublishRequest(topic=topic, partition=0, record=pb.NewRecord(value=b"x"))


def _publish_batch(given: Mapping[str, Any]) -> Message:
    topic = given["request"].topic
    return pb.PublishBatchRequest(topic=topic, partition=0, records=[pb.NewRecord(value=b"x")])


def _publish_stream(given: Mapping[str, Any]) -> Message:
    request = _publish(given)
    assert isinstance(request, pb.PublishRequest)
    return pb.PublishStreamRequest(number=1, publish=request)


def _fetch(given: Mapping[str, Any]) -> Message:
    return pb.FetchRequest(topic=given["request"].topic, partition=0, offset=0)


def _subscribe(given: Mapping[str, Any]) -> Message:
    wanted = [pb.Interest(topic=one.topic, start=EARLIEST) for one in given["interests"]]
    return pb.SubscribeRequest(open=pb.SubscribeRequest.Open(interests=wanted, credit=10))


def _consume(given: Mapping[str, Any]) -> Message:
    request = given["request"]
    group = pb.Membership(group=request.group, topics=request.topics)
    if request.config is not None:
        group.config.dead_letter_topic = request.config.dead_letter_topic
    return pb.SubscribeRequest(open=pb.SubscribeRequest.Open(group=group, credit=10))


def _undone(name: str, word: str) -> Callable[[Mapping[str, Any]], Message]:
    """Return what says the opposite where protobuf does."""

    def made(given: Mapping[str, Any]) -> Message:
        others = {key: value for key, value in given.items() if key != word}
        return _request(name, {**others, "undo": not given[word]})

    return made


SPECIAL: Final[dict[str, tuple[str, Callable[[Mapping[str, Any]], Message]]]] = {
    "Publish": ("publish", _publish),
    "PublishBatch": ("publish", _publish_batch),
    "PublishStream": ("publish", _publish_stream),
    "Fetch": ("fetch", _fetch),
    "Subscribe": ("subscribe", _subscribe),
    "GetClusterStatus": ("cluster_status", lambda _: pb.GetClusterStatusRequest()),
    "PauseGroup": ("pause_group", _undone("PauseGroup", "paused")),
    "DrainNode": ("drain_node", _undone("DrainNode", "draining")),
}
"""Calls whose request is not made of the arguments by name."""


def _request(name: str, given: Mapping[str, Any]) -> Message:
    """Return the request of a call: its fields have the names of the arguments."""
    kind = getattr(pb, f"{name}Request")
    fields = kind.DESCRIPTOR.fields_by_name
    values = {
        key: _value(value, fields[key])
        for key, value in given.items()
        if value is not None and key in fields
    }
    made: Message = kind(**values)
    return made


def _value(value: Any, field: Any) -> Any:
    match value:
        case StrEnum():
            return _number(value)
        case Start():
            return EARLIEST
        case TopicConfig():
            return pb.TopicConfig(retention_ms=value.retention_ms)
        case GroupConfig():
            return pb.GroupConfig(dead_letter_topic=value.dead_letter_topic)
        case Grant():
            return pb.Grant(actions=value.actions, kind=_number(value.kind), name=value.name)
        case dict() if field.message_type.name == "QuotaLimit":
            return [pb.QuotaLimit(kind=_number(kind), limit=one) for kind, one in value.items()]
        case tuple() if field.message_type is not None and field.message_type.name == "Roles":
            return pb.Roles(names=value)
        case tuple() if value and isinstance(value[0], Settlement):
            return [
                pb.Settlement(topic=one.topic, verb=pb.VERB_ACK, ranges=one.ranges) for one in value
            ]
        case tuple() if value and isinstance(value[0], Checkpoint):
            checkpoint = pb.ReportCheckpointsRequest.Checkpoint
            return [checkpoint(topic=one.topic, offset=one.offset) for one in value]
    return value


def _number(word: StrEnum) -> Any:
    """Return the number that protobuf has for a choice."""
    return list(type(word)).index(word) + 1


def _method_of(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


_ALL: Final = {one.name: one for one in pb.DESCRIPTOR.services_by_name["Broker"].methods}
DECLARED: Final = {name: SPECIAL[name][0] if name in SPECIAL else _method_of(name) for name in _ALL}

METHODS: Final[dict[str, list[str]]] = {"consume": ["Subscribe"]}
for _name, _method in DECLARED.items():
    METHODS.setdefault(_method, []).append(_name)


TOO_QUICK: Final = "Internal error from Core"
"""What grpc.aio makes of a stream that was refused before its first request was on its way: it
does not tell the refusal. Asked for again."""


class GrpcDoor(Door):
    """One node's gRPC port, with a channel for all callers."""

    name = "gRPC"
    methods = METHODS

    def __init__(self, world: World, node: BenchNode) -> None:
        self._world = world
        self._channel = grpc.aio.insecure_channel(node.grpc)
        self._stub: Any = BrokerStub(self._channel)

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        return DECLARED

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        """Make every call that stands for the method; they have to say the same."""
        answers = [await self._ask(name, caller, method, given) for name in METHODS[method]]
        return agreeing(answers)

    async def _ask(self, name: str, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        header = caller.authorization(self._world.token)
        metadata = () if header is None else (("authorization", header),)
        if method == "consume":
            request = _consume(given)
        elif name in SPECIAL:
            request = SPECIAL[name][1](given)
        else:
            request = _request(name, given)
        call = getattr(self._stub, name)
        while True:
            try:
                if _ALL[name].client_streaming:
                    return await self._first(call(metadata=metadata, timeout=ANSWER_S_MAX), request)
                answer = await call(request, metadata=metadata, timeout=ANSWER_S_MAX)
            except grpc.aio.AioRpcError as error:
                if error.details() != TOO_QUICK:
                    return _refusal(error)
            else:
                return _read(method, answer)

    async def _first(self, call: Any, request: Message) -> Answer:
        """Return what the first answer of a stream says."""
        try:
            await call.write(request)
            answer = await call.read()
            if answer is grpc.aio.EOF:
                raise AssertionError(f"{request!r} was not answered: {await call.code()}")
            for one in getattr(answer, "results", ()):
                if one.HasField("error"):
                    return Answer(code=one.error.code, text=one.error.message)
            return Answer()
        finally:
            call.cancel()

    async def close(self) -> None:
        await self._channel.close()


def _refusal(error: grpc.aio.AioRpcError) -> Answer:
    metadata = {key: str(value) for key, value in error.trailing_metadata() or ()}
    code = metadata.get("x-angarium-code", f"gRPC {error.code().name}")
    hint = metadata.get("x-leader-hint", "")
    return Answer(code=code, text=error.details() or "", beside=f"{error.code().name} {hint}")


def _read(method: str, answer: Any) -> Answer:
    match method:
        case "list_topics":
            return listed(answer.topics)
        case "list_groups":
            return listed(answer.groups)
        case "list_users":
            return listed(answer.users)
        case "list_roles":
            return listed(answer.roles)
        case "list_tokens":
            return listed(answer.tokens, by="owner")
        case "cluster_status":
            return Answer(is_less=answer.catalog_index == 0)
        case "settle":
            return Answer(code=answer.settled[0].error.code)
    return Answer()
