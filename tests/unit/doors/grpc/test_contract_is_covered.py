"""The contract and the door, side by side: what one has the other has, too."""

from __future__ import annotations

import re

import msgspec
import pytest
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium import api
from angarium.doors.grpc import GrpcDoor
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

METHODS = {name for name in vars(api.Broker) if not name.startswith("_")}

OTHER_NAMES = {"cluster_status": "get_cluster_status"}
"""Where a call is not named after the method."""

ONLY_HERE = {"publish_batch", "publish_stream"}
"""Calls that are further ways to `publish`."""

PAIRS = [
    (api.Ack, pb.Ack, {"base_offset": "offset", "code": "error", "message": "error"}),
    (api.FetchRequest, pb.FetchRequest, {}),
    (api.FetchResult, pb.FetchResponse, {}),
    (api.Interest, pb.Interest, {}),
    (api.Delivery, pb.SubscribeResponse, {}),
    (api.TopicConfig, pb.TopicConfig, {}),
    (api.PartitionInfo, pb.PartitionInfo, {}),
    (api.TopicInfo, pb.TopicInfo, {}),
    (api.NodeInfo, pb.NodeInfo, {}),
    (api.ClusterStatus, pb.GetClusterStatusResponse, {}),
]


def test_every_method_of_the_contract_has_a_call_and_every_call_a_handler() -> None:
    service = pb.DESCRIPTOR.services_by_name["Broker"]
    calls = {method.name for method in service.methods}
    named = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call).lower() for call in calls}
    assert named == {OTHER_NAMES.get(name, name) for name in METHODS} | ONLY_HERE
    door = GrpcDoor(MemoryBroker(), host="127.0.0.1", port=0)
    assert door._handlers().keys() == calls


@pytest.mark.parametrize(("struct", "message", "renamed"), PAIRS, ids=lambda one: str(one)[:40])
def test_every_field_of_the_contract_has_its_place_in_a_message(
    struct: type[msgspec.Struct], message: type, renamed: dict[str, str]
) -> None:
    there = {re.sub("_us$", "", field.name) for field in message.DESCRIPTOR.fields}  # type: ignore[attr-defined]
    wanted = {renamed.get(field.name, field.name) for field in msgspec.structs.fields(struct)}
    assert wanted - there == set()


def test_the_modes_are_the_contracts_one_higher() -> None:
    ours = {f"DELIVERY_MODE_{mode.name}": mode + 1 for mode in DeliveryMode}
    assert dict(pb.DeliveryMode.items()) == ours | {"DELIVERY_MODE_UNSPECIFIED": 0}
