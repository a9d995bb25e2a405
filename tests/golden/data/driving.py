"""A host driven by hand: every step has its place and its time, so that a run can be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from angarium.errors import AngariumError
from angarium.ids import CATALOG_GROUP, Incarnation, Micros, NodeId, Offset
from angarium.log.segments import SegmentConfig
from angarium.log.wal import WalConfig
from angarium.machine.outcomes import Refused
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.replica.host import Host
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import RaftGroupId
    from angarium.log.disk import Disk
    from angarium.machine import Command, Outcome
    from angarium.machine.catalog import CatalogCommand
    from angarium.raft.messages import Message
    from angarium.replica.acks import Published

NODE: Final = NodeId(1)
INCARNATION: Final = Incarnation(0x0A27_1A2B_3C4D)

YEAR_2024: Final = 1_704_067_200_000_000
STEP_MICROS: Final = 1_000

SMALL: Final = HostConfig(
    replica=ReplicaConfig(snapshot_entries=16, snapshot_keep_entries=5),
    wal=WalConfig(file_bytes=12 << 10, reserve_bytes=4 << 10),
    segments=SegmentConfig(segment_bytes=3_000, index_bytes=512, preallocate_bytes=4 << 10),
)
"""Files as small as they may be, so that a few kilobytes of records fill several of each kind."""


class Driver:
    """One node's host without a loop, a clock or dice."""

    def __init__(self, disk: Disk, config: HostConfig = SMALL, *, now: int = YEAR_2024) -> None:
        self.host = Host(
            disk, node=NODE, incarnation=INCARNATION, config=config, jitter=lambda _: 0
        )
        self._now = now

    def now(self) -> Micros:
        """Let a millisecond pass and return the time."""
        self._now += STEP_MICROS
        return Micros(self._now)

    def settle(self) -> None:
        """Carry out everything that follows from what came in, syncs included."""
        host = self.host
        for replica in (host.catalog, *host.replicas.values()):
            if replica is not None:
                replica.process()
        while (sync := host.begin_sync()) is not None:
            sync.write()
            host.finish_sync(sync)
        # Nobody is there to hear it.
        host.outbox.take_raft_messages()
        host.outbox.take_peer_messages()

    def lead(self, group: RaftGroupId) -> None:
        """Become the leader of a group whose only voter is this host."""
        replica = self.host.catalog if group == CATALOG_GROUP else self.host.replicas[group]
        assert replica is not None
        while not replica.may_serve:
            self.host.tick()
            self.settle()

    def deliver(self, group: RaftGroupId, *messages: Message) -> None:
        """Hear from other replicas of a group."""
        for message in messages:
            self.host.deliver(group, message, via=message.sender)
            self.settle()

    def keep_house(self) -> None:
        """Write segments behind, take the snapshots that are due, free files of the log."""
        do_now(self.host.maintain())
        self.settle()

    # --- what clients do --------------------------------------------------------------------

    def decide(self, command: CatalogCommand) -> Any:
        """Carry out a command of the catalog and return its outcome."""
        answers: list[Any] = []
        catalog = self.host.catalog
        assert catalog is not None
        catalog.submit(command, now=self.now(), reply=answers.append)
        self.settle()
        return _accepted(answers)

    def publish(self, group: RaftGroupId, batches: Sequence[bytearray]) -> Sequence[Outcome]:
        """Store batches in one entry and return what became of them."""
        answers: list[Published | AngariumError] = []
        request = Publishing(batches, DeliveryMode.CONSISTENT, answers.append)
        self.host.replicas[group].publish([request], now=self.now())
        self.settle()
        return _outcomes(answers)

    def submit(self, group: RaftGroupId, command: Command) -> Sequence[Outcome]:
        """Carry out any other command of a partition."""
        answers: list[Published | AngariumError] = []
        partition = self.host.replicas[group].partition
        partition.submit(command, now=self.now(), reply=answers.append)
        self.settle()
        return _outcomes(answers)

    def end_of(self, group: RaftGroupId) -> Offset:
        """Return the offset that the next record of a partition gets."""
        return self.host.replicas[group].end_offset

    def close(self) -> None:
        """Stop in good order."""
        self.settle()
        self.host.close()


def _outcomes(answers: list[Published | AngariumError]) -> Sequence[Outcome]:
    published = _accepted(answers)
    outcomes: Sequence[Outcome] = published.outcomes
    refused = [one for one in outcomes if isinstance(one, Refused)]
    assert not refused, refused
    return outcomes


def _accepted(answers: list[Any]) -> Any:
    (answer,) = answers
    if isinstance(answer, AngariumError):
        raise answer
    assert not isinstance(answer, Refused), answer
    return answer
