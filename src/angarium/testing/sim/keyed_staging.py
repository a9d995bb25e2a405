"""What simulated transactions publish by key in a topic that is given partitions.

A transaction deals its keys by the layout that some node takes to be in force, names that with each
stage, and does not look again: it may be late. Of what was committed the order of keys is checked,
as of everything else that is published by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from angarium.modes import DeliveryMode
from angarium.testing.history import Publish

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from angarium.ids import RaftGroupId
    from angarium.machine import Stage
    from angarium.testing.history import Transaction
    from angarium.testing.sim.growing import Growing
    from angarium.testing.sim.world import World

KEYS: Final = 6
"""Keys of one transactor."""

DAWDLES: Final = 0.5
REPEATS_MAX: Final = 24
"""How often a transaction takes its time before it commits, and by how many repeated parts."""

PRODUCER: Final = 1_000_000
"""Added to a transactor's number: nobody else publishes under that."""


class KeyedStaging:
    """The keys of one transactor."""

    def __init__(self, world: World, number: int, rng: random.Random) -> None:
        self.layout: int | None = None
        """By which layout the present transaction was dealt; None: there are no keys."""
        self._world = world
        self._number = number
        self._rng = rng
        self._order = 0
        self._publishes: dict[RaftGroupId, list[Publish]] = {}

    @property
    def _growing(self) -> Growing | None:
        return next(iter(self._world.growing), None)

    @property
    def is_needed(self) -> bool:
        """Whether the topic is given partitions at all."""
        return self._growing is not None

    def drawn(self) -> dict[RaftGroupId, tuple[bytes, ...]]:
        """Return the records of the next transaction, one for each of some keys."""
        growing, world = self._growing, self._world
        assert growing is not None
        view = growing.views[self._rng.choice(world.node_ids)]
        self.layout = view.layout
        count = view.layouts[view.layout] if view.layouts else len(view.groups)
        self._publishes = {}
        for number in self._rng.sample(range(KEYS), self._rng.randrange(1, KEYS)):
            key = f"transactor-{self._number}.{number}".encode()
            self._order += 1
            publish = Publish(
                group=view.groups[crc32(key) % count],
                producer=PRODUCER + self._number,
                epoch=0,
                sequence=self._order,
                values=(b"%s.%d" % (key, self._order),),
                mode=DeliveryMode.CONSISTENT,
                invoked=world.scheduler.now,
            )
            growing.note(key, publish, self._order)
            self._publishes.setdefault(publish.group, []).append(publish)
        return {group: tuple(one.values[0] for one in of) for group, of in self._publishes.items()}

    def dawdling(
        self, stages: list[tuple[RaftGroupId, Stage]]
    ) -> Iterator[tuple[RaftGroupId, Stage]]:
        """Yield parts that are staged already, to be sent again: that takes a while."""
        if self.is_needed and self._rng.random() < DAWDLES:
            for _ in range(self._rng.randrange(1, REPEATS_MAX)):
                yield self._rng.choice(stages)

    def committed(self, one: Transaction) -> None:
        """Note where a transaction has put its records, as far as it was told."""
        for group, (base, _, now) in one.placed.items():
            for at, publish in enumerate(self._publishes.get(group, ())):
                publish.base_offset, publish.completed = base + at, now
