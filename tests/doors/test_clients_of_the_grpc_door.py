"""gRPC clients of several languages do what services do, through a node's door.

`make judges` has more of them: those whose languages come from elsewhere than PyPI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from grpc_reflection.v1alpha import reflection_pb2
from tests.doors.cluster_of_doors import run
from tests.doors.test_the_examples_in_the_pages import NO_REGISTRY
from tests.judges import clients, k6
from tests.judges.tools import Tools
from tests.judges.verdicts import MissingTool, Outcome, Targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.doors.cluster_of_doors import Doors
    from tests.judges.verdicts import Verdict

JUDGES = {"python": clients.python, "node": clients.node, "k6": k6.judge}


@pytest.mark.parametrize("language", JUDGES)
def test_a_client_publishes_streams_subscribes_and_is_refused(
    doors: Doors, language: str, tmp_path: Path
) -> None:
    judge: Callable[[Tools, Targets], Iterator[Verdict]] = JUDGES[language]
    address = doors.nodes[0].grpc
    try:
        heard = list(judge(Tools(tmp_path), Targets(broker=address, service=address)))
    except MissingTool as missing:
        if not any(word in str(missing) for word in NO_REGISTRY):
            raise
        pytest.skip("npm's registry cannot be reached")
    assert heard
    assert [one for one in heard if one.outcome is not Outcome.PASSED] == []


@pytest.mark.parametrize("version", ["v1alpha", "v1"])
def test_reflection_tells_of_services_and_of_what_they_take(doors: Doors, version: str) -> None:
    """What grpcurl asks: which services there are, and the files of what it is going to send."""
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        *(
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol)
            for symbol in (
                "angarium.v1.Broker",
                "angarium.v1.Broker.Publish",
                "angarium.v1.PublishRequest",
            )
        ),
        reflection_pb2.ServerReflectionRequest(file_by_filename="angarium/v1/broker.proto"),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="angarium.v1.Nobody"),
    ]

    async def story() -> list[Any]:
        async with grpc.aio.insecure_channel(doors.nodes[0].grpc) as channel:
            call: Any = channel.stream_stream(
                f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
            )
            return [one async for one in call(iter(asked))]

    listed, *files, by_name, unknown = run(story())
    services = {one.name for one in listed.list_services_response.service}
    assert {"angarium.v1.Broker", "grpc.health.v1.Health"} <= services
    assert f"grpc.reflection.{version}.ServerReflection" in services
    (source,) = by_name.file_descriptor_response.file_descriptor_proto
    for one in files:
        assert source in one.file_descriptor_response.file_descriptor_proto
    assert unknown.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
