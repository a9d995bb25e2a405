"""What the committed entries of a partition mean.

`apply` takes the entries of the partition's Raft log one by one and is a function of them alone:
every replica that has applied the same entries has the same state, gives the same answers, and has
the same `running_hash` to show it. It never raises for what an entry holds; bytes that are no
command change nothing, though the hash still tells that they were there.

The machine holds numbers, never batches: what is to be written comes out as effects (`Applied`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import InvalidCommand
from angarium.ids import Index, Micros, Offset, Term
from angarium.machine.commands import APPEND, Cursors, batches_of, decode
from angarium.machine.cursors import Groups
from angarium.machine.fingerprint import running_hash
from angarium.machine.numbering import Numbering
from angarium.machine.outcomes import Appended, Applied, Misnumbered, Outcome, Refused
from angarium.machine.partition_limits import PartitionLimits
from angarium.machine.partition_state import read_state, state_frames
from angarium.machine.snapshots import joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Buffer
    from angarium.machine.commands import Command


class PartitionMachine:
    """The state of one partition after the entry at `applied_index`."""

    def __init__(self, limits: PartitionLimits | None = None) -> None:
        self.numbering = Numbering(limits or PartitionLimits())
        self.groups = Groups()
        self.applied_index = Index(0)
        self.running_hash = 0

    @property
    def next_offset(self) -> Offset:
        """The offset that the next record gets."""
        return Offset(self.numbering.next_offset)

    @property
    def start_offset(self) -> Offset:
        """The lowest offset that has not been trimmed away."""
        return Offset(self.numbering.start_offset)

    @property
    def clock(self) -> Micros:
        """The leader's time in the last entry."""
        return Micros(self.numbering.clock)

    @property
    def limits(self) -> PartitionLimits:
        """The limits in force."""
        return self.numbering.limits

    @property
    def compaction(self) -> tuple[Offset, Micros]:
        """Up to which offset the partition is compacted, and before which time tombstones go."""
        return Offset(self.numbering.compact_until), Micros(self.numbering.tombstones_before)

    @property
    def layout(self) -> int:
        """The newest layout of the topic that has its fence here; 0: there is none."""
        return self.numbering.layout

    @property
    def fence_offsets(self) -> tuple[Offset, ...]:
        """Where layouts begin here, one after the other."""
        return tuple([Offset(offset) for _, offset in self.numbering.fences])

    def fence(self, layout: int) -> Offset | None:
        """Return at which offset a layout begins here; None: it has no fence here."""
        for one, offset in self.numbering.fences:
            if one == layout:
                return Offset(offset)
        return None

    def open_stages(self) -> dict[int, int]:
        """Return the slots of all open stages with the number of parts in each."""
        return self.numbering.transactions.open_slots()

    # --- applying ----------------------------------------------------------------------------

    def apply(self, index: Index, term: Term, data: Buffer) -> Applied:
        """Carry out the entry at `index`. Empty data, as of a new leader's first entry, is fine."""
        # Raft's own entries leave gaps: the machine does not see changes of membership.
        assert index > self.applied_index, "entries are applied upward, each once"
        if not data:
            applied = self._applied(index)
        elif data[0] == APPEND:
            applied = self._append(index, data)
        else:
            try:
                command = decode(data)
            except InvalidCommand as error:
                # An entry that cannot be read is refused by every replica alike. Raising would
                # stop all of them, at the same entry, at every start.
                applied = self._applied(index, (Refused(error.code, str(error)),))
            else:
                applied = self._perform(index, term, command)
        self.applied_index = index
        # Replicas that applied the same entries have the same hash. The simulator compares them;
        # it is how a machine that is not deterministic shows.
        self.running_hash = running_hash(
            self.running_hash,
            index=index,
            data=data,
            outcomes=applied.outcomes,
            next_offset=self.numbering.next_offset,
        )
        return applied

    def _append(self, index: Index, data: Buffer) -> Applied:
        try:
            batches = batches_of(data)
        except InvalidCommand as error:
            return self._applied(index, (Refused(error.code, str(error)),))
        numbering = self.numbering
        outcomes: list[Outcome] = []
        visible = []
        misnumbered: Misnumbered | None = None
        for view in batches:
            # Duplicates and refusals are decided again here, and not taken from the leader: it is
            # the log alone that counts.
            outcome = numbering.number_stamped(view)
            outcomes.append(outcome)
            if type(outcome) is Appended:
                visible.append(view)
            elif misnumbered is None and type(outcome) is Refused:
                misnumbered = numbering.misnumbered(view)
        return Applied(
            index=index,
            outcomes=tuple(outcomes),
            visible=tuple(visible),
            next_offset=Offset(numbering.next_offset),
            clock=Micros(numbering.clock),
            misnumbered=misnumbered,
        )

    def _perform(self, index: Index, term: Term, command: Command) -> Applied:
        numbering = self.numbering
        if isinstance(command, Cursors):
            return self._applied(index, self._change_groups(index, command))
        outcome, effects = numbering.perform(command, term=term)
        if effects.acks:
            # In the same entry as what the transaction publishes in this partition: no replica can
            # have the one without the other.
            self.groups.acknowledge(effects.acks, next_offset=numbering.next_offset)
        return Applied(
            index=index,
            outcomes=(outcome,),
            visible=effects.published or effects.restored,
            stage_appends=() if effects.stored is None else (effects.stored,),
            stage_drops=effects.drops,
            reserved=() if effects.reserved is None else (effects.reserved,),
            trimmed_to=effects.trimmed_to,
            is_compacted=effects.is_compacted,
            next_offset=Offset(numbering.next_offset),
            clock=Micros(numbering.clock),
        )

    def _change_groups(self, index: Index, command: Cursors) -> tuple[Outcome, ...]:
        numbering = self.numbering
        verdict = numbering.tick(command)
        if verdict is not None:
            return (verdict,) * max(len(command.changes), 1)
        change, time = self.groups.change, command.time
        end, limits = numbering.next_offset, numbering.limits
        return tuple(
            change(one, index=index, time=time, next_offset=end, limits=limits)
            for one in command.changes
        )

    def _applied(self, index: Index, outcomes: tuple[Outcome, ...] = ()) -> Applied:
        numbering = self.numbering
        return Applied(
            index=index,
            outcomes=outcomes,
            next_offset=Offset(numbering.next_offset),
            clock=Micros(numbering.clock),
        )

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return joined(self.snapshot_slices())

    def snapshot_slices(self) -> Iterator[bytes]:
        """Return the state as of now, slice by slice, each encoded in a few milliseconds.

        The machine may apply entries between two slices; they are not part of the snapshot. Only
        one snapshot is written at a time: beginning another one spoils an unfinished one.
        """
        return state_frames(self)

    def restore(self, data: Buffer) -> None:
        """Become what a snapshot says; raises `CorruptData`, and is unchanged then."""
        for _ in self.restore_slices(data):
            pass

    def restore_slices(self, data: Buffer) -> Iterator[None]:
        """Do as `restore`, pausing after each slice; nothing has changed before the last one."""
        fresh = PartitionMachine(self.limits)
        yield from read_state(fresh, data)
        # All at once, at the end: a snapshot that turns out to be damaged leaves the machine as it
        # was.
        self.__dict__.update(fresh.__dict__)
