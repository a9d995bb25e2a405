"""Limits of what a principal may create, and roles that are held: the same over every door, and two
real nodes that are asked at once."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any
from urllib import error as urllib_error
from urllib import request as urllib_request

import grpc
from tests.cluster.secured import ADMIN, PASSWORD, SecuredNode
from tests.cluster.test_a_flood_of_bad_logins import admin_of
from tests.cluster.test_quotas_of_a_cluster import LIMIT_EXIT, command
from tests.component.doors.grpc.opened import refused
from tests.doors.matrix.world import SecuredCluster

from angarium.api.access import Grant, ResourceKind, SubjectKind
from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.client import Client
from angarium.errors import TopicQuotaExceeded
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from pathlib import Path

STATE_EXIT = 4
MAKING = Grant(
    actions=("topic.create", "topic.publish", "topic.delete"), kind=ResourceKind.TOPIC, name="team"
)


def as_alice(node: SecuredNode, *words: str, status: int = 0) -> str:
    return command(node, *words, user="alice", password=PASSWORD, status=status)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def over_http(
    node: SecuredNode, target: str, body: object = None, *, user: str = "alice", port: int = 0
) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Ask with `METHOD /path`; return status, headers and body."""
    method, path = target.split()
    asked = urllib_request.Request(
        f"http://127.0.0.1:{port or node.http}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": basic(user, ADMIN if user == "admin" else PASSWORD),
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib_request.urlopen(asked, timeout=60) as answer:
            return answer.status, dict(answer.headers), json.loads(answer.read() or b"{}")
    except urllib_error.HTTPError as refusal:
        return refusal.code, dict(refusal.headers), json.loads(refusal.read())


def over_graphql(node: SecuredNode, mutation: str, *, user: str = "alice") -> dict[str, Any]:
    body = {"query": f"mutation {{ {mutation} }}"}
    return over_http(node, "POST /graphql", body, user=user)[2]


def over_grpc(node: SecuredNode, call: str, request: Any, *, user: str = "alice") -> Any:
    async def asked() -> Any:
        metadata = (("authorization", basic(user, ADMIN if user == "admin" else PASSWORD)),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{node.grpc}") as channel:
            return await getattr(BrokerStub(channel), call)(request, metadata=metadata)

    try:
        return asyncio.run(asked())
    except grpc.aio.AioRpcError as error:
        return error


def test_every_door_refuses_what_exceeds_a_limit_and_says_what_to_do(tmp_path: Path) -> None:
    node = SecuredNode(tmp_path)

    async def prepared() -> None:
        admin = await admin_of(node)
        await admin.create_user("alice", password=PASSWORD)
        await admin.create_grant(SubjectKind.USER, "alice", MAKING)
        await admin.close()

    with node.running():
        asyncio.run(prepared())
        assert "topics 1" in command(node, "quota", "set", "user:alice", "--topics", "1")
        changed = {"limits": {"partitions": 3}}
        status, _, body = over_http(node, "PATCH /v1/quotas/user/alice", changed, user="admin")
        assert (status, body["limits"]) == (200, {"partitions": 3, "topics": 1})
        as_alice(node, "topic", "create", "team.one", "--partitions", "2")
        said = as_alice(node, "topic", "create", "team.two", status=LIMIT_EXIT)
        reason = "'alice' has created 1 topics that still exist, and 1 more would exceed the limit"
        assert reason in said
        assert "angarium quota set user:alice --topics N" in said
        with node.with_gateway():
            for asked, given in (
                ("POST /v1/topics", {"name": "team.two", "partitions": 1}),
                ("POST /v1/topics/team.two/records", {"value": "x"}),
            ):
                behind = over_http(node, asked, given, port=node.gateway)
                assert (behind[0], behind[2]["code"]) == (429, "TOPIC_QUOTA_EXCEEDED"), behind
                assert behind[2]["limit"] == "topics"
        for asked, given in (
            ("POST /v1/topics", {"name": "team.two", "partitions": 1}),
            ("POST /v1/topics/team.two/records", {"value": "x"}),
        ):
            status, headers, body = over_http(node, asked, given)
            assert (status, body["code"]) == (429, "TOPIC_QUOTA_EXCEEDED"), body
            assert (body["retriable"], body["limit"]) == (False, "topics")
            assert reason in body["detail"]
            assert "Retry-After" not in headers
        (error,) = over_graphql(node, 'createTopic(name: "team.two") { name }')["errors"]
        assert error["extensions"]["code"] == "RESOURCE_EXHAUSTED", error
        assert reason in error["message"]
        told = refused(over_grpc(node, "CreateTopic", pb.CreateTopicRequest(name="team.two")))
        assert told.status is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert told.retry_after_s is None
        shown = command(node, "quota", "show", "user:alice")
        assert "partitions" in shown
        graph = over_http(
            node,
            "POST /graphql",
            {"query": '{ quota(subjectKind: USER, subject: "alice") { counts { kind used } } }'},
            user="admin",
        )[2]
        counts = {one["kind"]: one["used"] for one in graph["data"]["quota"]["counts"]}
        assert (counts["TOPICS"], counts["PARTITIONS"]) == (1, 2)
        described = over_grpc(
            node,
            "DescribeQuota",
            pb.DescribeQuotaRequest(subject_kind=pb.QUOTA_SUBJECT_USER, subject="alice"),
            user="admin",
        )
        used = {one.kind: (one.limit, one.used) for one in described.quota.counts}
        assert used[pb.QUOTA_KIND_TOPICS] == (1, 1)
        assert used[pb.QUOTA_KIND_PARTITIONS] == (3, 2)
        as_alice(node, "topic", "delete", "team.one", "--yes")
        as_alice(node, "topic", "create", "team.two")


def test_every_door_keeps_a_role_that_is_held_unless_it_is_forced(tmp_path: Path) -> None:
    node = SecuredNode(tmp_path)

    async def prepared() -> None:
        admin = await admin_of(node)
        await admin.create_user("alice")
        for name in ("by-command", "by-rest", "by-graphql", "by-grpc"):
            await admin.create_role(name)
        names = ["by-command", "by-rest", "by-graphql", "by-grpc"]
        await admin.alter_user("alice", roles=names)
        await admin.close()

    def roles() -> list[str]:
        return list(over_http(node, "GET /v1/users/alice", user="admin")[2]["roles"])

    with node.running():
        asyncio.run(prepared())
        said = command(node, "role", "delete", "by-command", status=STATE_EXIT)
        assert "held by 'alice'" in said
        assert "angarium role delete by-command --force" in said
        command(node, "role", "delete", "by-command", "--force")
        status, _, body = over_http(node, "DELETE /v1/roles/by-rest", user="admin")
        assert (status, body["code"]) == (409, "ROLE_HELD")
        status, _, body = over_http(node, "DELETE /v1/roles/by-rest?force=true", user="admin")
        assert status == 204
        (error,) = over_graphql(node, 'deleteRole(name: "by-graphql")', user="admin")["errors"]
        assert error["extensions"]["code"] == "CONFLICT"
        forced = over_graphql(node, 'deleteRole(name: "by-graphql", force: true)', user="admin")
        assert forced["data"] == {"deleteRole": True}
        held = over_grpc(node, "DeleteRole", pb.DeleteRoleRequest(name="by-grpc"), user="admin")
        assert refused(held).status is grpc.StatusCode.FAILED_PRECONDITION
        assert roles() == ["by-grpc"]
        over_grpc(
            node, "DeleteRole", pb.DeleteRoleRequest(name="by-grpc", force=True), user="admin"
        )
        assert roles() == []


def test_two_nodes_that_create_at_once_do_not_exceed_a_limit_together(tmp_path: Path) -> None:
    async def scene() -> None:
        cluster = SecuredCluster(tmp_path, nodes=3)
        try:
            await cluster.start()
            async with cluster.admin() as admin:
                await admin.create_user("alice", password=PASSWORD)
                await admin.create_grant(SubjectKind.USER, "alice", MAKING)
                limits = {QuotaKind.TOPICS: 4, QuotaKind.PARTITIONS: 7}
                await admin.set_quota(QuotaSubject.USER, "alice", limits)
                await cluster.have_heard()
                one, other = (
                    Client(node.wire, user="alice", password=PASSWORD) for node in cluster.nodes[1:]
                )
                async with one, other:
                    for turn in range(3):
                        outcomes = await asyncio.gather(
                            *(
                                client.create_topic(f"team.{turn}-{at}-{number}", partitions=2)
                                for number in range(4)
                                for at, client in enumerate((one, other))
                            ),
                            return_exceptions=True,
                        )
                        refusals = [each for each in outcomes if isinstance(each, BaseException)]
                        assert all(isinstance(each, TopicQuotaExceeded) for each in refusals)
                        made = [each for each in outcomes if not isinstance(each, BaseException)]
                        assert len(made) == 3, "six partitions; a fourth topic would be eight"
                        for topic in made:
                            await one.delete_topic(topic.name)
                shown = await admin.describe_quota(QuotaSubject.USER, "alice")
                used = {each.kind: each.used for each in shown.counts}
                assert (used[QuotaKind.TOPICS], used[QuotaKind.PARTITIONS]) == (0, 0)
        finally:
            cluster.stop()

    asyncio.run(scene())
