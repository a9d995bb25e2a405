"""Where a record goes when its producer does not say.

Its topic's layout says: by the key's hash, or in turn (`angarium.api.layout`), and of a homed topic
in the region of the door. What a topic looks like is remembered for a little while, so that a
publish costs no second request; a topic that has just been given more partitions is noticed after
`AGE_MAX_S` at the latest, and a region that has lost its partitions when `Homes` says so.

Whoever may send the same publish again, under a key or a number of its own, may send it to a door
in another region. Its records are dealt over all partitions, so that they find the same one there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from angarium.api import TopicConfig
from angarium.api.homes import Homes, home_lost
from angarium.api.layout import Layout, former_layouts, layout_of
from angarium.errors import HomeLost, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker
    from angarium.ids import TopicId

AGE_MAX_S: Final = 2.0
"""How long a topic's shape is believed; then it is asked for again."""

DOUBT_MAX_S: Final = 0.5
"""The same while nobody leads anything in some region of the topic."""

TOPICS_MAX: Final = 10_000
"""Topics remembered. At the bound the one remembered longest is forgotten, and asked for again."""


@dataclass(slots=True, kw_only=True)
class TopicShape:
    """What a door has to know about a topic."""

    layout: Layout
    """Of publishes that come once."""
    steady: Layout
    """Of publishes that may come again, by whichever door."""
    batch_bytes_max: int
    read_at: float
    age_max_s: float = AGE_MAX_S
    turn: int
    """How often the turn has gone on among records without a key."""
    refusal: HomeLost | None = None
    """Why nothing that comes once may be published now."""
    id: TopicId | None = None
    """None of a topic that is not there yet."""
    former: tuple[Layout, ...] = ()
    """By which publishes that may come again were dealt before partitions were added, oldest
    first; none of a topic that has never been given any."""
    begun: tuple[int, ...] = ()
    """When each layout came into force, as far as that was noted; else 0."""
    sole: int | None = field(init=False)
    """The partition of every record that comes once and has no key, if there is no other."""

    def __post_init__(self) -> None:
        self.sole = self.layout.only if self.refusal is None else None

    @property
    def partitions(self) -> int:
        """How many partitions the topic has."""
        return self.layout.total

    def partition_for(self, key: bytes | None, *, may_repeat: bool = False) -> int:
        """Return the partition for a record with this key.

        `HomeLost` if the topic has publishes refused where they would go.
        """
        if self.refusal is not None and not may_repeat:
            raise self.refusal
        layout = self.steady if may_repeat else self.layout
        if key is not None:
            return layout.of_key(key)
        self.turn += 1
        return layout.in_turn(self.turn)

    def under(self, layout: Layout) -> TopicShape:
        """Return the shape that the topic had for publishes that may come again, under `layout`."""
        return replace(self, steady=layout, former=())

    def is_timed(self, layout: int) -> bool:
        """Tell whether it was noted when a layout came into force."""
        return layout < len(self.begun) and bool(self.begun[layout])

    def formerly(self, where: Callable[[Layout], int]) -> tuple[tuple[int, int], ...]:
        """Return other partitions to which earlier layouts have sent something that may come again,
        each with the layout's number, oldest first; `where` says where one sends it."""
        if not self.former:
            return ()
        now = where(self.steady)
        found = ((where(one), one.number) for one in self.former)
        return tuple([one for one in found if one[0] != now])


class TopicShapes:
    """The shapes of topics, each asked for when it is needed."""

    def __init__(self, broker: Broker, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._homes: dict[str, Homes] = {}
        self._clock = clock
        self._shapes: dict[str, TopicShape] = {}

    def known(self, topic: str) -> TopicShape | None:
        """Return what is remembered of `topic`, unless that is too old."""
        shape = self._shapes.get(topic)
        if shape is not None and self._clock() - shape.read_at < shape.age_max_s:
            return shape
        return None

    async def of(self, topic: str) -> TopicShape:
        """Return the shape of `topic`, from memory or from the broker.

        A topic that does not exist looks like a fresh one with a single partition: the publish
        itself decides whether it is made or refused.
        """
        return self.known(topic) or await self._read(topic)

    def forget(self, topic: str) -> None:
        """Ask again next time: the topic has turned out to be another one."""
        self._shapes.pop(topic, None)
        self._homes.pop(topic, None)

    async def _read(self, topic: str) -> TopicShape:
        read_at = self._clock()
        try:
            info = await self._broker.describe_topic(topic)
        except NotFound:
            default = TopicConfig()
            return TopicShape(
                layout=Layout.over(1),
                steady=Layout.over(1),
                batch_bytes_max=default.batch_bytes_max,
                read_at=read_at,
                turn=0,
            )
        before = self._shapes.get(topic)
        homes = self._homes.setdefault(topic, Homes())
        now = self._clock()
        homes.learn(info, now=now)
        lost = homes.lost(now=now)
        # Where the broker is; what it does not say does not matter.
        layout = layout_of(info, getattr(self._broker, "region", ""), lost=lost)
        is_refused = layout.region in lost and info.config.home_lost == "refuse"
        shape = TopicShape(
            layout=layout,
            steady=layout_of(info),
            former=former_layouts(info),
            begun=info.begun,
            age_max_s=DOUBT_MAX_S if homes.are_doubtful else AGE_MAX_S,
            refusal=home_lost(topic, layout.region) if is_refused else None,
            batch_bytes_max=info.config.batch_bytes_max,
            read_at=read_at,
            turn=before.turn if before else 0,
            id=info.id,
        )
        if before is None and len(self._shapes) >= TOPICS_MAX:
            self.forget(next(iter(self._shapes)))
        self._shapes[topic] = shape
        return shape
