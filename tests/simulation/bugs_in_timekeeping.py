"""Bugs planted in what a node makes of clocks: its own, and the others'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import Variant

from angarium.delivery.retry_times import RetryTimes
from angarium.ids import Micros
from angarium.lending.host import GroupHost
from angarium.node.clocks import Clocks
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.faults import FaultProfile
from angarium.testing.sim.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.node.clocks import Standing

ahead_while_consuming: Final = Variant(
    "ahead while consuming",
    Settings(
        nodes=3,
        producers=2,
        members=3,
        faults_min=12,
        faults=FaultProfile(
            weights={"clocks_ahead": 12, "crash": 3, "transfer": 4, "isolate_leader": 2},
            gaps_ms=(400, 600),
        ),
    ),
)
"""All clocks go an hour ahead and are set right again, while groups consume and leaders change."""

mistimed: Final = Variant(
    "mistimed",
    Settings(
        nodes=3,
        retention=4 * SECOND,
        faults_min=20,
        faults=FaultProfile(
            weights={
                "clock_jump": 10,
                "clock_drift": 6,
                "crash": 3,
                "transfer": 6,
                "pause": 2,
                "isolate_leader": 2,
                "bad_weather": 2,
            },
            gaps_ms=(400, 600),
        ),
    ),
)
"""Clocks jump and drift, one at a time, while leaders change and trim what is older than 4 s."""


@bug(seeds_max=4, run=mistimed)
def trims_by_its_own_clock() -> Iterator[Replaced]:
    """A leader trims what is too old by what its own clock says."""

    def trimming_now(_: Clocks, *, wall: int, steady: int) -> Micros:
        return Micros(wall)

    yield Replaced(Clocks, "trimming_now", trimming_now)


@bug(seeds_max=4, run=mistimed)
def append_times_are_not_bounded() -> Iterator[Replaced]:
    """A leader stamps records with what its own clock says."""

    def now(_: Clocks, *, wall: int, steady: int) -> Micros:
        return Micros(wall)

    yield Replaced(Clocks, "now", now)


@bug(seeds_max=4, run=mistimed)
def any_clock_is_believed() -> Iterator[Replaced]:
    """A time is believed as soon as one node says that it has come, not a majority."""
    original = Clocks._look_around

    def look_around(self: Clocks, members: int, steady: int) -> Standing:
        return original(self, 1, steady)

    yield Replaced(Clocks, "_look_around", look_around)


@bug(seeds_max=4, run=ahead_while_consuming)
def retries_wait_for_the_clock() -> Iterator[Replaced]:
    """A record that failed waits for the time that was computed by a clock, however wrong."""

    def at(self: RetryTimes, offset: int, now: Micros) -> int:
        del now
        return self.group.attempts[offset].not_before

    yield Replaced(RetryTimes, "at", at)


@bug(seeds_max=4, run=ahead_while_consuming)
def leases_outlive_a_wrong_clock() -> Iterator[Replaced]:
    """A lease that was given while the clock was ahead ends when the right clock comes to there."""

    def look_at_time(_: GroupHost) -> None:
        """Do not notice that the time has leapt."""

    yield Replaced(GroupHost, "look_at_time", look_at_time)
