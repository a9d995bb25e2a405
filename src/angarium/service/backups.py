"""What a backup reads of a cluster, and brings back to it.

Records come back as entries of their partition's log that say where they belong (`Restore`), so
every replica has them at their offsets and a request that comes twice is refused the second time.
Positions come back by the changes that groups make anyway, users by the commands that make users.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api.audit import AUDIT_TOPIC
from angarium.api.backups import KeptAttempt, KeptPosition, KeptPositions, Restored
from angarium.batch import Batch
from angarium.errors import (
    InvalidArgument,
    InvalidBatch,
    PreconditionFailed,
    no_partition,
)
from angarium.ids import Micros, Offset
from angarium.lending.configs import config_of, settings_of
from angarium.machine import Restore, changes
from angarium.machine.catalog import TopicCreate
from angarium.machine.outcomes import Appended, Positioned, Refused
from angarium.node.deadlines import in_time
from angarium.node.release import RESTORE_LEVEL
from angarium.service.accounts_kept import accounts_of, restored_accounts
from angarium.service.admission import check_writable
from angarium.settling import settling
from angarium.wire import packed
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations import Operation, backups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.api import TopicConfig, TopicInfo
    from angarium.api.backups import AccountsRestored, KeptAccounts, RestoreRequest
    from angarium.ids import NodeId
    from angarium.lending.host import GroupHost
    from angarium.lending.led_partition import LedPartition
    from angarium.machine.catalog import Partition
    from angarium.machine.changes import Change
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Outcome
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics

ENDS_AT_ONCE: Final = 2_048
"""Ends of acknowledged ranges in one change; more go into further ones."""


class BackupCalls:
    """Implements `api.backups.BackupBroker` on a node."""

    def __init__(self, node: OwnNode, topics: Topics, host: GroupHost) -> None:
        self._node = node
        self._topics = topics
        self._host = host

    # --- reading ------------------------------------------------------------------------------

    async def read_positions(self, topic: str, partition: int) -> KeptPositions:
        """Return the groups of a partition, as its leader knows them."""
        found = await self._partition(topic, partition)
        replica = self._node.replicas.leading(found.group)
        if replica is None:
            header = backups.ReadPositionsHeader(topic, partition)
            frame = await self._node.peers.request(
                await self._leader(found),
                Operation.READ_POSITIONS,
                header,
                timeout_s=self._node.config.request_timeout_s,
            )
            return frame.unpack(KeptPositions)
        groups = replica.partition.machine.groups.by_name
        kept = tuple(_kept(groups[name]) for name in sorted(groups))
        return KeptPositions(topic=topic, partition=partition, positions=kept)

    async def read_accounts(self) -> KeptAccounts:
        """Return users, roles, grants, tokens and quotas, with hashes of secrets."""
        await self._node.catalog.catch_up()
        return accounts_of(self._node.catalog)

    # --- bringing back ------------------------------------------------------------------------

    async def restore_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic, also one for dead letters."""
        self._check(name)
        settings = self._topics.settings(config)
        self._topics.check_level(settings)
        await self._node.catalog.submit(
            TopicCreate(name=name, partitions=partitions, settings=settings, internal=True)
        )
        return await self._topics.describe(await self._topics.find(name))

    async def restore_records(self, request: RestoreRequest) -> Restored:
        """Bring batches back at their offsets, here or through the partition's leader."""
        self._check(request.topic)
        found = await self._partition(request.topic, request.partition)
        replica = self._node.replicas.leading(found.group)
        if replica is None:
            header = backups.RestoreRecordsHeader(
                request.topic, request.partition, request.next_offset, request.start_offset
            )
            frame = await self._node.peers.request(
                await self._leader(found),
                Operation.RESTORE_RECORDS,
                header,
                request.batches,
                timeout_s=self._node.config.request_timeout_s,
            )
            return frame.read(Restored)
        for one in request.batches:
            if not Batch.parse(one, compacted=True).is_stamped:
                raise InvalidBatch("a batch to restore carries the stamp that it had")
        command = Restore(
            batches=b"".join(request.batches),
            next_offset=request.next_offset,
            start_offset=request.start_offset,
        )
        return await self._submit(replica, command)

    async def _submit(self, replica: PartitionReplica, command: Restore) -> Restored:
        node = self._node
        future: asyncio.Future[Published] = asyncio.get_running_loop().create_future()
        replica.partition.submit(command, now=node.now(), reply=settling(future))
        replica.poke()
        node.wake()
        async with in_time(node.config.request_timeout_s, "restoring records"):
            outcome = (await future).outcomes[0]
        if isinstance(outcome, Refused):
            raise error_of(Failure(outcome.code, outcome.message))
        end = outcome.next_offset if isinstance(outcome, Appended) else command.next_offset
        return Restored(end)

    async def restore_positions(self, kept: KeptPositions) -> None:
        """Bring groups forward to where they stood, here or through the partition's leader."""
        self._check(kept.topic)
        found = await self._partition(kept.topic, kept.partition)
        if self._node.replicas.leading(found.group) is None:
            await self._node.peers.request(
                await self._leader(found),
                Operation.RESTORE_POSITIONS,
                b"",
                [packed(kept)],
                timeout_s=self._node.config.request_timeout_s,
            )
            return
        led = self._host.partition(kept.topic, kept.partition)
        for one in kept.positions:
            await self._restore_position(led, one)

    async def _restore_position(self, led: LedPartition, kept: KeptPosition) -> None:
        settings = settings_of(kept.config)
        opened = await _changed(led, changes.Open(kept.group, kept.kind, kept.floor, settings))
        assert isinstance(opened, Positioned)
        for change in _changes(kept, opened):
            await _changed(led, change)
        known = {one.offset: one for one in kept.attempts}
        group = led.replica.partition.machine.groups.by_name.get(kept.group)
        for offset in sorted(known):
            # Repeated, or tried further meanwhile: what is there says more than the backup.
            if group is None or offset in group.acked or offset in group.attempts:
                continue
            await _changed(led, _retry(kept, known[offset], opened, now=self._node.now()))

    async def restore_accounts(self, accounts: KeptAccounts) -> AccountsRestored:
        """Make what is not there; what is there stays as it is, and gets the grants it lacks."""
        self._check_level()
        await self._node.catalog.catch_up()
        return await restored_accounts(self._node.catalog, accounts)

    # --- finding ------------------------------------------------------------------------------

    async def _partition(self, topic: str, number: int) -> Partition:
        found = await self._topics.find(topic)
        if not 0 <= number < len(found.groups):
            raise no_partition(topic, len(found.groups), number)
        return self._node.catalog.partition(topic, number)

    async def _leader(self, partition: Partition) -> NodeId:
        leader = await self._topics.leader(partition)
        if leader == self._node.id:
            raise self._node.quorum.no_leader(partition.group)
        return leader

    def _check(self, topic: str) -> None:
        self._check_level()
        check_writable(topic)
        if topic == AUDIT_TOPIC:
            raise InvalidArgument(f"{topic} is written by the nodes alone and cannot be restored")

    def _check_level(self) -> None:
        level = self._node.catalog.level
        if level < RESTORE_LEVEL:
            raise PreconditionFailed(
                f"restoring needs feature level {RESTORE_LEVEL}, the cluster works at {level}:"
                " upgrade every node, then `angarium cluster raise-level`"
            )


def _kept(group: Group) -> KeptPosition:
    # A promised dead letter is not known to be stored: its record counts as not settled, and is
    # tried again rather than lost.
    return KeptPosition(
        group=group.name,
        kind=group.kind,
        config=config_of(group.settings),
        floor=Offset(group.floor),
        ranges=tuple(end for pair in group.acked.ranges() for end in pair),
        attempts=tuple(
            KeptAttempt(
                Offset(offset),
                one.count,
                Micros(one.not_before),
                one.reason,
                one.delay_max(group.settings),
            )
            for offset, one in sorted(group.attempts.items())
        ),
        paused=group.paused,
    )


def _retry(
    kept: KeptPosition, attempt: KeptAttempt, opened: Positioned, *, now: Micros
) -> changes.Retry:
    """Return the attempt as it is logged. It waits no longer than it did where it was made."""
    delay = attempt.delay
    if delay is None:
        delay = settings_of(kept.config).backoff_max_micros
    # Also below the level that logs delays a clock that was ahead when the attempt was made must
    # not hold the record back here.
    not_before = Micros(min(attempt.not_before, now + delay))
    return changes.Retry(
        kept.group,
        opened.generation,
        attempt.offset,
        attempt.attempts,
        not_before,
        attempt.reason,
        delay,
    )


def _changes(kept: KeptPosition, opened: Positioned) -> Iterator[Change]:
    """Yield what brings a group, which is open, to where it stood. Nothing moves it back."""
    name, generation = kept.group, opened.generation
    if kept.floor > opened.floor:
        yield changes.Ack(name, generation, (0, kept.floor))
    for start in range(0, len(kept.ranges), ENDS_AT_ONCE):
        yield changes.Ack(name, generation, kept.ranges[start : start + ENDS_AT_ONCE])
    if opened.repeated:
        yield changes.Set(name, settings_of(kept.config))
    if kept.paused:
        yield changes.Pause(name, kept.paused)


async def _changed(led: LedPartition, change: Change) -> Outcome:
    """Return the outcome of a change; a refusal is raised."""
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    settle = settling(future)
    led.change(change, settle)
    outcome = await future
    if isinstance(outcome, Refused):
        raise error_of(Failure(outcome.code, outcome.message))
    return outcome
