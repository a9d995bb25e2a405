"""The consumer groups of a run: one of each kind, with members, and an operator over them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from angarium.kinds import LENT_KINDS, GroupKind
from angarium.testing.group_history import FinalGroup
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.member import SimMember
from angarium.testing.sim.overseer import Overseer

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.testing.history import Publish
    from angarium.testing.sim.world import World

KEYS = 5
"""Different keys in a partition: few, so that records of one key meet."""

DELAYS_MS = (50, 450, 850, 4_000, 8_000)
"""How long delayed records wait. The last ones outlast a restart and the 3 s in which a new leader
lends nothing: only then must it find again what it has not seen itself."""


class Consumers:
    """Groups, members and their operator; none at all if a run has no members."""

    def __init__(self, world: World, members: int, seed: int) -> None:
        self._world = world
        rng = random.Random(seed)
        self.groups: list[tuple[RaftGroupId, str, GroupKind]] = [
            (world.groups[number % len(world.groups)], f"{kind.name.lower()}-{number}", kind)
            for number, kind in enumerate(LENT_KINDS)
            if members
        ]
        self.members = [
            SimMember(world, members * row + number + 1, partition, name, kind, rng.getrandbits(64))
            for row, (partition, name, kind) in enumerate(self.groups)
            for number in range(members)
        ]
        if world.settings.growing and members:
            self._join_growing(rng)
        known = [(partition, name) for partition, name, _ in self.groups]
        # Who moves a group back wants records again, and not in their order.
        is_overseen = members and not world.settings.growing
        self.overseers = [Overseer(world, known, rng.getrandbits(64))] if is_overseen else []

    def _join_growing(self, rng: random.Random) -> None:
        """Let one group of each kind consume all partitions of the topic that grows."""
        world = self._world
        self.groups = [
            (partition, f"growing-{kind.name.lower()}", kind)
            for kind in LENT_KINDS
            for partition in world.groups
        ]
        self.members = [
            SimMember(world, number + 1, partition, name, kind, rng.getrandbits(64))
            for number, (partition, name, kind) in enumerate(self.groups)
        ]

    @property
    def clients(self) -> list[SimMember | Overseer]:
        """Everybody who takes part in the run."""
        return [*self.members, *self.overseers]

    def are_done(self) -> bool:
        """Tell whether every group has settled every record of its partition."""
        return all(
            one is None or one.floor == one.end
            for one in (self._state(partition, name) for partition, name, _ in self.groups)
        )

    def floors(self) -> tuple[int, ...]:
        """Return how far every group has come; -1 for one that was never opened."""
        states = (self._state(partition, name) for partition, name, _ in self.groups)
        return tuple(-1 if one is None else one.floor for one in states)

    def read_final(self) -> None:
        """Write down how every group stands, and complain about those that have not finished."""
        history = self._world.history
        for partition, name, _ in self.groups:
            one = self._state(partition, name)
            if one is None:
                continue
            history.groups.final.append(one)
            if one.floor != one.end:
                history.incidents.append(
                    f"C7: {name} of partition {partition} stands at {one.floor} of {one.end} and "
                    "comes no further"
                )

    def _state(self, partition: RaftGroupId, name: str) -> FinalGroup | None:
        """Return how a group stands by its leader; None if it was never opened."""
        leader = self._world.operator.leader(partition)
        if leader is None:
            return FinalGroup(partition, name, GroupKind.QUEUE, 0, 0, (), 0, 0, -1)
        machine = leader.partition.machine
        group = machine.groups.by_name.get(name)
        if group is None:
            return None
        return FinalGroup(
            partition,
            name,
            group.kind,
            group.generation,
            group.floor,
            tuple(group.acked.ranges()),
            group.settings.max_attempts,
            machine.start_offset,
            machine.next_offset,
        )


def keys_of(operation: Publish) -> list[bytes | None]:
    """Return the keys of a batch's records, the same whenever it is sent; some have none."""
    first = operation.sequence
    return [
        b"key-%d" % ((first + row) % KEYS) if (first + row) % 7 else None
        for row in range(len(operation.values))
    ]


def deliver_at_of(operation: Publish) -> int:
    """Return when a batch is to be delivered: most at once, some up to seconds later."""
    if operation.sequence % 11:
        return 0
    return operation.invoked + DELAYS_MS[operation.sequence % len(DELAYS_MS)] * MILLISECOND
