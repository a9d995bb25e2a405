"""Copies are quick while nobody publishes, and gentle while publishers have to wait for them."""

from __future__ import annotations

from angarium.node.pacing import BUSY, IDLE_TICKS, CopyPacing
from angarium.replica.pacing import OUTRUN_TIMES_MAX

TICK_S = 0.05
LEAST, MOST = 8 << 20, 512 << 20


def a_pacing(*, most: int = MOST) -> CopyPacing:
    return CopyPacing(tick_s=TICK_S, bytes_per_s_min=LEAST, bytes_per_s_max=most)


def pass_ticks(
    pacing: CopyPacing,
    ticks: int,
    *,
    round_ms: float | None = None,
    rounds: int = 20,
    share: float = 0.3,
    copying: bool = True,
    outrun_times: int = 0,
) -> float:
    """Let ticks pass in which copies take whatever they may; return the pace then."""
    allowed = round(pacing.bytes_per_s * TICK_S)
    for _ in range(ticks):
        for _ in range(rounds if round_ms is not None else 0):
            pacing.round_took((round_ms or 0.0) / 1_000)
        allowed = pacing.next_tick(
            share=share, passed_bytes=allowed if copying else 0, outrun_times=outrun_times
        )
    return pacing.bytes_per_s


def test_a_copy_begins_gently_and_is_at_its_fastest_within_seconds_where_nobody_publishes() -> None:
    pacing = a_pacing()
    assert pacing.bytes_per_s == LEAST
    assert pass_ticks(pacing, 300) == MOST


def test_without_an_upper_bound_it_grows_with_what_is_used() -> None:
    assert pass_ticks(a_pacing(most=0), 400) > MOST


def test_it_yields_to_publishers_whose_rounds_take_longer_than_in_quiet() -> None:
    pacing = a_pacing()
    pass_ticks(pacing, 100, round_ms=1.0, copying=False)
    quick = pass_ticks(pacing, 100, round_ms=1.1)
    assert quick > 4 * LEAST
    assert pass_ticks(pacing, 40, round_ms=3.0) == LEAST
    assert pass_ticks(pacing, 300, round_ms=1.0) == MOST


def test_it_yields_to_a_loop_that_is_busy_with_whatever_it_is() -> None:
    pacing = a_pacing()
    pass_ticks(pacing, 300)
    assert pass_ticks(pacing, 60, share=BUSY + 0.1) == LEAST


def test_a_lonely_publish_that_waits_does_not_slow_it_down() -> None:
    pacing = a_pacing()
    pass_ticks(pacing, 100, round_ms=1.0, rounds=1, copying=False)
    assert pass_ticks(pacing, 300, round_ms=20.0, rounds=1) == MOST


def test_what_rounds_take_while_copies_pass_is_not_taken_for_quiet() -> None:
    pacing = a_pacing()
    pass_ticks(pacing, 100, round_ms=1.0, copying=False)
    assert pass_ticks(pacing, 2_000, round_ms=3.0) == LEAST


def test_the_next_copy_begins_gently_again() -> None:
    pacing = a_pacing()
    pass_ticks(pacing, 300)
    pass_ticks(pacing, IDLE_TICKS // 2, copying=False)
    assert pacing.bytes_per_s == MOST, "from far away an answer takes some ticks"
    pass_ticks(pacing, IDLE_TICKS, copying=False)
    assert pacing.bytes_per_s == LEAST


def test_an_upper_bound_below_the_lower_one_counts() -> None:
    pacing = a_pacing(most=1 << 20)
    assert pass_ticks(pacing, 300) == 1 << 20
    assert pass_ticks(pacing, 100, share=1.0) == 1 << 20


def test_the_least_pace_of_a_copy_that_was_outrun_grows_each_time() -> None:
    pacing = a_pacing()
    for times, least in ((0, LEAST), (1, 4 * LEAST), (2, 16 * LEAST)):
        assert pass_ticks(pacing, 40, share=1.0, outrun_times=times) == least
    # It follows by now: others yield as ever.
    assert pass_ticks(pacing, 40, share=1.0) == LEAST


def test_a_copy_that_was_outrun_begins_at_its_greater_pace_and_still_grows_in_quiet() -> None:
    pacing = a_pacing()
    pass_ticks(pacing, 2 * IDLE_TICKS, copying=False)
    assert pass_ticks(pacing, 1, outrun_times=1) == 4 * LEAST
    assert pass_ticks(pacing, 300, outrun_times=1) == MOST


def test_the_upper_bound_counts_for_a_copy_that_was_outrun_too() -> None:
    pacing = a_pacing(most=20 << 20)
    for share in (0.0, 1.0):
        assert pass_ticks(pacing, 300, share=share, outrun_times=OUTRUN_TIMES_MAX) == 20 << 20
    unbounded = a_pacing(most=0)
    assert pass_ticks(unbounded, 40, share=1.0, outrun_times=OUTRUN_TIMES_MAX) < float("inf")
