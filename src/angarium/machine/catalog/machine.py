"""The machine of group 0: what the whole cluster agrees on.

Everything that needs one answer for all lives here: the cluster's id, who its nodes are, which
topics there are and where their partitions live, which producer ids are taken, who may do what, and
the feature level up to which entries may be written. Pure and deterministic like every machine;
placement too is computed inside `apply`, so that all replicas place alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from angarium.batch import TIME_MAX
from angarium.errors import AlreadyExists, InvalidArgument, InvalidCommand, PreconditionFailed
from angarium.ids import Epoch, Index, Micros, NodeId, ProducerId, RaftGroupId, Term, TopicId
from angarium.machine.catalog import commands
from angarium.machine.catalog.access import AccessTables
from angarium.machine.catalog.access_commands import AccessCommand, UserDelete
from angarium.machine.catalog.balance import Balance, begun, changed, chosen, ended, sites
from angarium.machine.catalog.commands import CatalogCommand, decode
from angarium.machine.catalog.join_tokens import JoinTokens
from angarium.machine.catalog.nodes import Nodes
from angarium.machine.catalog.predecessors import Predecessors
from angarium.machine.catalog.recoveries import Recoveries
from angarium.machine.catalog.state import catalog_frames, read_catalog
from angarium.machine.catalog.topics import EARLIER_LAYOUTS_LEVEL, KEYED_ORDER_LEVEL, Topics
from angarium.machine.catalog.values import (
    CatalogApplied,
    CatalogOutcome,
    Formed,
    Moving,
    NamedProducer,
    NodeRegistered,
    ProducerOpened,
    ProducerShared,
    ProducersIssued,
    TopicMade,
)
from angarium.machine.fingerprint import running_hash
from angarium.machine.outcomes import Done, Refused, limited, oversized, refused
from angarium.machine.partition_limits import NAME_CHARACTERS_MAX
from angarium.machine.producers import NAMED_FROM
from angarium.machine.snapshots import joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Buffer
    from angarium.machine.catalog.creations import Maker, MakerLimits

PRODUCER_BLOCK_MAX: Final = 1_000_000
"""Producer ids issued at once. A larger request is refused."""

NAMED_PRODUCERS_MAX: Final = 100_000
"""Named producers of a cluster. At the limit a new name is refused."""

DECOY_KEY_LEVEL: Final = 8
"""The feature level from which on the catalog keeps the key of decoys."""

_ABOUT_NODES: Final = (
    commands.NodeRegister,
    commands.NodeJoin,
    commands.NodeDrain,
    commands.NodeRemove,
)


class CatalogMachine:
    """The state of group 0 after the entry at `applied_index`."""

    def __init__(self) -> None:
        self.cluster = ""
        """The cluster's id; empty until it is formed."""
        self.nodes = Nodes()
        self.topics = Topics()
        self.access = AccessTables()
        self.join_tokens = JoinTokens()
        self.balance = Balance()
        self.recoveries = Recoveries()
        self.predecessors = Predecessors()
        self.named: dict[str, NamedProducer] = {}
        self.names_of_producers: dict[int, str] = {}
        """By id; what `named` says, the other way round."""
        self.next_producer = 1
        self.next_named = int(NAMED_FROM)
        self.decoy_key = b""
        """The key from which every node derives the same salts for names that have no account.
        A secret: with it decoys could be told from accounts. Empty below `DECOY_KEY_LEVEL`."""
        self.clock = Micros(0)
        self.applied_index = Index(0)
        self.running_hash = 0

    def apply(self, index: Index, term: Term, data: Buffer) -> CatalogApplied:  # noqa: ARG002
        """Carry out the entry at `index`. Empty data, as of a new leader's first entry, is fine."""
        assert index > self.applied_index, "entries are applied upward, each once"
        if not data:
            applied = CatalogApplied(index=index)
        else:
            try:
                command = decode(data)
            except InvalidCommand as error:
                verdict = Refused(error.code, str(error))
                applied = CatalogApplied(index=index, outcomes=(verdict,))
            else:
                applied = self._perform(index, command)
        self.applied_index = index
        self.running_hash = running_hash(
            self.running_hash,
            index=index,
            data=data,
            outcomes=applied.outcomes,
            next_offset=0,
        )
        return applied

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return joined(self.snapshot_slices())

    def snapshot_slices(self) -> Iterator[bytes]:
        """Return the state as of now, slice by slice, while the machine may move on."""
        return catalog_frames(self)

    def restore(self, data: Buffer) -> None:
        """Become what a snapshot says; raises `CorruptData`, and is unchanged then."""
        fresh = CatalogMachine()
        read_catalog(fresh, data)
        self.__dict__.update(fresh.__dict__)

    # --- commands ----------------------------------------------------------------------------

    def _perform(self, index: Index, command: CatalogCommand) -> CatalogApplied:
        if not self.cluster and not isinstance(command, commands.Form):
            unformed = refused(PreconditionFailed, "the cluster has not been formed")
            return CatalogApplied(index=index, outcomes=(unformed,))
        topic = self._topic_of(command)
        before = self.topics.by_id[topic].groups if topic in self.topics.by_id else ()
        sites_before = sites(self.nodes) if isinstance(command, _ABOUT_NODES) else []
        outcome: CatalogOutcome
        if isinstance(command, AccessCommand):
            outcome = self.access.perform(index, command)
        else:
            outcome = self._outcome(command)
        if isinstance(outcome, Refused):
            return CatalogApplied(index=index, outcomes=(outcome,))
        if isinstance(command, UserDelete):
            self.join_tokens.forget(command.name)
        # Nothing here hangs on distinct times, so a leader whose clock is behind does no harm.
        self.clock = max(self.clock, min(command.time, TIME_MAX))
        if isinstance(outcome, Done) and not outcome.changed:
            return CatalogApplied(index=index, outcomes=(outcome,))
        if isinstance(outcome, NodeRegistered):
            self.recoveries.enforce(self.nodes, outcome.node)
        if isinstance(command, _ABOUT_NODES) and sites(self.nodes) != sites_before:
            self.balance = changed(self.balance, self.nodes, self.clock)
        return CatalogApplied(
            index=index,
            outcomes=(outcome,),
            nodes=_nodes_touched(command, outcome),
            groups=_groups_touched(command, outcome, before),
            topics=_topics_touched(outcome, topic),
        )

    def _outcome(self, command: commands.PlainCommand) -> CatalogOutcome:
        nodes, topics = self.nodes, self.topics
        outcome: CatalogOutcome
        match command:
            case commands.TopicCreate():
                limits = self._limits_of(command.maker)
                outcome = topics.create(command, nodes.placeable(), limits)
            case commands.TopicAlter():
                limits = self._limits_of(command.maker)
                is_fenced = nodes.level >= KEYED_ORDER_LEVEL
                outcome = topics.alter(command, nodes.placeable(), limits, is_fenced=is_fenced)
            case commands.Fenced():
                outcome = topics.fenced(command, is_timed=nodes.level >= EARLIER_LAYOUTS_LEVEL)
            case commands.TopicDelete():
                outcome = topics.delete(command)
                self.recoveries.forget(topics)
            case commands.Reassign():
                outcome = topics.reassign(command, nodes.placeable())
            case commands.Reassigned():
                outcome = topics.reassigned(command)
            case commands.NodeRegister():
                outcome = nodes.register(command)
            case commands.NodeDrain():
                outcome = nodes.drain(command)
            case commands.NodeRemove():
                outcome = nodes.remove(command, topics.loads)
            case commands.LevelRaise():
                outcome = self._raise_level(command)
            case commands.PartitionRecover():
                outcome = self.recoveries.recover(command, nodes, topics)
            case _:
                outcome = self._own_outcome(command)
        return outcome

    def _limits_of(self, maker: Maker | None) -> MakerLimits | None:
        if maker is None:
            return None
        return self.access.quotas.limits_of(maker, self.access.users)

    def _own_outcome(
        self,
        command: (
            commands.Form
            | commands.ProducerBlock
            | commands.ProducerOpen
            | commands.ProducerShare
            | commands.ProducerClose
            | commands.JoinTokenPut
            | commands.JoinTokenDelete
            | commands.NodeJoin
            | commands.BalanceBegin
            | commands.BalanceEnd
            | commands.BalanceChoose
            | commands.ClusterRecover
        ),
    ) -> CatalogOutcome:
        outcome: CatalogOutcome
        match command:
            case commands.Form():
                outcome = self._form(command)
            case commands.ProducerBlock():
                outcome = self._issue(command)
            case commands.ProducerOpen():
                outcome = self._open_producer(command.name)
            case commands.ProducerShare():
                outcome = self._share_producer(command)
            case commands.ProducerClose():
                outcome = self._close_producer(command.name)
            case commands.JoinTokenPut():
                outcome = self.join_tokens.put(command)
            case commands.JoinTokenDelete():
                outcome = self.join_tokens.delete(command)
            case commands.NodeJoin():
                outcome = self.join_tokens.join(command, self.nodes)
            case commands.BalanceBegin() | commands.BalanceEnd() | commands.BalanceChoose():
                outcome = self._balance(command)
            case commands.ClusterRecover():
                outcome = self.predecessors.recover(command, self)
            case _:
                assert_never(command)
        return outcome

    def _balance(
        self, command: commands.BalanceBegin | commands.BalanceEnd | commands.BalanceChoose
    ) -> CatalogOutcome:
        balance: Balance | Refused
        if isinstance(command, commands.BalanceBegin):
            balance = begun(self.balance, command)
        elif isinstance(command, commands.BalanceEnd):
            balance = ended(self.balance, command, self.nodes, self.topics)
        else:
            balance = chosen(self.balance, command)
        if isinstance(balance, Refused):
            return balance
        before, self.balance = self.balance, balance
        return Done(before != balance)

    def _form(self, command: commands.Form) -> CatalogOutcome:
        if not 0 < len(command.cluster) <= NAME_CHARACTERS_MAX:
            return refused(InvalidArgument, "a cluster's id is too long or empty")
        if self.cluster and self.cluster != command.cluster:
            return refused(AlreadyExists, f"this is cluster {self.cluster}, for ever")
        if self.cluster:
            return Done(changed=False)
        if command.level < 1:
            return refused(InvalidArgument, "feature levels begin at 1")
        self.cluster = command.cluster
        self.nodes.level = command.level
        self.balance = Balance(is_automatic=command.is_automatic)
        self._keep_decoy_key(command.decoy_key)
        return Formed(self.cluster)

    def _raise_level(self, command: commands.LevelRaise) -> CatalogOutcome:
        outcome = self.nodes.raise_level(command)
        if not isinstance(outcome, Refused):
            self._keep_decoy_key(command.decoy_key)
        return outcome

    def _keep_decoy_key(self, key: bytes) -> None:
        """Take the first key that comes: with another one every decoy's salt would change."""
        if self.nodes.level >= DECOY_KEY_LEVEL and not self.decoy_key:
            self.decoy_key = key

    def _issue(self, command: commands.ProducerBlock) -> CatalogOutcome:
        if not 0 < command.count <= PRODUCER_BLOCK_MAX:
            return oversized("PRODUCER_BLOCK_MAX", f"{command.count} ids cannot be issued at once")
        first = self.next_producer
        self.next_producer += command.count
        return ProducersIssued(ProducerId(first), ProducerId(self.next_producer))

    def _open_producer(self, name: str) -> CatalogOutcome:
        known = self.named.get(name)
        epoch = Epoch(0) if known is None else self.predecessors.next_epoch(known.epoch)
        named = self._name_producer(name, epoch, base=0)
        return named if isinstance(named, Refused) else ProducerOpened(named.id, named.epoch)

    def _share_producer(self, command: commands.ProducerShare) -> CatalogOutcome:
        known = self.named.get(command.name)
        named: NamedProducer | Refused
        if known is None:
            named = self._name_producer(command.name, Epoch(0), base=command.base)
        elif known.epoch == command.replaces:
            epoch = self.predecessors.next_epoch(known.epoch)
            named = self._name_producer(command.name, epoch, base=command.base)
        else:
            named = known
        if isinstance(named, Refused):
            return named
        return ProducerShared(named.id, named.epoch, named.base)

    def _name_producer(self, name: str, epoch: Epoch, *, base: int) -> NamedProducer | Refused:
        """Note a named producer, which keeps its id, as it is from now on."""
        if not 0 < len(name) <= NAME_CHARACTERS_MAX:
            return refused(InvalidArgument, "a producer's name is too long or empty")
        known = self.named.get(name)
        if known is None:
            if len(self.named) >= NAMED_PRODUCERS_MAX:
                return limited("NAMED_PRODUCERS_MAX", "no more producers can be named")
            producer = ProducerId(self.next_named)
            self.next_named += 1
        else:
            producer = known.id
        self.named[name] = NamedProducer(producer, epoch, base)
        self.names_of_producers[producer] = name
        return self.named[name]

    def _close_producer(self, name: str) -> Done:
        known = self.named.pop(name, None)
        if known is not None:
            del self.names_of_producers[known.id]
        return Done(known is not None)

    def _topic_of(self, command: CatalogCommand) -> TopicId:
        if isinstance(command, commands.TopicAlter | commands.TopicDelete):
            return command.topic
        if isinstance(command, commands.Fenced):
            partition = self.topics.partitions.get(command.group)
            return TopicId(0) if partition is None else partition.topic
        return TopicId(0)


def _nodes_touched(command: CatalogCommand, outcome: CatalogOutcome) -> tuple[NodeId, ...]:
    if isinstance(outcome, NodeRegistered):
        return (outcome.node,)
    if isinstance(command, commands.NodeDrain | commands.NodeRemove | commands.ClusterRecover):
        return (command.node,)
    return ()


def _groups_touched(
    command: CatalogCommand, outcome: CatalogOutcome, before: tuple[RaftGroupId, ...]
) -> tuple[RaftGroupId, ...]:
    if isinstance(outcome, TopicMade):
        return () if outcome.repeated else outcome.groups
    if isinstance(outcome, Moving):
        return (outcome.group,)
    if isinstance(command, commands.Reassigned | commands.PartitionRecover | commands.Fenced):
        return (command.group,)
    return before


def _topics_touched(outcome: CatalogOutcome, topic: TopicId) -> tuple[TopicId, ...]:
    if isinstance(outcome, TopicMade):
        return () if outcome.repeated else (outcome.topic,)
    return (topic,) if topic else ()
