"""Clocks of simulated machines that may be wrong, and what a node makes of them.

In a run with retention every machine has a wall clock that faults set, and every node compares it
with the others' and goes by what comes of it, with the very code that a real node has
(`node.clocks`, `node.retention`). Each leader trims by age. The world knows what time it really is,
so two promises can be judged: no append time is far from it, and nothing young is trimmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch import Batch
from angarium.ids import NodeId, is_witness, node_of
from angarium.machine import Trim, Trimmed
from angarium.machine.catalog import TopicSettings
from angarium.node.arrivals import Arrivals
from angarium.node.clocks import Clocks, Standing
from angarium.node.retention import retained_from
from angarium.replica.acks import Published, Publishing
from angarium.testing import history
from angarium.testing.history import Result
from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.errors import AngariumError
    from angarium.ids import Micros, RaftGroupId
    from angarium.replica.host import Host
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.settings import Settings
    from angarium.testing.sim.world import World

SKEW_MAX: Final = 500 * MILLISECOND
ROUND: Final = 150 * MILLISECOND
SAMPLE_AGE_MAX: Final = 1_000 * MILLISECOND
"""Less than usual, as the whole run is quicker than life."""

SKEW_MAX_AFAR: Final = 2_000 * MILLISECOND
SAMPLE_AGE_MAX_AFAR: Final = 5_000 * MILLISECOND
"""The same where nodes are in several regions: as on a real node, and long enough to outlast that a
region is cut off for a while."""

NEAR_ENTRIES: Final = 20
"""Whoever lacks no more than so many entries may be handed a leadership."""

OFF_MAX: Final = 50 * MILLISECOND
"""How far right clocks are off."""


def sample_age_max(settings: Settings) -> int:
    """Return for how long (µs) an answer counts."""
    return SAMPLE_AGE_MAX if settings.wan is None else SAMPLE_AGE_MAX_AFAR


def error_max(settings: Settings) -> int:
    """Return how far (µs) the time that a node goes by may be from the real one.

    Right clocks are a little off, half of the skew is allowed, and an answer that counts was up to
    as long on its way.
    """
    skew = SKEW_MAX if settings.wan is None else SKEW_MAX_AFAR
    return skew + 4 * OFF_MAX


class Question(NamedTuple):
    """What does your clock say?"""

    sender: NodeId
    asked: int


class Answer(NamedTuple):
    """It says so."""

    sender: NodeId
    asked: int
    wall: int


class WallClock:
    """The wall clock of one machine."""

    def __init__(self, error: int) -> None:
        self._usual = error
        self.set_right()

    def set_right(self) -> None:
        """Let it be as right as clocks usually are."""
        self.set(self._usual, rate=0.0, at=0)

    def set(self, error: int, *, rate: float, at: int) -> None:
        """Let it be wrong by so much, and by `rate` more for every microsecond from now on."""
        self._error, self._rate, self._since = error, rate, at

    def read(self, now: int) -> int:
        """Return what it says when it is really `now`."""
        return now + self._error + int(self._rate * (now - self._since))


class SimTimekeeping:
    """What one simulated node does about time. Knowledge ends with the process."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._world = node.world
        self._clocks = self._fresh()
        self._arrivals: dict[RaftGroupId, Arrivals] = {}
        self._leaps = 0

    def begin(self) -> None:
        """Begin anew, with a process that knows nothing."""
        self._clocks = self._fresh()
        self._arrivals = {}
        self._leaps = 0
        self._node.later(self._world.seed % MILLISECOND, self._round)

    def _fresh(self) -> Clocks:
        settings = self._world.settings
        skew = SKEW_MAX if settings.wan is None else SKEW_MAX_AFAR
        return Clocks(skew_max=skew, sample_age_max=sample_age_max(settings))

    def now(self) -> Micros:
        """Return the time that the node goes by."""
        now = self._clocks.now(wall=self._wall(), steady=self._world.scheduler.now)
        if self._clocks.leaps != self._leaps:
            self._leaps = self._clocks.leaps
            assert self._node.host is not None
            self._node.host.time_leapt()
        return now

    def note_taken(self, requests: Iterable[Publishing]) -> None:
        """Note what is given a time before this node can know what time it is."""
        if not self._clocks.is_compared:
            batches = [batch for request in requests for batch in request.batches]
            values = (value for batch in batches for value in Batch.parse(batch).values())
            self._world.history.unsure.update(value for value in values if value is not None)

    def handle(self, payload: object) -> bool:
        """Take what another node says about clocks; False if it is about something else."""
        if isinstance(payload, Question):
            answer = Answer(self._node.id, payload.asked, self._wall())
            self._send(payload.sender, answer)
        elif isinstance(payload, Answer):
            heard = self._world.scheduler.now
            self._clocks.hear(payload.sender, asked=payload.asked, heard=heard, wall=payload.wall)
            if not self._clocks.is_compared:
                self._look()
        else:
            return False
        return True

    def _wall(self) -> int:
        return self._world.wall_clocks[self._node.id].read(self._world.scheduler.now)

    def _send(self, to: NodeId, said: Question | Answer) -> None:
        self._world.network.send_once(self._node.name, f"node-{to}", said)

    def _look(self) -> None:
        host = self._node.host
        assert host is not None
        self._clocks.look(self._others, wall=self._wall(), steady=self._world.scheduler.now)
        host.is_reluctant = self._clocks.is_reluctant
        host.may_take_over = self._clocks.is_compared

    @property
    def _others(self) -> list[NodeId]:
        return [one for one in self._world.nodes if one != self._node.id]

    def _round(self) -> None:
        self._node.later(ROUND, self._round)
        host, now = self._node.host, self._world.scheduler.now
        assert host is not None
        for other in self._others:
            self._send(other, Question(self._node.id, now))
        self._look()
        age = self._world.settings.retention
        assert age is not None
        for replica in host.replicas.values():
            seen = self._arrivals.setdefault(replica.group, Arrivals())
            is_full, end = not replica.shortfall(), replica.partition.log.end_offset
            seen.note(end, is_full=is_full, steady=now, age=age)
            if replica.may_serve:
                self._hand_over(replica)
                self._trim(host, replica)

    def _hand_over(self, replica: PartitionReplica) -> None:
        """Let somebody else lead whose clock is right, if this one is wrong."""
        raft = replica.raft
        if self._clocks.standing is not Standing.WRONG or raft.transferee:
            return
        for voter in raft.conf_state.voters:
            is_near = (raft.match(voter) or 0) + NEAR_ENTRIES >= raft.last_index
            is_heir = voter != replica.id and not is_witness(voter)
            if is_heir and is_near and self._clocks.trusts(node_of(voter)):
                raft.transfer_leader(voter)
                replica.poke()
                return

    def _trim(self, host: Host, replica: PartitionReplica) -> None:
        """Trim what is too old, as long as there are faults: something is to be left in the end."""
        world, partition = self._world, replica.partition
        age, steady = world.settings.retention, world.scheduler.now
        assert age is not None
        trimming_now = self._clocks.trimming_now(age, wall=self._wall(), steady=steady)
        settings = TopicSettings(retention_micros=age)
        seen = self._arrivals.get(replica.group)
        young = None if seen is None else seen.young_from(steady=steady, age=age)
        start = retained_from(partition.log, settings, now=trimming_now, young=young)
        if start <= partition.log.start_offset or not world.faults.active or host.wal.is_full:
            return
        age_min = age - 2 * error_max(world.settings)
        wish = history.Trim(replica.group, start, world.scheduler.now, age_min=age_min)
        world.history.trims.append(wish)

        def told(answer: Published | AngariumError) -> None:
            if isinstance(answer, Published) and isinstance(answer.outcomes[0], Trimmed):
                wish.result = Result.OK

        partition.submit(Trim(start_offset=start), now=self.now(), reply=told)
        replica.poke()
        world.note(self._node.name, "trims by age: group", replica.group, "to", start)


def check_append_time(world: World, replica: PartitionReplica) -> None:
    """Note it if a partition's time is ahead of the real one by more than a node may believe."""
    ahead = replica.partition.machine.clock - world.scheduler.now
    if ahead > error_max(world.settings) and not world.is_broken:
        world.history.incidents.append(
            f"C11: the time of group {replica.group} is {ahead / 1e6:.3f} s ahead of the real one"
        )
