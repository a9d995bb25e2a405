"""Which replicas one node has, and what becomes of each: formed, joined, opened again, repaired,
stopped, lost, renewed, removed.

Only one thing at a time can be true of a group here: it works (`replicas`, `catalog`), its log is
being repaired, it is lost, or its files are leaving. `Host` drives those that work.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.errors import CorruptData, DiskFull, NotFound
from angarium.ids import CATALOG_GROUP, Index, Term
from angarium.log.halts import Halts
from angarium.log.snapshots import SnapshotStore
from angarium.log.wal import Wal
from angarium.raft import Compacted, LogContradiction, Unavailable
from angarium.raft.messages import ConfState, Snapshot
from angarium.replica.catalog import empty_catalog
from angarium.replica.catalog_replica import CatalogReplica
from angarium.replica.damage import Fate
from angarium.replica.opening import Opener, groups_with_folders, partition_folder
from angarium.replica.outbox import Outbox
from angarium.replica.own_ids import OwnReplicaIds
from angarium.replica.pacing import Pace
from angarium.replica.partition_files import folders_in
from angarium.replica.partition_replica import RELUCTANT_TIMEOUTS
from angarium.replica.partition_snapshot import empty_partition
from angarium.replica.peers import EntriesReply
from angarium.replica.repair import IdentityLost, Repair, entries_to_refetch, in_stretches
from angarium.replica.sleeping import Sleepers
from angarium.replica.witness import WITNESS_STATE, WITNESS_TIMEOUTS, WitnessReplica

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from angarium.ids import Incarnation, NodeId, RaftGroupId, ReplicaId
    from angarium.log.disk import Disk
    from angarium.replica.config import HostConfig
    from angarium.replica.listener import HostListener
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.peers import EntriesRequest
    from angarium.replica.replica import Replica
    from angarium.replica.work import Work

    AnyReplica: TypeAlias = PartitionReplica | CatalogReplica | WitnessReplica

ORIGIN: Final = Index(1)
"""Where the log of a new group begins: before its first leader's own entry."""

_ORIGIN_TERM: Final = Term(1)


class VoidReplica(CorruptData):
    """A replica without which its partition went on, after a majority was lost for good."""

    code = "VOID_REPLICA"


class Roster:
    """The replicas of one node: those that work, are being repaired, are lost, and are leaving."""

    def __init__(
        self,
        disk: Disk,
        *,
        node: NodeId,
        incarnation: Incarnation,
        config: HostConfig,
        jitter: Callable[[int], int],
        listener: HostListener | None = None,
        name_of: Callable[[RaftGroupId], str] = "group {}".format,
    ) -> None:
        """Open what is on `disk`. `listener` hears what happens; `name_of` is for people's eyes."""
        self.own_ids = OwnReplicaIds(disk, node=node, incarnation=incarnation)
        self.replicas: dict[RaftGroupId, PartitionReplica] = {}
        """Replicas of partitions, with their records."""
        self.witnesses: dict[RaftGroupId, WitnessReplica] = {}
        """Replicas of other partitions, without: they are no use to anybody but their peers."""
        self.catalog: CatalogReplica | None = None
        """The replica of group 0, on a node that has one."""
        self.repairs: dict[RaftGroupId, Repair] = {}
        self.lost: dict[RaftGroupId, CorruptData] = {}
        """Groups whose replica here cannot go on as itself, and why. Nobody speaks for them, and
        what is left of them stays, until `renew` or `remove_group`."""
        self.outbox = Outbox(listener)
        self.pace = Pace()
        """What copies from and to other nodes may take; none of them is held back by default."""
        self.name_of = name_of
        self._halts = Halts(disk)
        self.wal = Wal.open(disk, incarnation=incarnation, config=config.wal)
        self._disk = disk
        self._message_bytes_max = config.replica.message_bytes_max
        self._snapshots = SnapshotStore(disk)
        self._opener = Opener(
            disk=disk,
            own_ids=self.own_ids,
            wal=self.wal,
            snapshots=self._snapshots,
            outbox=self.outbox,
            config=config.replica,
            segments=config.segments,
            jitter=jitter,
            pace=self.pace,
        )
        self._is_reluctant = False
        self.may_take_over = True
        """False until this node has compared its clock with a majority's: as a leader it would give
        append times that nobody has confirmed, so it lets a leadership that is handed to it be."""
        self._awake: dict[RaftGroupId, AnyReplica] = {}
        self._sleepers = Sleepers(self.outbox, config.replica)
        self._leaving: list[RaftGroupId] = []
        """Groups whose files go once the log has durably forgotten them."""
        self._deleting: set[RaftGroupId] = set()
        """Groups that the log is just forgetting, or has forgotten, and whose files go."""
        self._fallen: dict[RaftGroupId, AnyReplica] = {}
        """Lost replicas whose files a thread still writes; nobody hears of them any more."""
        self._forget_unformed()
        for group in sorted({*self.wal.recovered.groups, *self.own_ids.unreadable}):
            self._reopen(group)

    @property
    def id(self) -> ReplicaId:
        """Who this node is in every group in which it was never renewed."""
        return self.own_ids.usual

    # --- coming and going ---------------------------------------------------------------------

    def form_group(self, group: RaftGroupId, voters: Sequence[ReplicaId]) -> None:
        """Create a replica of a new group whose first members are `voters`.

        Every first member forms the group alike, once; later members join.
        """
        self.save_origin(group, voters)
        self.start_formed(group)

    def save_origin(self, group: RaftGroupId, voters: Sequence[ReplicaId]) -> None:
        """Make the first membership of a new group durable. Blocks; may run in a thread."""
        self.own_ids.end_solitude(group)
        is_witness = self.own_ids.as_witness(group) in voters
        self.own_ids.be(group, a_witness=is_witness)
        # It is the content of a snapshot at index 1 that nobody has to send.
        conf_state = ConfState(voters=tuple(sorted(voters)))
        nothing = empty_catalog() if group == CATALOG_GROUP else empty_partition()
        if is_witness:
            nothing = WITNESS_STATE
        # All founders begin with the same snapshot, so the first election needs no message that
        # tells who is in the group.
        self._snapshots.save(group, Snapshot(ORIGIN, _ORIGIN_TERM, conf_state, nothing))
        self._make_folders(group)

    def prepare(self, group: RaftGroupId, *, a_witness: bool = False) -> None:
        """Make durable what joining a group needs. Blocks; may run in a thread."""
        self.own_ids.be(group, a_witness=a_witness)
        self._make_folders(group)

    def _make_folders(self, group: RaftGroupId) -> None:
        """Make the folders of a group, so that opening it need not."""
        # That of the catalog, or of a witness, stays empty: it only says that there was one, if
        # the log is lost.
        folder = partition_folder(group)
        is_bare = group == CATALOG_GROUP or self.own_ids.is_witness(group)
        for one in (folder,) if is_bare else folders_in(folder):
            self._disk.make_folder(one)

    def start_formed(self, group: RaftGroupId) -> None:
        """Begin to work in a new group whose origin is saved."""
        # Behind the durable origin. A crash between the two leaves a snapshot that no log knows
        # of, and the next opening removes it: nobody has heard of this replica.
        self.wal.add_group(group)
        self.wal.compact(group, ORIGIN, _ORIGIN_TERM)
        self._start(group)
        if (founder := self._replica(group)) is not None:
            founder.found()

    def join_group(self, group: RaftGroupId, *, a_witness: bool = False) -> None:
        """Create an empty replica that waits to be added by the group's leader."""
        # Of an empty replica that took itself for the only voter there would be two.
        self.own_ids.end_solitude(group)
        self.own_ids.be(group, a_witness=a_witness)
        if group == CATALOG_GROUP:
            self._make_folders(group)
        self.wal.add_group(group)
        self._start(group)

    def remove_group(self, group: RaftGroupId) -> None:
        """Give up this node's replica of `group`, with everything it holds.

        Does nothing while its files are being written, or while there is no room to write down
        that it goes; ask again then.
        """
        replica = self.replicas.get(group) or self.witnesses.get(group)
        if self.wal.is_exhausted or (replica is not None and replica.is_in_use):
            return
        # A thread still writes its files.
        if group in self._fallen:
            return
        self.repairs.pop(group, None)
        was_lost = self.lost.pop(group, None) is not None
        if replica is not None:
            self._sleepers.wake(group)
            self.replicas.pop(group, None)
            self.witnesses.pop(group, None)
            self._awake.pop(group, None)  # one that rested is not there
            replica.close()
        is_known = group in self.wal.groups
        if is_known:
            self.wal.remove_group(group)
        if is_known or was_lost:
            # Files go only after the log has durably forgotten the group: a log that knows a group
            # without files would report it as damaged.
            self._leaving.append(group)

    def may_renew(self, group: RaftGroupId) -> bool:
        """Tell whether a lost replica may be given up as soon as others have everything.

        What has contradicted its leader is kept: it may be all there is of acknowledged records.
        """
        kept = (LogContradiction, VoidReplica)
        return group in self.lost and not isinstance(self.lost[group], kept)

    def renew(self, group: RaftGroupId, incarnation: Incarnation) -> None:
        """Give up what is left of a lost replica; the next one to join is another replica.

        `own_ids.save` has made that durable. As with `remove_group`, it may have to be asked
        again, and the files go first.
        """
        assert self.may_renew(group), "only what is lost is given up"
        if not self.wal.is_exhausted and group not in self._fallen:
            self.own_ids.adopt(group, incarnation)
            self.remove_group(group)

    def go_on_alone(self, group: RaftGroupId, incarnation: Incarnation) -> bool:
        """Be the only voter of `group`, with all that this replica has; False: ask again.

        A majority of its group is lost for good, and the catalog has decided to go on with this
        replica. It becomes somebody else: whoever was its group before speaks to one that is gone.
        """
        replica = self.replicas[group]
        if self.wal.is_exhausted or replica.is_in_use or replica.halted:
            return False
        self._sleepers.wake(group)
        del self.replicas[group]
        self._awake.pop(group, None)
        # Durable before anything is said under the new id, and in the same moment as the log that
        # it goes on with. It blocks for one small file, once in the life of a partition.
        last = replica.last_index
        replica.close()
        self.own_ids.save(group, incarnation, alone_from=last)
        self.own_ids.adopt(group, incarnation, alone_from=last)
        self._start(group)
        return True

    def give_up_void(self, group: RaftGroupId, incarnation: Incarnation) -> None:
        """Give up what is here of `group`: it went on without this replica, which is void.

        As with `remove_group`, it may have to be asked again. Nobody has to have what is given up
        here: the catalog has decided that, and somebody has confirmed it.
        """
        self._take_down(group)
        self.repairs.pop(group, None)
        self.lost[group] = VoidReplica("its partition went on without it, after it was lost")
        if not self.wal.is_exhausted and group not in self._fallen:
            self.own_ids.save(group, incarnation)
            self.own_ids.adopt(group, incarnation)
            self.remove_group(group)

    def await_catalog(self) -> None:
        """Serve no partition until `serve` is called: replicas here may be void."""
        self.outbox.awaits_catalog = True

    def serve(self) -> None:
        """Serve what is led here: the catalog has said which replicas are void."""
        if self.outbox.awaits_catalog:
            self.outbox.awaits_catalog = False
            for replica in self._all():
                replica.begin_to_serve()

    def is_leaving(self, group: RaftGroupId) -> bool:
        """Tell whether files of a removed replica are still there; wait before it comes back."""
        return group in self._leaving or group in self._deleting

    def time_leapt(self) -> None:
        """Hear that this node's time is suddenly another one: what lies between has not passed."""
        for replica in self.replicas.values():
            replica.partition.time_leapt()

    @property
    def is_reluctant(self) -> bool:
        """True while this node leads only what nobody else does: its clock may be wrong."""
        return self._is_reluctant

    @is_reluctant.setter
    def is_reluctant(self, is_reluctant: bool) -> None:
        if is_reluctant != self._is_reluctant:
            self._is_reluctant = is_reluctant
            for replica in self._all():
                self._set_patience(replica)

    def _set_patience(self, replica: Replica) -> None:
        if isinstance(replica, WitnessReplica):
            replica.raft.be_patient(WITNESS_TIMEOUTS)  # whatever the time is: it gives none
        else:
            replica.raft.be_patient(RELUCTANT_TIMEOUTS if self._is_reluctant else 1)

    @property
    def resting(self) -> int:
        """How many groups rest."""
        return len(self._sleepers)

    def close(self) -> None:
        """Let go of every file. What is not synced is lost, and nobody was told it was not."""
        for replica in self._all():
            replica.close()
        self.wal.close()

    def replica(self, group: RaftGroupId) -> PartitionReplica:
        """Return this node's replica of `group`; raises `NotFound`."""
        try:
            return self.replicas[group]
        except KeyError:
            raise NotFound(f"this node has no replica of {self.name_of(group)}") from None

    def _delete_files(self, groups: Sequence[RaftGroupId]) -> Generator[Work, None, None]:
        """Delete what groups have left behind; many files, so beside everything else."""
        for group in groups:
            yield partial(self._snapshots.remove, group)
            yield partial(self._disk.remove_folder, partition_folder(group))
            yield partial(self._halts.forget, group)
            self._deleting.discard(group)

    # --- opening what is on disk ------------------------------------------------------------

    def _forget_unformed(self) -> None:
        """Deal with snapshots whose group the log does not know."""
        recovered = self.wal.recovered
        if recovered.unknown_groups and not recovered.groups and not self._snapshots.list():
            # Founders would begin anew as the voters they were: nothing here says who was one.
            raise IdentityLost(
                "the log and all snapshots are gone from the data folder: put it back from a "
                "backup, or empty it and start the node with --join and its id"
            )
        lost = set(self.own_ids.disowned)
        if recovered.unknown_groups:
            # Who joined a group, and took no snapshot yet, has left a folder alone.
            lost |= {*self._snapshots.list(), *groups_with_folders(self._disk)}
        for group in sorted(lost - set(recovered.groups)):
            # The log goes on without it, and the next start would take it for unformed: it would
            # begin anew as the voter it was, with nothing of what it promised.
            self.own_ids.disown(group)
            # It may have voted and acknowledged. Coming back empty under the same id, it would
            # vote again. Planted as lost-replica-begins-anew-as-itself.
            self._lose(group, IdentityLost("the log has lost all it knew about it"))
        for group in sorted(set(self._snapshots.list()) - {*recovered.groups, *lost}):
            # A crash fell into the forming of the group: nobody has heard of this replica yet.
            self._snapshots.remove(group)
        for group in sorted(set(self._halts.why) - {*recovered.groups, *lost}):
            # A crash fell into its removal: whoever comes here next has never contradicted anybody.
            self._halts.forget(group)

    def _reopen(self, group: RaftGroupId) -> None:
        if group in self.own_ids.unreadable:
            self._lose(group, IdentityLost("the file that says who this replica is is damaged"))
            return
        if not self._begin_repair(group, committed=Index(0)):
            self._start(group)

    def _begin_repair(self, group: RaftGroupId, *, committed: Index) -> bool:
        """Have the damaged entries of a log fetched from peers; False if none is damaged.

        Everything up to `committed` is committed, whatever the log says. A replica whose log
        cannot be repaired is lost.
        """
        log = self.wal.log(group)
        try:
            snapshot = self._snapshots.load(group) or Snapshot()
            if log.damaged is not None:
                # Entries that the snapshot stands for need no repair.
                self.wal.compact(group, snapshot.index, snapshot.term)
            committed = max(committed, log.hard_state.commit, snapshot.index)
            missing = entries_to_refetch(log.damaged, known_commit=committed)
        except CorruptData as damaged:
            self._lose(group, self._as_halted(group, damaged))
            return True
        if missing is None:
            return False
        what = f"entries {missing[0]} to {missing[1]} of its log"
        if group in self._halts.why:
            self._lose(group, self._as_halted(group, CorruptData(f"{what} are damaged")))
            return True
        self.outbox.damage.note(Fate.FOUND, group, what)
        conf_state = snapshot.conf_state
        # Until peers have filled the holes there is no core for this group: it neither votes nor
        # acknowledges. Planted as recovering-replica-goes-on.
        self.repairs[group] = Repair(
            group=group,
            replica=self.own_ids.in_group(group),
            holes=log.holes(),
            term_max=log.hard_state.term,
            peers=(*conf_state.voters, *conf_state.voters_outgoing, *conf_state.learners),
        )
        return True

    def _start(self, group: RaftGroupId) -> None:
        assert not self.is_leaving(group), "the old files go first"
        try:
            opened = self._opener.open(group)
        except CorruptData as damaged:
            self._lose(group, self._as_halted(group, damaged))
            return
        opened.halted = self._halts.why.get(group, "")
        self._set_patience(opened)
        self._awake[group] = opened
        if isinstance(opened, CatalogReplica):
            self.catalog = opened
        elif isinstance(opened, WitnessReplica):
            self.witnesses[group] = opened
        else:
            self.replicas[group] = opened
            self.outbox.listener.started(opened)

    def _replica(self, group: RaftGroupId) -> AnyReplica | None:
        if group == CATALOG_GROUP:
            return self.catalog
        return self.replicas.get(group) or self.witnesses.get(group)

    def _all(self) -> Iterator[AnyReplica]:
        if self.catalog is not None:
            yield self.catalog
        yield from list(self.replicas.values())
        yield from list(self.witnesses.values())

    # --- damage -----------------------------------------------------------------------------

    def _stop(self, group: RaftGroupId, damage: CorruptData) -> None:
        """Stop a replica that cannot go on.

        Where it contradicts its leader nobody knows whose disk went back in time, so what it has
        is not given up for what the others have: that is for people to decide.
        """
        replica = self._replica(group)
        if isinstance(damage, LogContradiction) and replica is not None:
            # Kept, and stopped for good. It may be the only one that has what was acknowledged.
            self._halts.note(group, replica.halt(damage))
        elif (
            replica is not None
            and self.wal.log(group).damaged is not None
            # What it lacks beside its log, no repair of the log brings back.
            and not isinstance(damage, IdentityLost)
        ):
            self._repair_log(group, replica)
        else:
            self._lose(group, damage)

    def _repair_log(self, group: RaftGroupId, replica: AnyReplica) -> None:
        """Take down a replica in whose log a read has found damage, and have peers fill the holes.

        It cannot go on: it can no longer send entries that it has acknowledged. Where every
        damaged entry is committed it keeps its identity, as after a start on such a log. Giving it
        up would cost the group a copy of everything that is intact.
        """
        committed = replica.raft.commit
        # Also for a crash in the middle of the repair: the next one goes by what the log says.
        replica.remember_commit()
        self._take_down(group)
        if not self._begin_repair(group, committed=committed):
            # A snapshot stands for all that was damaged: opened again, the replica needs no peer.
            self.repairs[group] = Repair(
                group=group,
                replica=self.own_ids.in_group(group),
                holes=(),
                term_max=Term(0),
                peers=(),
            )

    def _as_halted(self, group: RaftGroupId, damage: CorruptData) -> CorruptData:
        """Return damage to files that are not to be given up as what it is, if that is so."""
        why = self._halts.why.get(group)
        return damage if why is None else LogContradiction(f"{damage}, and the replica {why}")

    def _lose(self, group: RaftGroupId, damage: CorruptData) -> None:
        """Stop a replica that cannot go on as itself, and only that one.

        Nothing that it has not said yet is said any more. Its files stay as they are.
        """
        self.repairs.pop(group, None)
        self._take_down(group)
        self.lost[group] = damage
        self.outbox.damage.note(Fate.LOST, group, str(damage))

    def _take_down(self, group: RaftGroupId) -> None:
        """Hear nothing more from a replica, and close it once no thread writes its files."""
        replica = self._replica(group)
        if replica is None:
            return
        self._sleepers.wake(group)
        self._awake.pop(group, None)
        if isinstance(replica, CatalogReplica):
            self.catalog = None
        else:
            self.replicas.pop(group, None)
            self.witnesses.pop(group, None)
        self._fallen[group] = replica
        self._bury()

    def _bury(self) -> None:
        """Close lost replicas once no thread writes their files."""
        for group, replica in list(self._fallen.items()):
            if not replica.is_in_use:
                del self._fallen[group]
                replica.close()

    def _go_on_with_repairs(self) -> None:
        """Let one tick pass for replicas whose log is being fetched from peers."""
        for group, repair in list(self.repairs.items()):
            # A snapshot that was being saved meanwhile may stand for the rest.
            if repair.is_complete or self.wal.log(group).damaged is None:
                self._finish_repair(group, repair)
            elif repair.is_hopeless:
                # It comes back empty, as another one.
                self._lose(group, IdentityLost("the damaged entries have left the peers' logs"))
            elif (request := repair.request()) is not None:
                self.outbox.tell(request)

    def _give_while_damaged(self, request: EntriesRequest) -> None:
        """Give a peer entries out of a log that has holes elsewhere, or whose replica is lost.

        Of three replicas two may be damaged, each where the other one is whole. What is committed
        and passes its checksum is the same in every log, unless this one contradicts its group's.
        """
        group = request.group
        if group not in self.wal.groups or (group in self.lost and not self.may_renew(group)):
            return
        log = self.wal.log(group)
        high = min(request.high, log.hard_state.commit)
        if not 0 < request.low <= high or log.hard_state_suspect:
            return
        try:
            entries = log.entries(request.low, Index(high + 1), self._message_bytes_max)
        except Compacted:
            # A witness keeps only the end of the log: what it has not, others may have.
            if not self.own_ids.is_witness(group):
                self.outbox.tell(EntriesReply.of(request, (), compacted=True))
        except (Unavailable, CorruptData):
            pass  # damaged here as well
        else:
            self.outbox.tell(EntriesReply.of(request, entries, compacted=False))

    def _take_repair(self, reply: EntriesReply, repair: Repair) -> None:
        if not repair.receive(reply):
            return  # asked again with the next tick
        if repair.is_complete:
            self._finish_repair(reply.group, repair)
            return
        request = repair.request()
        if request is not None:
            self.outbox.tell(request)

    def _finish_repair(self, group: RaftGroupId, repair: Repair) -> None:
        if group in self._fallen:
            return  # a thread still writes files of the replica that was taken down
        log = self.wal.log(group)
        count = 0
        try:
            for stretch in in_stretches(repair.entries, above=Index(log.snapshot_index)):
                # On a disk that was full what came before it is in its place already.
                if log.damaged is not None and stretch[0].index not in log.repaired:
                    self.wal.repair(group, stretch)
                    count += len(stretch)
        except DiskFull:
            return  # again with the next tick
        del self.repairs[group]
        self.outbox.damage.note(Fate.MENDED, group, f"{count} entries of its log")
        # Whatever this replica promises from now on is synced after what it repaired.
        self._start(group)
