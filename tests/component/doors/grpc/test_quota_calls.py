"""Quotas and join tokens over a real connection."""

from __future__ import annotations

import grpc
from tests.component.doors.grpc.opened import opened, refusal
from tests.on_a_loop import run

from angarium.proto.v1 import broker_pb2 as pb

REQUESTS = pb.QuotaLimit(kind=pb.QUOTA_KIND_REQUESTS, limit=2_000)
UNLIMITED = pb.QuotaLimit(kind=pb.QUOTA_KIND_BYTES_IN, limit=-1)


def test_a_quota_is_set_added_to_described_and_removed() -> None:
    async def check() -> None:
        async with opened() as it:
            stub = it.stub
            await stub.CreateUser(pb.CreateUserRequest(name="alice"))
            alice = pb.SetQuotaRequest(
                subject_kind=pb.QUOTA_SUBJECT_USER, subject="alice", limits=[REQUESTS]
            )
            made = (await stub.SetQuota(alice)).quota
            assert (made.subject_kind, made.subject) == (pb.QUOTA_SUBJECT_USER, "alice")
            assert list(made.limits) == [REQUESTS]
            more = pb.SetQuotaRequest(
                subject_kind=pb.QUOTA_SUBJECT_USER, subject="alice", limits=[UNLIMITED]
            )
            both = (await stub.SetQuota(more)).quota
            assert {one.kind: one.limit for one in both.limits} == {
                pb.QUOTA_KIND_REQUESTS: 2_000,
                pb.QUOTA_KIND_BYTES_IN: -1,
            }
            less = pb.SetQuotaRequest(
                subject_kind=pb.QUOTA_SUBJECT_USER,
                subject="alice",
                cleared=[pb.QUOTA_KIND_REQUESTS],
            )
            assert list((await stub.SetQuota(less)).quota.limits) == [UNLIMITED]
            asked = pb.DescribeQuotaRequest(subject_kind=pb.QUOTA_SUBJECT_USER, subject="alice")
            found = (await stub.DescribeQuota(asked)).quota
            counted = {one.kind: one for one in found.counts}
            assert not counted[pb.QUOTA_KIND_REQUESTS].HasField("limit"), "nothing limits it"
            topics = pb.SetQuotaRequest(
                subject_kind=pb.QUOTA_SUBJECT_TOPIC,
                subject="team-a*",
                limits=[pb.QuotaLimit(kind=pb.QUOTA_KIND_STORED_BYTES, limit=1 << 40)],
            )
            await stub.SetQuota(topics)
            listed = (await stub.ListQuotas(pb.ListQuotasRequest())).quotas
            assert [one.subject for one in listed] == ["alice", "team-a"]
            under = pb.DescribeQuotaRequest(subject_kind=pb.QUOTA_SUBJECT_TOPIC, subject="team-a")
            (stored,) = (await stub.DescribeQuota(under)).quota.counts
            assert stored.limit == 1 << 40
            gone = pb.DeleteQuotaRequest(subject_kind=pb.QUOTA_SUBJECT_USER, subject="alice")
            await stub.DeleteQuota(gone)
            again = await refusal(stub.DeleteQuota(gone))
            assert (again.status, again.code) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")

    run(check())


def test_a_join_token_is_issued_listed_and_withdrawn() -> None:
    async def check() -> None:
        async with opened() as it:
            stub = it.stub
            issued = await stub.CreateJoinToken(pb.CreateJoinTokenRequest(until_us=5_000_000))
            assert issued.secret.startswith("angj_")
            assert (issued.info.id, issued.info.until_us) == (1, 5_000_000)
            assert not issued.info.HasField("used_by")
            for_an_hour = await stub.CreateJoinToken(pb.CreateJoinTokenRequest())
            assert for_an_hour.info.until_us > 3_600_000_000
            listed = await stub.ListJoinTokens(pb.ListJoinTokensRequest())
            assert [one.id for one in listed.tokens] == [1, 2]
            assert issued.secret not in str(listed)
            await stub.DeleteJoinToken(pb.DeleteJoinTokenRequest(token=1))
            left = (await stub.ListJoinTokens(pb.ListJoinTokensRequest())).tokens
            assert [one.id for one in left] == [2]
            gone = await refusal(stub.DeleteJoinToken(pb.DeleteJoinTokenRequest(token=1)))
            assert gone.code == "NOT_FOUND"
            late = await refusal(
                stub.CreateJoinToken(pb.CreateJoinTokenRequest(until_us=2_000_000_000_000_000))
            )
            assert (late.code, "7 days" in late.message) == ("INVALID_ARGUMENT", True)

    run(check())


def test_a_quota_that_makes_no_sense_is_refused() -> None:
    async def check() -> None:
        async with opened() as it:
            default = pb.QUOTA_SUBJECT_DEFAULT
            stored = pb.QuotaLimit(kind=pb.QUOTA_KIND_STORED_BYTES, limit=1)
            refused = {
                "say which kind of subject": pb.SetQuotaRequest(limits=[REQUESTS]),
                "say which kind of quota": pb.SetQuotaRequest(
                    subject_kind=default, limits=[pb.QuotaLimit(limit=1)]
                ),
                "each thing once": pb.SetQuotaRequest(
                    subject_kind=default, limits=[REQUESTS, REQUESTS]
                ),
                "at least one thing": pb.SetQuotaRequest(subject_kind=default),
                "it has no name": pb.SetQuotaRequest(
                    subject_kind=default, subject="alice", limits=[REQUESTS]
                ),
                "above 0": pb.SetQuotaRequest(
                    subject_kind=default, limits=[pb.QuotaLimit(kind=pb.QUOTA_KIND_REQUESTS)]
                ),
                "stored_bytes": pb.SetQuotaRequest(subject_kind=default, limits=[stored]),
            }
            for word, request in refused.items():
                told = await refusal(it.stub.SetQuota(request))
                assert told.status == grpc.StatusCode.INVALID_ARGUMENT
                assert word in told.message

    run(check())
