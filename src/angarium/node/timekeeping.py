"""The time a node goes by: it asks what the others' clocks say, and tells when its own is wrong.

`clocks` decides; here is what reads clocks, asks, and tells. Whatever in the node depends on the
time of day takes it from `Timekeeping.now`: append times, retention, expiry, delays, leases.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.ids import Micros, node_of
from angarium.node.clocks import DOUBT, SECOND, Clocks, Standing
from angarium.wire.operations import ClockAnswer, Operation

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.node.node import Node
    from angarium.replica.partition_replica import PartitionReplica

_log = logging.getLogger(__name__)

ROUND_S: Final = 1.0
"""How often the others are asked."""

FIRST_ROUND_S: Final = 0.1
"""The same while one that can be reached has not answered yet."""

ANSWER_S_MAX: Final = 2.0
"""What comes later than this tells too little."""

IDLE_MAX: Final = 24 * 3_600 * SECOND
"""A node that starts alone wonders about the time if its newest record is older than this."""

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps, where there is such a clock: sleeping is no jump."""


def wall_clock() -> Micros:
    """Return the wall clock's time."""
    return Micros(time.time_ns() // 1_000)


def steady_clock() -> int:
    """Return the time of a clock that nobody sets, in µs from whenever."""
    return time.clock_gettime_ns(_STEADY) // 1_000


class Timekeeping:
    """Keeps one node's time."""

    def __init__(self, node: Node) -> None:
        self.clocks = Clocks(skew_max=node.config.clock_skew_max_ms * 1_000)
        self._node = node
        self._told = Standing.UNKNOWN
        self._leaps = 0

    def now(self) -> Micros:
        """Return the time this node goes by."""
        now = self.clocks.now(wall=wall_clock(), steady=steady_clock())
        if self.clocks.leaps != self._leaps:
            self._leaps = self.clocks.leaps
            self._node.host.time_leapt()
        return now

    @property
    def is_wrong(self) -> bool:
        """Tell whether a majority agrees, and this node's clock with none of it."""
        return self.clocks.standing is Standing.WRONG

    def reasons(self) -> tuple[str, ...]:
        """Return why this node should not be relied on: others whose clocks agree are there."""
        return (self.complaint,) if self.is_wrong else ()

    def agrees(self, node: NodeId) -> bool:
        """Tell whether nothing is known against the clock of a node, this one included."""
        if node != self._node.id:
            return self.clocks.trusts(node)
        return self.clocks.standing in (Standing.AGREED, Standing.UNKNOWN)

    def ahead_ms(self, node: NodeId) -> int | None:
        """Return how far the clock of a node is ahead of what is believed; None if not known."""
        clocks = self.clocks
        ahead = clocks.ahead if node == self._node.id else clocks.ahead_of(node)
        return None if ahead is None else ahead // 1_000

    def trimming_now(self, age: int) -> Micros | None:
        """Return the time by which what is older than `age` may go; None while that is unknown."""
        return self.clocks.trimming_now(age, wall=wall_clock(), steady=steady_clock())

    async def run(self) -> None:
        """Compare clocks until cancelled."""
        self._wonder()
        self.look()  # nothing is known yet, and whoever drives the replicas has to know that
        while True:
            peers = self._node.peers
            up = [one for one in peers.ids if peers.is_up(one)]
            await asyncio.gather(*map(self._ask, up))
            self.look()
            is_known = self.clocks.standing is not Standing.UNKNOWN
            await asyncio.sleep(ROUND_S if is_known else FIRST_ROUND_S)

    async def _ask(self, node: NodeId) -> None:
        asked = steady_clock()
        try:
            frame = await self._node.peers.request(node, Operation.CLOCK, timeout_s=ANSWER_S_MAX)
            answer = frame.read(ClockAnswer)
        except AngariumError as error:
            _log.debug("node %d did not say what its clock says: %s", node, error)
            return
        heard = steady_clock()
        self.clocks.hear(node, asked=asked, heard=heard, wall=answer.wall)
        tick = self._node.config.tick_ms * 1_000
        self._node.host.round_trips.note(node, (heard - asked) / tick)
        if not self.clocks.is_compared:
            self.look()  # do not wait for those who may not answer at all

    def look(self) -> None:
        """Judge anew, and tell those who have to know."""
        node = self._node
        self.clocks.look(_others(node), wall=wall_clock(), steady=steady_clock())
        node.host.is_reluctant = self.clocks.is_reluctant
        node.host.may_take_over = self.clocks.is_compared
        node.host.round_trips.forget(node.peers.ids)
        if self.clocks.standing is not self._told:
            if complaint := self.complaint:
                has_jumped = self.clocks.standing is Standing.JUMPED
                away = self.clocks.jumped_by if has_jumped else self.clocks.ahead
                _log.warning("%s (%s)", complaint, _distance(away))
            elif self._told is not Standing.UNKNOWN and self.clocks.is_sure:
                _log.warning("the clock agrees with a majority of the cluster again")
            self._told = self.clocks.standing

    @property
    def complaint(self) -> str:
        """What is wrong with the clock, and what to do about it; empty if nothing is known."""
        clocks = self.clocks
        match clocks.standing:
            case Standing.WRONG:
                way = "behind" if (clocks.ahead or 0) < 0 else "ahead of"
                return (
                    f"this node's clock is {way} what a majority of the cluster says: set it (and"
                    " keep it so, with NTP); until then the node goes by the majority's time, leads"
                    " nothing that another one can lead, and trims nothing by age"
                )
            case Standing.SPLIT:
                return (
                    "the clocks of the cluster disagree, and no majority of them agrees: set them"
                    " (and keep them so, with NTP); until then nothing is trimmed by age"
                )
            case Standing.JUMPED:
                return (
                    f"the time may have jumped, and nobody can say whether it is right now: if it"
                    f" is not, set the clock; for {DOUBT // SECOND} s nothing is trimmed that is"
                    " not also too old by the time from before"
                )
        return ""

    def _wonder(self) -> None:
        """Compare the wall clock with the newest append time on disk: all that is known at first.

        Nobody can tell a node that was off for long from a clock that is ahead.
        """
        newest = max(map(_newest, self._node.host.replicas.values()), default=0)
        ahead = wall_clock() - newest
        if newest and ahead < -self.clocks.skew_max:
            _log.warning(
                "the clock is %s the newest record on disk: it is behind, or was ahead when that"
                " record was written; append times go on from there, at half speed, until it has"
                " caught up",
                _distance(ahead),
            )
        elif newest and ahead > IDLE_MAX:
            _log.warning(
                "the clock is %s the newest record on disk: the node was off, or idle, for so"
                " long, or its clock is ahead; a node without others to ask trims nothing by age"
                " for %d s",
                _distance(ahead),
                DOUBT // SECOND,
            )
            self.clocks.hold(steady_clock() + DOUBT)


def _others(node: Node) -> set[NodeId] | None:
    """Return who else is in the cluster; None if that is not known yet."""
    catalog = node.host.catalog
    if catalog is None:
        return None  # it was lost to damage
    members = set(node.catalog.machine.nodes.by_id)
    if node.id not in members:
        # A node that comes back has not heard yet how far the catalog is committed.
        state = catalog.raft.conf_state
        members = {node_of(one) for one in (*state.voters, *state.learners)}
    return members - {node.id} if node.id in members else None


def _newest(replica: PartitionReplica) -> int:
    """Return the latest append time that is known of a partition; later ones may be in the WAL."""
    partition = replica.partition
    written = max((one.last_time for one in partition.log.segments), default=0)
    return max(partition.machine.clock, written)


def _distance(ahead: int | None) -> str:
    """Return how far a clock is from another one, and which way."""
    away = abs(ahead or 0) / SECOND
    for unit, seconds in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if away >= 2 * seconds:
            said = f"{away / seconds:.1f} {unit}"
            break
    else:
        said = f"{away:.1f} s"
    return f"{said} {'behind' if (ahead or 0) < 0 else 'ahead of'}"
