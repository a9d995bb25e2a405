"""The contract and the door, side by side: what one has the other has, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium import api
from angarium.api import access, balance, quotas, recovery, upgrades
from angarium.doors.grpc import GrpcDoor
from angarium.doors.grpc.grant_messages import word_number
from angarium.kinds import Behind, GroupKind, Poison
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from enum import IntEnum, StrEnum

METHODS = {
    name
    for contract in (
        *(api.Broker, api.GroupBroker),
        *(access.AccessBroker, access.JoinTokenBroker, quotas.QuotaBroker),
        *(balance.BalanceBroker, upgrades.UpgradeBroker, recovery.RecoveryBroker),
    )
    for name in vars(contract)
    if not name.startswith("_")
}

OTHER_NAMES = {"cluster_status": "get_cluster_status"}
"""Where a call is not named after the method."""

ON_ANOTHER_STREAM = {"consume"}
"""What is asked for with a call of another name: a consumer of a group subscribes."""

ONLY_HERE = {"publish_batch", "publish_stream"}
"""Calls that are further ways to `publish`."""

PAIRS = [
    (api.Ack, pb.Ack, {"base_offset": "offset", "code": "error", "message": "error"}),
    # Forwarded is what another node asks.
    (api.FetchRequest, pb.FetchRequest, {"forwarded": "fresh"}),
    (api.FetchResult, pb.FetchResponse, {}),
    # A stream of gRPC ends with the first partition that fails; only the wire's goes on.
    (api.Interest, pb.Interest, {"may_fail_alone": "partition"}),
    (api.Delivery, pb.SubscribeResponse, {"failure": "partition"}),
    (api.TopicConfig, pb.TopicConfig, {"cleanup": "compact"}),
    (api.PartitionInfo, pb.PartitionInfo, {}),
    (api.TopicInfo, pb.TopicInfo, {}),
    (api.NodeInfo, pb.NodeInfo, {}),
    (api.ClusterStatus, pb.GetClusterStatusResponse, {}),
    (api.ConsumeRequest, pb.Membership, {"credit": "group"}),
    (api.Held, pb.Held, {}),
    (api.Handed, pb.SubscribeResponse, {}),
    (api.Settlement, pb.Settlement, {}),
    (api.Settled, pb.Settled, {"code": "error", "message": "error"}),
    (api.GroupConfig, pb.GroupConfig, {}),
    (api.GroupInfo, pb.GroupInfo, {"listed_lag": "lag"}),
    (api.GroupMember, pb.GroupMember, {}),
    (api.GroupPosition, pb.GroupPosition, {}),
    (api.Moved, pb.SeekGroupResponse.Moved, {}),
    (api.Checkpoint, pb.ReportCheckpointsRequest.Checkpoint, {}),
    (access.Principal, pb.WhoamiResponse.Principal, {}),
    (access.Caller, pb.WhoamiResponse, {}),
    (access.Grant, pb.Grant, {}),
    (access.GrantInfo, pb.GrantInfo, {}),
    (access.Decision, pb.CanResponse, {}),
    (access.UserInfo, pb.UserInfo, {}),
    (access.RoleInfo, pb.RoleInfo, {}),
    (access.TokenInfo, pb.TokenInfo, {}),
    (access.IssuedToken, pb.CreateTokenResponse, {}),
    (access.JoinTokenInfo, pb.JoinTokenInfo, {}),
    (access.IssuedJoinToken, pb.CreateJoinTokenResponse, {}),
    (quotas.QuotaInfo, pb.QuotaInfo, {}),
    (quotas.CountedLimit, pb.CountedLimit, {}),
    (balance.MoveInfo, pb.MoveInfo, {}),
    (balance.BalanceInfo, pb.BalanceInfo, {}),
    (upgrades.NodeState, pb.NodeState, {}),
    (upgrades.UpgradeInfo, pb.DescribeUpgradeResponse, {}),
    (recovery.LostReplica, pb.LostReplica, {}),
    (recovery.LeftReplica, pb.LeftReplica, {}),
    (recovery.GroupLeft, pb.GroupLeft, {}),
    (recovery.RecoveryInfo, pb.RecoveryInfo, {}),
]


def test_every_method_of_the_contract_has_a_call_and_every_call_a_handler() -> None:
    service = pb.DESCRIPTOR.services_by_name["Broker"]
    calls = {method.name for method in service.methods}
    named = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call).lower() for call in calls}
    wanted = {OTHER_NAMES.get(name, name) for name in METHODS - ON_ANOTHER_STREAM}
    assert named == wanted | ONLY_HERE
    door = GrpcDoor(MemoryBroker(), host="127.0.0.1", port=0)
    face = door._faces.everybodys
    assert face is not None
    assert {path.rpartition("/")[2] for path in face.methods} == calls


@pytest.mark.parametrize(("struct", "message", "renamed"), PAIRS, ids=lambda one: str(one)[:40])
def test_every_field_of_the_contract_has_its_place_in_a_message(
    struct: type[msgspec.Struct], message: type, renamed: dict[str, str]
) -> None:
    there = {re.sub("_us$", "", field.name) for field in message.DESCRIPTOR.fields}  # type: ignore[attr-defined]
    wanted = {renamed.get(field.name, field.name) for field in msgspec.structs.fields(struct)}
    assert wanted - there == set()


@pytest.mark.parametrize(
    ("ours", "theirs", "prefix"),
    [
        (DeliveryMode, pb.DeliveryMode, "DELIVERY_MODE"),
        (GroupKind, pb.GroupKind, "GROUP_KIND"),
        (Poison, pb.Poison, "POISON"),
        (Behind, pb.Behind, "BEHIND"),
        (api.Verb, pb.Verb, "VERB"),
    ],
)
def test_choices_are_the_contracts_one_higher(
    ours: type[IntEnum], theirs: Any, prefix: str
) -> None:
    named = {f"{prefix}_{one.name}": one + 1 for one in ours}
    assert dict(theirs.items()) == named | {f"{prefix}_UNSPECIFIED": 0}


@pytest.mark.parametrize(
    ("ours", "theirs", "prefix"),
    [
        (access.ResourceKind, pb.ResourceKind, "RESOURCE_KIND"),
        (access.Match, pb.Match, "MATCH"),
        (access.Effect, pb.Effect, "EFFECT"),
        (access.SubjectKind, pb.SubjectKind, "SUBJECT_KIND"),
        (access.Proof, pb.Proof, "PROOF"),
        (quotas.QuotaSubject, pb.QuotaSubject, "QUOTA_SUBJECT"),
        (quotas.QuotaKind, pb.QuotaKind, "QUOTA_KIND"),
    ],
)
def test_words_of_the_contract_are_numbered_in_their_order(
    ours: type[StrEnum], theirs: Any, prefix: str
) -> None:
    named = {f"{prefix}_{one.name}": word_number(one) for one in ours}
    assert dict(theirs.items()) == named | {f"{prefix}_UNSPECIFIED": 0}
