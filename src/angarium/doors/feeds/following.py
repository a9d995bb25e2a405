"""How far a feed is in a topic that it has all of, and which partitions it may read by now.

Partitions that the topic has when the feed begins are read from where it says, those that come
later from their start. Nothing is read behind a gate (`api/fences.py`), so records of a key keep
their order when partitions are added. Pure: whoever reads tells what came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from angarium.api import Interest, Start, StartAt
from angarium.api.fences import Gates
from angarium.batch import Batch
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.api import Delivery, TopicInfo

EARLIEST: Final = Start(StartAt.EARLIEST)

NOBODYS: Final = 1 << 63
"""How far a feed is in a partition that it does not want: nobody has to wait for it there."""


class Whole(NamedTuple):
    """The wish for all partitions of a topic, also for those that it does not have yet."""

    topic: str
    start: Start
    starts: Mapping[int, Start] | None = None
    """Where to begin in each partition that is there, instead; in those left out, at its start."""
    max_staleness_ms: int | None = None
    """As in `Interest`."""
    at_least: Mapping[int, Offset] | None = None
    """As in `Interest`, by partition."""

    def start_in(self, partition: int) -> Start:
        """Return where to begin in a partition that is there."""
        return self.start if self.starts is None else self.starts.get(partition, EARLIEST)


class Following:
    """One topic of a feed."""

    def __init__(self, wish: Whole, info: TopicInfo) -> None:
        self.wish = wish
        self.info = info
        self.starts: dict[int, int] = {}
        """By partition, where the feed began in it, in their order."""
        self._positions: dict[int, int] = {}
        self._reading: dict[int, int] = {}
        """Partitions that are being read, by the layout that was named for them."""
        self._gates = Gates()
        self._left: set[int] = set()

    @property
    def unbegun(self) -> range:
        """Partitions that have no start yet."""
        return range(len(self.starts), len(self.info.partitions))

    @property
    def is_held(self) -> bool:
        """Whether some partition waits at a gate."""
        return len(self._reading) + len(self._left) < len(self.info.partitions)

    @property
    def opened(self) -> int:
        """Up to which layout everything has been read that comes before it."""
        return self._gates.opened

    @property
    def lacks_news(self) -> bool:
        """Whether a node has stopped at a fence that nobody has told of yet."""
        return self._gates.lacks(self.info)

    def learn(self, info: TopicInfo) -> None:
        """Take a newer description; one that says less than what is known comes from a node that
        is behind, and one of another topic of that name is no matter."""
        if info.id == self.info.id and _knowledge(info) >= _knowledge(self.info):
            self.info = info

    def begin(self, partition: int, start: int) -> None:
        """Note where a partition begins; they come in their order."""
        assert partition == len(self.starts)
        self.starts[partition] = start
        self._positions.setdefault(partition, start)

    def leave(self, partition: int) -> None:
        """Want a partition no longer: it is somebody else's, or nobody's."""
        self._left.add(partition)
        self._reading.pop(partition, None)
        self._positions[partition] = NOBODYS

    def has(self, partition: int) -> bool:
        """Tell whether a partition is one that it reads."""
        return partition not in self._left

    def due(self) -> list[Interest]:
        """Return what may be read and is not; from now on it counts as being read."""
        waiting = [one for one in self.starts if one not in self._reading and self.has(one)]
        if not waiting:
            return []
        self._gates.look(self.info, self._positions)
        free = [one for one in waiting if self._gates.is_open(self.info, one)]
        self._reading.update(dict.fromkeys(free, self._gates.opened))
        return [self._interest(one) for one in free]

    def _interest(self, partition: int) -> Interest:
        return Interest(
            topic=self.wish.topic,
            partition=partition,
            start=Start(StartAt.OFFSET, self._positions[partition]),
            layout=self._gates.opened,
            max_staleness_ms=self.wish.max_staleness_ms,
            at_least=None if self.wish.at_least is None else self.wish.at_least.get(partition),
        )

    def stopped(self, partition: int) -> None:
        """Note that a node has stopped at the next fence."""
        layout = self._reading.pop(partition, None)
        if layout is not None:
            self._gates.stop(partition, layout=layout)

    def new_in(self, delivery: Delivery) -> Delivery | None:
        """Return what has not come before of stored records, and go on behind it."""
        position = self._positions[delivery.partition]
        upto = Batch.trusted(delivery.batches[-1]).next_offset if delivery.batches else 0
        if upto <= position:
            return None
        self._positions[delivery.partition] = upto
        if delivery.from_offset >= position:
            return delivery
        return replace(delivery, from_offset=Offset(position))


def _knowledge(info: TopicInfo) -> tuple[int, int, int]:
    fences = sum(len(one.fences) for one in info.partitions)
    return len(info.partitions), len(info.layouts), fences
