"""After the storm: everything is healed, and the cluster has to recover (C10).

Within 5 s of healing every group acknowledges a CONSISTENT publish; members that fail no more bring
their groups to the end; and every replica comes to hold the same log. What does not come about is
an incident of the history.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from angarium.log.memory_disk import ROOMY
from angarium.modes import DeliveryMode
from angarium.testing.history import Result
from angarium.testing.sim.clients import Producer
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.network import Weather
from angarium.testing.sim.rebalancing import DONE_WITHIN
from angarium.testing.sim.tending import Tender

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import RaftGroupId
    from angarium.testing.history import Publish
    from angarium.testing.sim.rebalancing import Rebalancing
    from angarium.testing.sim.world import World

ACK_WITHIN = 5 * SECOND
"""How long after healing a group may take to acknowledge something, where nobody is far away."""

COPIES_WAITED_FOR_MAX = 5
"""How often another 20 s are waited for copies that go on."""

FAR_OPERATIONS_WITHIN = 120 * SECOND
"""How long what was asked for between regions may take: a transaction asks dozens of times, each
time guesses which of ten nodes leads, and hears half a second later that another one does."""

WITNESS_ENTRIES_MAX = 250
"""What a witness may keep at most of a log that everybody has: a few times what it saves after."""

ACK_SLACKS = 3
"""How many times a client's patience for far answers is added to it: a round of asking who leads,
an election of up to two rounds, and the publish."""


def recover(world: World) -> None:
    """Heal everything and wait for what must come; the first thing that does not is the last."""
    heal(world)
    for expect in (_acknowledgements, _growth, _groups_to_finish, _evenness, _convergence):
        if not world.is_broken:
            expect(world)


def heal(world: World) -> None:
    """End every fault and stop making new ones; clients stop asking for more."""
    world.faults.active = False
    for client in world.clients:
        client.active = False
    world.network.heal()
    world.network.weather = Weather()
    for clock in world.wall_clocks.values():
        clock.set_right()
    for node in world.nodes.values():
        node.slow_syncs = False
        node.disk.capacity_bytes = ROOMY
        node.disk.fail_syncs(0)
        if node.is_paused:
            node.resume()
        if not node.is_up:
            node.boot()
    world.note("world", "is healed")


def probe(world: World, number: int, group: RaftGroupId) -> Publish:
    """Let somebody new publish to a group, who has to find its leader first."""
    prober = Producer(
        world,
        1_000 + number,
        group,
        world.seed + number,
        window=1,
        eager=True,
        gives_up=0.0,
        attempts_max=sys.maxsize,  # time alone decides
        # Nodes do not tell it who leads. Guessing costs nothing where all are near; else it would
        # miss the leader more often than the bound has time for.
        in_turns=world.settings.wan is not None,
    )
    world.let_in(prober)
    return prober.publish_one(DeliveryMode.CONSISTENT)


def ack_within(world: World) -> int:
    """Return how long after healing such a publish may take (µs)."""
    return ACK_WITHIN + ACK_SLACKS * world.settings.slack


def _acknowledgements(world: World) -> None:
    """Within 5 s of healing every group acknowledges a CONSISTENT publish."""
    probes = [probe(world, number, group) for number, group in enumerate(world.groups)]

    def answered() -> bool:
        return all(one.result is Result.OK for one in probes)

    within = ack_within(world)
    world.wait(within, answered)
    if world.is_broken:
        return
    for one in probes:
        if one.result is not Result.OK:
            world.history.incidents.append(
                f"C10: group {one.group} gave no CONSISTENT ack within {within / SECOND:g} s "
                "of healing"
            )


def _growth(world: World) -> None:
    """A topic that grows gets all its partitions, and readers read all of them, keys in order."""
    for growing in world.growing:
        world.wait(60 * SECOND, lambda one=growing: one.is_done)  # type: ignore[misc]
        world.wait(20 * SECOND, lambda: not world.operations_in_flight())
        if not growing.is_done and not world.is_broken:
            # No fence comes before transactions that were left open, and those have minutes.
            Tender(world).end_all()
            world.wait(60 * SECOND, lambda one=growing: one.is_done)  # type: ignore[misc]
            world.wait(20 * SECOND, lambda: not world.operations_in_flight())
        stored = [
            (one.publish.group, value)
            for value, one in growing.records.items()
            if one.publish.base_offset >= 0
        ]

        def have_read(stored: list[tuple[RaftGroupId, bytes]] = stored) -> bool:
            return all(one in reader.seen for reader in world.keyed_readers for one in stored)

        def read_so_far() -> int:
            return sum(len(reader.seen) for reader in world.keyed_readers)

        # However long it takes, with readers that ask any node for any partition: what must not
        # happen is that they stand still.
        before = -1
        while not have_read() and not world.is_broken and read_so_far() > before:
            before = read_so_far()
            world.wait(60 * SECOND, have_read)
        if world.is_broken:
            return
        if not growing.is_done:
            lacking = f"{growing.topic.layouts}, without fences: {growing.topic.unfenced}"
            world.history.incidents.append(f"K3: the topic does not come to grow: {lacking}")
        if not have_read():
            world.history.incidents.append("K4: readers wait at a gate that does not open")
        for reader in world.keyed_readers:
            growing.read(reader.name, reader.seen)


def _groups_to_finish(world: World) -> None:
    """Members that only work, and fail no more, bring every group to its end.

    However long the way is: a member that takes one record at a time needs minutes for what an
    operator's seek brought back. Standing still is what must not happen.
    """
    if not world.settings.members:
        return
    consumers, before = world.consumers, None
    if world.settings.wan is not None:
        # What is still on its way from far away would be lent after the groups were judged.
        world.wait(FAR_OPERATIONS_WITHIN, lambda: not world.operations_in_flight())
    while not (world.is_broken or consumers.are_done()) and consumers.floors() != before:
        before = consumers.floors()
        world.wait(40 * SECOND, consumers.are_done)
    consumers.read_final()


def _evenness(world: World) -> None:
    """What is evened out comes to an end, and is even then."""
    for rebalancing in world.rebalancings:

        def is_done(one: Rebalancing = rebalancing) -> bool:
            return one.is_done

        world.wait(DONE_WITHIN, is_done)
        if world.settings.wan is not None:
            _wait_for_copies(world, is_done)
        if not world.is_broken:
            rebalancing.judge()


def _convergence(world: World) -> None:
    """Every replica ends with the same log, and everybody's operations with an answer."""

    def is_settled(group: RaftGroupId) -> bool:
        is_agreed = world.is_agreed(group) and world.is_witnessed(group)
        return is_agreed and world.operator.is_settled(group)

    def is_done() -> bool:
        # Of one moment, the witnesses included: one that is found lost only now, while all others
        # agree, begins anew and has the membership change once more.
        return not world.operations_in_flight() and all(
            is_settled(group) and _is_small(world, group) for group in world.groups
        )

    world.wait(20 * SECOND, is_done)
    if world.settings.wan is not None:
        _wait_for_copies(world, is_done)
    if world.is_broken:
        return
    for group in world.groups:
        if not is_settled(group):
            world.history.incidents.append(
                f"C10: group {group} did not settle within 20 s of healing"
            )
        elif not _is_small(world, group):
            world.history.incidents.append(f"C10: the witness of group {group} forgets nothing")
    if world.settings.wan is not None:
        # A transaction asks a dozen questions, each of whoever leads far away (seed 620871).
        world.wait(20 * SECOND, lambda: not world.operations_in_flight())
    if world.operations_in_flight():
        world.history.incidents.append(
            f"C10: {world.operations_in_flight()} operations have no answer long after healing"
        )


def _wait_for_copies(world: World, is_done: Callable[[], bool]) -> None:
    """Let copies between regions come to an end as long as they go on.

    A segment, which is small here, is asked for when the one before has come: some 18 KB a second
    where an answer takes half of one (seed 681138).
    """

    def passed() -> int:
        return sum(one.host.pace.passed_bytes for one in world.nodes.values() if one.host)

    for _ in range(COPIES_WAITED_FOR_MAX):
        before = passed()
        if world.is_broken or is_done():
            return
        world.wait(20 * SECOND, is_done)
        if passed() == before:
            return


def _is_small(world: World, group: RaftGroupId) -> bool:
    """Tell whether a group's witness, if there is to be one, keeps only a little of the log."""
    if group not in world.operator.witness:
        return True
    witness = world.operator.witness_of(group)
    if witness is None:
        return False
    return witness.last_index - witness.storage.first_index() < WITNESS_ENTRIES_MAX
