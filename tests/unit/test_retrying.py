"""After which errors something is tried again, how long it waits in between, and when it ends."""

from __future__ import annotations

import asyncio

import pytest

from angarium.errors import (
    AngariumError,
    DeadlineExceeded,
    InvalidArgument,
    LimitExceeded,
    NotLeader,
    OutcomeUnknown,
)
from angarium.retrying import Backoff, Tries, is_worth_repeating


def test_pauses_grow_to_their_longest_and_chance_only_shortens_them() -> None:
    backoff = Backoff(first_s=0.1, factor=2, longest_s=1.0, jitter=0.5)
    assert [backoff.pause_s(attempt, 0.0) for attempt in range(6)] == pytest.approx(
        [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    )
    assert backoff.pause_s(2, 0.999) == pytest.approx(0.2, abs=0.001)
    assert backoff.pause_s(10**9, 0.0) == 1.0


def test_pauses_end_where_the_time_would_be_up() -> None:
    async def main() -> None:
        now = asyncio.get_running_loop().time()
        tries = Tries(Backoff(first_s=10, longest_s=100), deadline=now + 25, chance=lambda: 0.0)
        assert tries.next_pause_s() == 10
        assert tries.next_pause_s() == 20
        assert tries.next_pause_s() is None
        assert not await tries.pause()
        assert tries.failures == 4

    asyncio.run(main())


def test_who_was_told_to_wait_waits_at_least_so_long_and_not_in_step() -> None:
    async def main() -> None:
        now = asyncio.get_running_loop().time()
        tries = Tries(Backoff(first_s=1, longest_s=4), deadline=now + 25, chance=lambda: 0.5)
        assert tries.next_pause_s(at_least_s=2) == pytest.approx(2.1)
        assert tries.next_pause_s(at_least_s=0.1) == pytest.approx(1.5)
        assert tries.next_pause_s(at_least_s=30) is None

    asyncio.run(main())


def test_a_success_makes_pauses_short_again() -> None:
    async def main() -> None:
        tries = Tries(Backoff(first_s=1e-6, longest_s=1e-3), chance=lambda: 0.0)
        assert await tries.pause()
        assert await tries.pause()
        tries.succeeded()
        assert tries.next_pause_s() == 1e-6

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "if_it_may_be", "if_it_must_not"),
    [
        (NotLeader(), True, True),
        (OutcomeUnknown("perhaps"), True, False),
        (DeadlineExceeded("perhaps"), True, False),
        (InvalidArgument("never"), False, False),
        (LimitExceeded("credit_max", "too many"), False, False),
        (LimitExceeded("outgoing_bytes_max", "for a moment"), True, True),
    ],
)
def test_what_is_worth_repeating(
    error: AngariumError, if_it_may_be: bool, if_it_must_not: bool
) -> None:
    passing = {"outgoing_bytes_max"}
    assert is_worth_repeating(error, passing=passing) is if_it_may_be
    assert is_worth_repeating(error, may_repeat=False, passing=passing) is if_it_must_not
