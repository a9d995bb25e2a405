"""Bugs planted where a witness keeps the end of a log, and where one is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import scripted, tied, tied_rebalanced

from angarium.ids import Index, is_witness
from angarium.machine.catalog import placement, topics
from angarium.machine.catalog.regions import Wish
from angarium.node.balance import located
from angarium.node.losses import Copies
from angarium.raft import reconfiguration, replication
from angarium.raft.node import RaftNode
from angarium.replica.replica import Replica
from angarium.replica.witness import WITNESS_STATE, WitnessReplica
from angarium.testing.sim import rebalancing
from angarium.testing.sim.operator import Operator
from angarium.testing.sim.requests import FetchReply
from angarium.testing.sim.service import SimService

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import NodeId
    from angarium.machine.catalog import CatalogMachine
    from angarium.node.balance.layout import LocatedPartition
    from angarium.raft.core import Core
    from angarium.raft.messages import Message
    from angarium.replica.host import Host
    from angarium.testing.sim.requests import FetchRequest


@bug(seeds_max=10, run=scripted("tie-broken"))
def witness_forgets_what_others_lack() -> Iterator[Replaced]:
    """A witness forgets what is committed, whoever has it."""

    def forgets_to(witness: WitnessReplica) -> Index:
        return witness.applied

    yield Replaced(WitnessReplica, "forgets_to", property(forgets_to))


@bug(seeds_max=10, run=scripted("witness-moved"))
def witness_jumps_over_what_others_lack() -> Iterator[Replaced]:
    """A new witness begins with the leader's snapshot, whoever has what is before it."""
    from msgspec import structs

    original = WitnessReplica.receive

    def receive(witness: WitnessReplica, message: Message) -> None:
        if message.snapshot is None:
            original(witness, message)
            return
        bare = structs.replace(message.snapshot, data=WITNESS_STATE)
        Replica.receive(witness, structs.replace(message, snapshot=bare))

    yield Replaced(WitnessReplica, "receive", receive)


@bug(seeds_max=10, run=scripted("witness-behind"))
def witness_waits_for_the_lost() -> Iterator[Replaced]:
    """A witness that nobody has the log for waits until every full voter has what it lacks."""
    yield Replaced(replication, "may_pass_over", lambda *_: False)


@bug(seeds_max=10, run=scripted("witness-moved"))
def anybody_passes_over() -> Iterator[Replaced]:
    """A leader lets a witness pass over entries that were committed before it voted."""
    yield Replaced(replication, "may_pass_over", lambda *_: True)


@bug(seeds_max=10, run=scripted("tie-broken"))
def floor_of_a_majority() -> Iterator[Replaced]:
    """A leader lets a witness forget what a majority has, which may be the two of them."""

    def floor(core: Core) -> Index:
        return core.log.committed

    yield Replaced(replication, "floor", floor)


@bug(seeds_max=20, run=scripted("newcomer-behind"))
def newcomer_votes_below_the_floor() -> Iterator[Replaced]:
    """Whoever has what was settled may vote, whatever a witness has forgotten since."""

    def lacks(core: Core, change: Any) -> bool:
        del core, change
        return False

    def floor(core: Core) -> Index:
        voters = core.tracker.voters
        return min(core.tracker.progress[one].match for one in voters if not is_witness(one))

    yield Replaced(reconfiguration, "lacks_what_is_forgotten", lacks)
    yield Replaced(replication, "floor", floor)
    yield Replaced(RaftNode, "forgotten_index", property(lambda _: Index(0)))


@bug(seeds_max=10, run=scripted("tie-broken"))
def witness_leads_for_ever() -> Iterator[Replaced]:
    """A witness that was elected stays in office."""

    def hand_over(witness: WitnessReplica) -> None:
        del witness

    yield Replaced(WitnessReplica, "_hand_over", hand_over)


@bug(seeds_max=10, run=scripted("tie-broken"))
def witness_never_campaigns() -> Iterator[Replaced]:
    """A witness leaves every election to others, who may lack what it has."""

    def tick(witness: WitnessReplica) -> None:
        witness.raft.be_patient(1_000_000)
        Replica.tick(witness)

    def receive(witness: WitnessReplica, message: Message) -> None:
        original(witness, message)
        witness.raft.be_patient(1_000_000)

    original = WitnessReplica.receive
    yield Replaced(WitnessReplica, "tick", tick)
    yield Replaced(WitnessReplica, "receive", receive)


@bug(seeds_max=10, run=scripted("witness-replaced"))
def witness_counted_as_a_copy() -> Iterator[Replaced]:
    """A disk may go while a witness has everything, as if that were all that is needed."""

    def counted(copies: Copies, without: NodeId | None) -> list[NodeId]:
        others = sorted(copies.full - {without})
        return others * 2 if copies.has_witness else others

    yield Replaced(Copies, "counted", counted)


def _unaware_of_witnesses(machine: CatalogMachine, sizes: Any) -> list[LocatedPartition]:
    return [one._replace(witness=None, barred=()) for one in located(machine, sizes)]


@bug(seeds_max=10, run=tied_rebalanced)
def rebalance_counts_nodes_of_witnesses() -> Iterator[Replaced]:
    """A plan sends full replicas to nodes for witnesses; the catalog refuses, for ever."""

    yield Replaced(rebalancing, "located", _unaware_of_witnesses)


@bug(seeds_max=10, run=tied_rebalanced)
def witness_taken_for_a_full_replica() -> Iterator[Replaced]:
    """A rebalance takes nodes of witnesses for any others, and nobody refuses."""

    def may_be_in(_: Wish, __: str) -> bool:
        return True

    yield Replaced(rebalancing, "located", _unaware_of_witnesses)
    yield Replaced(Wish, "may_be_in", may_be_in)


@bug(seeds_max=10, run=tied_rebalanced)
def witness_left_behind_by_a_drain() -> Iterator[Replaced]:
    """A node that is drained gives its replicas away, and keeps its witnesses."""

    def chosen(*args: Any, keep: NodeId, **rest: Any) -> NodeId:
        return keep or right(*args, keep=keep, **rest)

    right = placement.chosen_witness
    yield Replaced(topics, "chosen_witness", chosen)


@bug(seeds_max=10, run=tied)
def witness_read_from() -> Iterator[Replaced]:
    """Whoever is nearest answers readers, a witness with nothing."""

    def holders(operator: Operator, group: Any) -> set[NodeId]:
        return operator.votes(group) | operator.readers[group]

    def fetch(service: SimService, host: Host, request: FetchRequest) -> None:
        if request.group in host.witnesses:
            service._send(request.client, FetchReply(request.number, service._node.id, ()))
        else:
            right(service, host, request)

    right = SimService._fetch
    yield Replaced(Operator, "holders", holders)
    yield Replaced(SimService, "_fetch", fetch)
