"""Users, roles, grants and tokens over a real connection."""

from __future__ import annotations

import grpc
from tests.component.doors.grpc.opened import opened, refusal
from tests.on_a_loop import run

from angarium.api.access import Effect, Grant, Match, ResourceKind
from angarium.proto.v1 import broker_pb2 as pb

PASSWORD = "alices good password"
TEAM = pb.Grant(actions=["topic.publish"], kind=pb.RESOURCE_KIND_TOPIC, name="team-a")
LATER_US = 2_000_000_000_000_000


def test_a_user_is_made_changed_and_removed() -> None:
    async def check() -> None:
        async with opened() as it:
            request = pb.CreateUserRequest(name="alice", password=PASSWORD, roles=["publisher"])
            made = (await it.stub.CreateUser(request)).user
            assert (made.name, list(made.roles), made.has_password) == (
                "alice",
                ["publisher"],
                True,
            )
            assert not made.is_locked
            changed = await it.stub.AlterUser(
                pb.AlterUserRequest(name="alice", roles=pb.Roles(), is_locked=True)
            )
            assert (list(changed.user.roles), changed.user.is_locked) == ([], True)
            # What is absent stays.
            same = await it.stub.AlterUser(pb.AlterUserRequest(name="alice"))
            assert same.user == changed.user
            described = await it.stub.DescribeUser(pb.DescribeUserRequest(name="alice"))
            assert described.user == changed.user
            listed = await it.stub.ListUsers(pb.ListUsersRequest())
            assert list(listed.users) == [changed.user]
            await it.stub.DeleteUser(pb.DeleteUserRequest(name="alice"))
            gone = await refusal(it.stub.DescribeUser(pb.DescribeUserRequest(name="alice")))
            assert (gone.status, gone.code) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")

    run(check())


def test_a_grant_is_given_asked_about_and_taken_back() -> None:
    async def check() -> None:
        async with opened() as it:
            stub = it.stub
            await stub.CreateUser(pb.CreateUserRequest(name="alice"))
            await stub.CreateRole(pb.CreateRoleRequest(name="quiet", about="says nothing"))
            request = pb.CreateGrantRequest(
                subject_kind=pb.SUBJECT_KIND_USER, subject="alice", grant=TEAM
            )
            given = (await stub.CreateGrant(request)).grant
            assert (given.id, given.subject) == (1, "alice")
            # What was not said is said in the answer.
            assert given.grant.match == pb.MATCH_PREFIX
            assert given.grant.effect == pb.EFFECT_ALLOW
            deny = pb.Grant(
                actions=["*"],
                kind=pb.RESOURCE_KIND_TOPIC,
                name="team-a.secret",
                match=pb.MATCH_EXACT,
                effect=pb.EFFECT_DENY,
            )
            banned = pb.CreateGrantRequest(
                subject_kind=pb.SUBJECT_KIND_ROLE, subject="quiet", grant=deny
            )
            await stub.CreateGrant(banned)
            kept = await it.broker.list_grants()
            assert kept[1].grant == Grant(
                actions=("*",),
                kind=ResourceKind.TOPIC,
                name="team-a.secret",
                match=Match.EXACT,
                effect=Effect.DENY,
            )
            asked = pb.CanRequest(
                user="alice",
                action="topic.publish",
                kind=pb.RESOURCE_KIND_TOPIC,
                name="team-a.orders",
            )
            may = await stub.Can(asked)
            assert may.is_allowed
            assert may.grant == given.grant
            assert "allow topic.publish" in may.why
            asked.name = "team-ab"
            may = await stub.Can(asked)
            assert not may.is_allowed
            assert not may.HasField("grant")
            roles = (await stub.ListRoles(pb.ListRolesRequest())).roles
            assert (roles[0].name, roles[0].is_built_in) == ("admin", True)
            (quiet,) = [one for one in roles if one.name == "quiet"]
            assert (quiet.about, quiet.grants[0].grant) == ("says nothing", deny)
            await stub.DeleteGrant(pb.DeleteGrantRequest(grant=given.id))
            left = (await stub.ListGrants(pb.ListGrantsRequest())).grants
            assert [one.subject for one in left] == ["quiet"]
            held = pb.AlterUserRequest(name="alice", roles=pb.Roles(names=["quiet"]))
            await stub.AlterUser(held)
            refused = await refusal(stub.DeleteRole(pb.DeleteRoleRequest(name="quiet")))
            assert refused.status is grpc.StatusCode.FAILED_PRECONDITION
            await stub.DeleteRole(pb.DeleteRoleRequest(name="quiet", force=True))
            alice = (await stub.DescribeUser(pb.DescribeUserRequest(name="alice"))).user
            assert not alice.roles
            assert not (await stub.ListGrants(pb.ListGrantsRequest())).grants

    run(check())


def test_a_token_is_issued_listed_and_revoked() -> None:
    async def check() -> None:
        async with opened() as it:
            stub = it.stub
            await stub.CreateUser(pb.CreateUserRequest(name="alice"))
            wide = await stub.CreateToken(pb.CreateTokenRequest(owner="alice", name="wide"))
            assert not wide.info.HasField("grants")
            assert not wide.info.HasField("until_us")
            narrow = await stub.CreateToken(
                pb.CreateTokenRequest(
                    owner="alice", name="ci", until_us=LATER_US, grants=pb.Grants(grants=[TEAM])
                )
            )
            assert narrow.secret.startswith("angt_")
            assert narrow.info.until_us == LATER_US
            assert [one.name for one in narrow.info.grants.grants] == ["team-a"]
            nothing = await stub.CreateToken(
                pb.CreateTokenRequest(owner="alice", name="none", grants=pb.Grants())
            )
            assert nothing.info.HasField("grants"), "none at all is not the same as all"
            of_alice = await stub.ListTokens(pb.ListTokensRequest(owner="alice"))
            assert [one.name for one in of_alice.tokens] == ["ci", "none", "wide"]
            assert narrow.secret not in str(of_alice)
            assert not (await stub.ListTokens(pb.ListTokensRequest(owner="bob"))).tokens
            await stub.DeleteToken(pb.DeleteTokenRequest(owner="alice", name="ci"))
            left = (await stub.ListTokens(pb.ListTokensRequest())).tokens
            assert [one.name for one in left] == ["none", "wide"]

    run(check())


def test_everybody_is_told_who_they_are() -> None:
    async def check() -> None:
        async with opened() as it:
            who = await it.stub.Whoami(pb.WhoamiRequest())
            assert (who.principal.name, who.authentication) == ("anonymous", "off")
            assert who.principal.proof == pb.PROOF_NONE
            assert list(who.roles) == ["admin"]

    run(check())


def test_what_is_not_said_or_makes_no_sense_is_refused() -> None:
    async def check() -> None:
        async with opened() as it:
            stub = it.stub
            await stub.CreateUser(pb.CreateUserRequest(name="alice"))
            unsaid = pb.Grant(actions=["topic.read"])
            odd = pb.Grant(actions=["topic.fly"], kind=pb.RESOURCE_KIND_TOPIC)
            future = pb.Grant(actions=["topic.read"], kind=99)  # type: ignore[arg-type]
            for grant, word in ((unsaid, "say which"), (odd, "no action"), (future, "99")):
                request = pb.CreateGrantRequest(
                    subject_kind=pb.SUBJECT_KIND_USER, subject="alice", grant=grant
                )
                refused = await refusal(stub.CreateGrant(request))
                assert refused.status == grpc.StatusCode.INVALID_ARGUMENT
                assert word in refused.message
            nobody = await refusal(
                stub.CreateGrant(pb.CreateGrantRequest(subject="alice", grant=TEAM))
            )
            assert "user, role" in nobody.message
            again = await refusal(stub.CreateUser(pb.CreateUserRequest(name="alice")))
            assert again.status == grpc.StatusCode.ALREADY_EXISTS

    run(check())


def test_no_password_is_in_what_a_refused_call_is_told() -> None:
    async def check() -> None:
        async with opened() as it:
            short = await refusal(
                it.stub.CreateUser(pb.CreateUserRequest(name="alice", password="xyzzy"))
            )
            assert short.status == grpc.StatusCode.INVALID_ARGUMENT
            assert "xyzzy" not in f"{short}"

    run(check())
