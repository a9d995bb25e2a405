"""Buckets that fill and are drawn from, and which quotas count for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.api.access import Principal, Proof
from angarium.api.quotas import UNLIMITED, QuotaKind, QuotaSubject
from angarium.machine.catalog import QuotaRow
from angarium.security.quotas import SHORTEST_S, Bucket, Quotas, stored_limits

ALICE = Principal(name="alice", proof=Proof.PASSWORD)


# --- buckets --------------------------------------------------------------------------------------


def test_a_full_bucket_lets_a_seconds_worth_through_at_once_and_the_rest_wait() -> None:
    bucket = Bucket(rate=10, now=100.0)
    for _ in range(10):
        assert bucket.wait_s(100.0) == 0
        bucket.take(1, 100.0)
    bucket.take(1, 100.0)
    assert bucket.wait_s(100.0) == pytest.approx(0.1)
    assert bucket.wait_s(100.05) == pytest.approx(0.05)
    assert bucket.wait_s(100.1) == 0


def test_what_is_larger_than_the_bucket_gets_through_and_leaves_a_debt() -> None:
    bucket = Bucket(rate=1_000, now=0.0)
    assert bucket.wait_s(0.0) == 0
    bucket.take(64_000, 0.0)
    assert bucket.wait_s(0.0) == pytest.approx(63.0)
    assert bucket.wait_s(62.0) == pytest.approx(1.0)


def test_a_bucket_does_not_fill_beyond_a_second_however_long_nobody_came() -> None:
    bucket = Bucket(rate=10, now=0.0)
    bucket.take(10, 0.0)
    bucket.take(11, 1_000.0)
    assert bucket.wait_s(1_000.0) == pytest.approx(0.1)


def test_a_slow_bucket_lets_one_through_at_a_time() -> None:
    bucket = Bucket(rate=0.5, now=0.0)
    bucket.take(1, 0.0)
    assert bucket.wait_s(0.0) == 0
    bucket.take(1, 0.0)
    assert bucket.wait_s(0.0) == pytest.approx(2.0)


def test_a_debt_stays_when_the_rate_changes_and_is_paid_at_the_new_one() -> None:
    bucket = Bucket(rate=10, now=0.0)
    bucket.take(30, 0.0)
    bucket.set_rate(20, 0.0)
    assert bucket.wait_s(0.0) == pytest.approx(1.0)
    bucket.set_rate(1, 10.0)
    bucket.take(1, 10.0)
    assert bucket.wait_s(10.0) == 0, "it holds no more than what comes in a second now"


def test_a_charge_that_is_taken_back_was_none() -> None:
    bucket = Bucket(rate=10, now=0.0)
    bucket.take(15, 0.0)
    bucket.give_back(15)
    bucket.give_back(100)
    bucket.take(10, 0.0)
    assert bucket.wait_s(0.0) == 0
    bucket.take(1, 0.0)
    assert bucket.wait_s(0.0) > 0


def test_a_clock_that_goes_back_fills_nothing() -> None:
    bucket = Bucket(rate=10, now=100.0)
    bucket.take(20, 100.0)
    assert bucket.wait_s(50.0) == pytest.approx(1.0)
    assert bucket.wait_s(100.5) == pytest.approx(0.5)


@given(
    rate=st.floats(0.5, 1e9),
    steps=st.lists(st.tuples(st.floats(0, 5), st.floats(0, 3)), min_size=1, max_size=60),
)
def test_whoever_waits_as_told_never_gets_more_than_the_rate_and_one_go(
    rate: float, steps: list[tuple[float, float]]
) -> None:
    """Times are in seconds, amounts in seconds' worth of the rate."""
    bucket = Bucket(rate, now=0.0)
    now = taken = largest = 0.0
    for pause_s, worth in steps:
        now += pause_s
        now += bucket.wait_s(now)
        assert bucket.wait_s(now) == 0
        bucket.take(worth * rate, now)
        taken += worth * rate
        largest = max(largest, worth * rate)
        assert taken <= rate * (now + SHORTEST_S) * 1.000_001 + bucket.size + largest


# --- whose quota counts ---------------------------------------------------------------------------


def row(kind: QuotaSubject, subject: str = "", **limits: int) -> QuotaRow:
    return QuotaRow(kind.value, subject, tuple(limits.items()))


def amounts(quotas: Quotas, who: Principal, *roles: str) -> dict[str, int]:
    return {kind.value: limit.amount for kind, limit in quotas.limits_of(who, roles).items()}


def test_a_users_own_quota_counts_before_its_roles_and_those_before_the_default() -> None:
    quotas = Quotas(
        [
            row(QuotaSubject.DEFAULT, bytes_in=1, requests=1, publishes=1, connections=1),
            row(QuotaSubject.ROLE, "reader", bytes_in=2, requests=2, publishes=2),
            row(QuotaSubject.USER, "alice", bytes_in=3, requests=3),
        ]
    )
    assert amounts(quotas, ALICE, "reader") == {
        "bytes_in": 3,
        "requests": 3,
        "publishes": 2,
        "connections": 1,
    }
    limits = quotas.limits_of(ALICE, ["reader"])
    assert limits[QuotaKind.BYTES_IN].why == "the quota of user 'alice'"
    assert limits[QuotaKind.PUBLISHES].why == "the quota of role 'reader'"
    assert limits[QuotaKind.CONNECTIONS].why == "the default quota"
    bob = Principal(name="bob", proof=Proof.PASSWORD)
    assert amounts(quotas, bob) == {"bytes_in": 1, "requests": 1, "publishes": 1, "connections": 1}


def test_of_several_roles_the_most_generous_counts_limit_by_limit() -> None:
    quotas = Quotas(
        [
            row(QuotaSubject.DEFAULT, requests=1, publishes=1),
            row(QuotaSubject.ROLE, "small", requests=5, publishes=500),
            row(QuotaSubject.ROLE, "large", requests=50, publishes=50),
            row(QuotaSubject.ROLE, "free", requests=UNLIMITED),
        ]
    )
    assert amounts(quotas, ALICE, "small", "large") == {"requests": 50, "publishes": 500}
    assert amounts(quotas, ALICE, "small", "free") == {"publishes": 500}


def test_who_is_unlimited_is_not_limited_by_the_default() -> None:
    quotas = Quotas(
        [
            row(QuotaSubject.DEFAULT, requests=1),
            row(QuotaSubject.USER, "alice", requests=UNLIMITED),
        ]
    )
    assert amounts(quotas, ALICE) == {}


def test_somebody_elses_word_brings_nobody_the_quota_of_a_user() -> None:
    quotas = Quotas(
        [row(QuotaSubject.DEFAULT, requests=1), row(QuotaSubject.USER, "alice", requests=100)]
    )
    claimed = Principal(name="alice", proof=Proof.JWT)
    assert amounts(quotas, claimed) == {"requests": 1}


def test_what_only_a_newer_release_limits_limits_nothing_here() -> None:
    quotas = Quotas([QuotaRow("user", "alice", (("moons", 2), ("requests", 5)))])
    assert amounts(quotas, ALICE) == {"requests": 5}
    assert Quotas([QuotaRow("planet", "earth", (("requests", 5),))]).is_empty


def test_prefixes_end_at_a_boundary_and_every_name_leaves_out_the_clusters_own() -> None:
    rows = [
        row(QuotaSubject.TOPIC, "team-a", stored_bytes=10),
        row(QuotaSubject.TOPIC, "", stored_bytes=100),
        row(QuotaSubject.TOPIC, "team-b", stored_bytes=UNLIMITED),
        row(QuotaSubject.USER, "alice", requests=1),
    ]
    team, every = stored_limits(rows)
    assert (team.amount, every.amount) == (10, 100)
    assert team.covers("team-a")
    assert team.covers("team-a.orders")
    assert not team.covers("team-ab")
    assert every.covers("anything")
    assert not every.covers("angarium.dlq")
