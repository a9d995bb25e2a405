"""Whose clock is right: what a node knows of the others' clocks, and what time it goes by.

Every node asks the others, again and again, what their clocks say. An answer was given somewhere
between the question and its arrival, so it says within which *span* the other clock lies. Spans are
kept as distances from a steady clock of the node's own, which nobody sets: if its wall clock jumps,
the spans of the others stay where they are, and the jump shows at once.

A time is *believed* if a majority of the cluster says that it has come (`_high` is the latest such
time), and not yet so long ago that a majority says it is past (`_low` is the earliest one). The
node goes by its own clock as long as that is believed, and by the nearest time that is believed
otherwise. So one wrong clock, or any minority of them, moves nobody's time by more than
`skew_max`; a majority of wrong clocks does.

What is believed may jump: a majority is set at once, or a machine was paused, or the node is alone
and has nobody else to ask. The node follows, because a machine that was paused is right afterwards,
and a record stamped too early would be trimmed too early. But for a while it doubts: nothing is
trimmed that is not too old by both times.

Nothing here reads a clock: the caller says what the clocks say. All times are in µs.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.ids import Micros

if TYPE_CHECKING:
    from collections.abc import Collection

    from angarium.ids import NodeId

SECOND: Final = 1_000_000

SAMPLE_AGE_MAX: Final = 30 * SECOND
"""An answer counts for so long. A node that has not answered for longer is not counted at all."""

SAMPLES_MAX: Final = 8
"""Answers of each node that are remembered: the one that was quickest to come counts."""

DRIFT_PER_SECOND: Final = 500
"""By how much a span is widened for every second of its age (500 ppm: a poor crystal has 100)."""

DOUBT: Final = 600 * SECOND
"""A time that has jumped is doubted for so long: meanwhile what is too old by the new time alone is
not trimmed."""

SLEW: Final = 10
"""A node corrects its time by 1/this of the time that passes: it neither jumps nor goes back."""


class Standing(Enum):
    """How a node's clock stands among those of its cluster."""

    AGREED = "agreed"
    """A majority agrees, and this node with it."""
    WRONG = "wrong"
    """A majority agrees, and this node does not."""
    SPLIT = "split"
    """Enough were asked, and no majority agrees: with two nodes, either may be wrong."""
    JUMPED = "jumped"
    """All at once the time is another, and nobody can say which one is right."""
    UNKNOWN = "unknown"
    """Too few have answered."""


class Span(NamedTuple):
    """Where a clock lies, as distances from this node's steady clock."""

    low: int
    high: int
    at: int
    """When it was heard, by the steady clock."""

    def widened(self, steady: int) -> Span:
        """Return where the clock may have drifted to since."""
        drift = max(steady - self.at, 0) // SECOND * DRIFT_PER_SECOND
        return Span(self.low - drift, self.high + drift, self.at)

    @property
    def width(self) -> int:
        """How exactly it is known."""
        return self.high - self.low


class Clocks:
    """What one node knows of all clocks of its cluster."""

    def __init__(self, *, skew_max: int, sample_age_max: int = SAMPLE_AGE_MAX) -> None:
        """Let clocks agree that are no further apart than `skew_max` µs."""
        self.skew_max = skew_max
        self._sample_age_max = sample_age_max
        self.standing = Standing.UNKNOWN
        self._half = skew_max // 2
        self._samples: dict[NodeId, list[Span]] = {}
        self._spans: dict[NodeId, Span] = {}
        """Those that count, as of the last look."""
        self._own = 0
        self._is_heard = False
        """True once a majority has answered."""
        self._low: int | None = None
        self._high: int | None = None
        self._accepted: int | None = None
        """The time that was believed when there was no doubt."""
        self._believed: int | None = None
        """The time that a majority agreed on last, doubted or not."""
        self._doubted_since: int | None = None
        self._held_until: int | None = None
        self._is_held = False
        self._offset: int | None = None
        self._told: int | None = None
        self._told_at = 0
        self.leaps = 0
        """How often the time that was told has leapt, ahead or back, instead of going on."""

    def round_trip(self, node: NodeId) -> int | None:
        """Return how long the quickest of a node's last answers took, in µs; None without any."""
        return min((one.width for one in self._samples.get(node, ())), default=None)

    # --- what follows -----------------------------------------------------------------------

    @property
    def is_sure(self) -> bool:
        """Tell whether it is known how old a record is."""
        return self.standing is Standing.AGREED

    @property
    def is_compared(self) -> bool:
        """Tell whether a majority has ever agreed: before that, nobody knows what time it is."""
        return self._believed is not None

    @property
    def is_reluctant(self) -> bool:
        """Tell whether somebody else had better lead: the clock is wrong, or not compared yet."""
        return self.standing in (Standing.WRONG, Standing.UNKNOWN)

    @property
    def ahead(self) -> int | None:
        """How far this clock is ahead of what is believed; negative if it is behind."""
        return self._ahead(self._own)

    def ahead_of(self, node: NodeId) -> int | None:
        """Return the same of another node's clock; None if that is not known."""
        span = self._spans.get(node)
        return None if span is None else self._ahead((span.low + span.high) // 2)

    @property
    def jumped_by(self) -> int:
        """How far what is believed has moved from what was believed without doubt."""
        return (self._believed or 0) - (self._accepted or 0)

    def trusts(self, node: NodeId) -> bool:
        """Tell whether nothing is known against the clock of another node."""
        span = self._spans.get(node)
        if span is None or self.standing in (Standing.SPLIT, Standing.UNKNOWN):
            return True
        return self._fits(span)

    def now(self, *, wall: int, steady: int) -> Micros:
        """Return the time to go by, given what both clocks of this node say."""
        target = wall - steady
        if self._low is not None and self._high is not None:
            # Where no time is believed by a majority, none is given that is too late for one.
            target = min(max(target, self._low), self._high)
        offset = self._offset
        if offset is not None and target != offset and abs(target - offset) <= self.skew_max:
            step = (steady - self._told_at) // SLEW
            target = offset + min(max(target - offset, -step), step)
        if self._told is not None and abs(target - self._told) * SLEW > steady - self._told_at:
            self.leaps += 1
        self._offset, self._told, self._told_at = target, target, steady
        return Micros(steady + target)

    def trimming_now(self, age: int, *, wall: int, steady: int) -> Micros | None:
        """Return the time by which what is older than `age` may go; None while that is not known.

        After a jump that is the earlier one of both times. But once the jump itself is so long ago,
        whatever was stamped before it is too old by the steady clock, and whatever was stamped
        since is judged by the clock that stamped it.
        """
        now = self.now(wall=wall, steady=steady)
        if self.is_sure:
            return now
        since, accepted = self._doubted_since, self._accepted
        is_doubted = self.standing is Standing.JUMPED and not self._is_held
        if not is_doubted or since is None or accepted is None:
            return None
        return now if steady - since >= age else Micros(min(now, steady + accepted))

    # --- what is heard ----------------------------------------------------------------------

    def hear(self, node: NodeId, *, asked: int, heard: int, wall: int) -> None:
        """Take an answer: `node` said `wall`, asked and heard when the steady clock said so."""
        if heard - asked > self._half:
            return  # it took too long to tell anything
        span = Span(wall - heard, wall - asked, heard)
        kept = self._samples.get(node, [])
        if any(not _overlap(one.widened(heard), span) for one in kept):
            kept = []  # that clock has been set since
        self._samples[node] = [*kept[-(SAMPLES_MAX - 1) :], span]

    def hold(self, until: int) -> None:
        """As long as this node is alone, trim nothing by age before the steady clock says this."""
        self._held_until = until

    def look(self, others: Collection[NodeId] | None, *, wall: int, steady: int) -> Standing:
        """Judge anew, for a cluster of this node and `others`; None if its members are unknown."""
        self._own = wall - steady
        self._spans = {}
        for node in list(self._samples):
            fresh = [
                one.widened(steady)
                for one in self._samples[node]
                if steady - one.at <= self._sample_age_max
            ]
            if not fresh or (others is not None and node not in others):
                del self._samples[node]
            else:
                self._spans[node] = min(fresh, key=lambda one: one.width)
        if others is None:
            self.standing = Standing.UNKNOWN
        elif others:
            self.standing = self._look_around(len(others) + 1, steady)
        else:
            self.standing = self._look_alone(steady)
        return self.standing

    def _look_around(self, members: int, steady: int) -> Standing:
        self._is_held = False
        own = Span(self._own, self._own, steady)
        spans = [own, *self._spans.values()]
        majority = members // 2 + 1
        if len(spans) < majority:
            # What a majority believed goes on to be believed. If none was ever heard, all that
            # were heard count: no time is given that is too late for one of them.
            if self._is_heard:
                return Standing.UNKNOWN
            self._bound(spans, len(spans))
            return Standing.UNKNOWN
        if not self._is_heard:
            # What was told before anybody was heard is nothing to go on from by small steps: the
            # time is at once what a majority allows.
            self._is_heard, self._offset = True, None
        self._bound(spans, majority)
        assert self._low is not None
        assert self._high is not None
        if sum(map(self._fits, spans)) < majority:
            if self._believed is not None:
                # A node that was right before is not wrong because another one is: what is
                # stamped meanwhile by an earlier time would be trimmed as soon as all agree again.
                self._low, self._high = self._believed - self._half, self._believed + self._half
            return Standing.SPLIT
        is_doubted = self._is_doubted((self._low + self._high) // 2, steady)
        if not self._fits(own):
            return Standing.WRONG
        return Standing.JUMPED if is_doubted else Standing.AGREED

    def _bound(self, spans: list[Span], needed: int) -> None:
        """Believe the times that this many nodes say have come, and this many say are not past."""
        self._high = sorted((one.high for one in spans), reverse=True)[needed - 1] + self._half
        self._low = sorted(one.low for one in spans)[needed - 1] - self._half

    def _look_alone(self, steady: int) -> Standing:
        is_doubted = self._is_doubted(self._own, steady)
        self._low, self._high = self._own - self._half, self._own + self._half
        self._is_held = self._held_until is not None and steady < self._held_until
        return Standing.JUMPED if is_doubted or self._is_held else Standing.AGREED

    def _is_doubted(self, believed: int, steady: int) -> bool:
        """Tell whether what is believed now is far from what was before, and for too short."""
        since, before = self._doubted_since, self._believed
        self._believed = believed
        is_near = self._accepted is None or abs(believed - self._accepted) <= self.skew_max
        if is_near or (since is not None and steady - since >= DOUBT):
            self._accepted, self._doubted_since = believed, None
            return False
        if since is None or before is None or abs(believed - before) > self.skew_max:
            self._doubted_since = steady  # it jumped, perhaps again
        return True

    def _fits(self, span: Span) -> bool:
        assert self._low is not None
        assert self._high is not None
        return span.low - self._half <= self._high and span.high + self._half >= self._low

    def _ahead(self, offset: int) -> int | None:
        if self._low is None or self._high is None:
            return None
        return offset - (self._low + self._high) // 2


def _overlap(one: Span, other: Span) -> bool:
    return one.low <= other.high and other.low <= one.high
