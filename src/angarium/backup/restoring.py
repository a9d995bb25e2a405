"""Brings a backup back: records at their offsets, groups where they stood, users with their grants.

Everything may be repeated. A partition takes a batch only where it ends, so what is there is never
there twice; an interrupted restore goes on where it was, once it was told that the topics which it
finds are its own (`resume`), and that is checked: the last batch there must be that of the backup.

Retention rests until a topic is whole: otherwise old records would go while others come, and what
one group has settled before the next one is there.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from angarium.api import TopicConfig
from angarium.api.backups import (
    AccountsRestored,
    KeptAccounts,
    KeptPositions,
    RestoreRequest,
)
from angarium.api.topics import ABOUT_REGIONS
from angarium.backup.creating import Progress
from angarium.backup.manifest import loaded, state_of
from angarium.backup.turns import in_turns
from angarium.backup.verifying import batches_of
from angarium.batch import Batch
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    InvalidArgument,
    NotFound,
    OffsetOutOfRange,
    PermissionDenied,
    PreconditionFailed,
)
from angarium.ids import Offset
from angarium.machine.catalog.topics import KEYED_ORDER_LEVEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from angarium.api import FetchResult, TopicInfo
    from angarium.api.backups import KeptPosition
    from angarium.backup.manifest import KeptPartition, KeptTopic, Manifest
    from angarium.backup.store import BackupStore
    from angarium.client import Client
    from angarium.ids import Buffer

REQUEST_BYTES: Final = 1 << 20
"""Batches of one request; a larger batch goes alone."""

AT_ONCE: Final = 4
"""Partitions that are restored at a time; each holds a file of records in memory."""

GROUPS_AT_ONCE: Final = 32
ACCOUNTS_AT_ONCE: Final = 64
"""Groups of a partition, and rows about users, in one request: each is an entry of a log, and all
have to be made before the request is given up."""

IN_FORCE_S: Final = 60.0
"""How long a layout may take to come into force."""

LOOK_S: Final = 0.1

DOUBTS_MAX: Final = 20
"""How often in a row a request may end without an answer before the restore is given up."""


class Restoration:
    """One restore."""

    def __init__(
        self,
        client: Client,
        store: BackupStore,
        *,
        number: int | None = None,
        only: Mapping[str, str] | None = None,
        resume: bool = False,
        replication: int | None = None,
        with_regions: bool = True,
        with_users: bool = True,
        told: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        """Prepare; `only` names topics, and what each is to be called; none: all, as they were.

        `resume`: go on in topics that exist. Without `with_regions` topics come back as if they had
        never said anything about regions, for a cluster that has others or none.
        """
        self._client = client
        self._store = store
        self._number = number
        self._only = only or {}
        self._resume = resume
        self._replication = replication
        self._with_regions = with_regions
        self._with_users = with_users
        self._told = told
        self._records = self._bytes = 0
        self.accounts: AccountsRestored | None = None
        """What came of users; None: the backup has none, or they were not wanted."""

    async def run(self) -> Manifest:
        """Restore; raises why not. What is there by then stays."""
        manifest = await asyncio.to_thread(loaded, self._store, self._number)
        state = await asyncio.to_thread(state_of, self._store, manifest)
        known = {one.name: one for one in manifest.topics}
        for name in self._only:
            if name not in known:
                raise NotFound(f"backup {manifest.number} has no topic {name!r}")
        names = self._only or {name: name for name in known}
        if len(set(names.values())) < len(names):
            raise InvalidArgument("two topics cannot be restored under one name")
        topics = [replace(self._placed(known[old]), name=new) for old, new in names.items()]
        await self._check_free(topics)
        await self._check_level(topics)
        positions = {
            new: [replace(one, topic=new) for one in state.positions if one.topic == old]
            for old, new in names.items()
        }
        for topic in topics:
            await self._restore(topic, positions[topic.name])
        if self._with_users and not self._only and state.accounts is not None:
            self.accounts = await self._restore_accounts(state.accounts)
        return manifest

    async def _restore_accounts(self, accounts: KeptAccounts) -> AccountsRestored:
        """Bring users back, a few rows at a time; what a role is denied before who has it."""
        made = 0
        kept: list[str] = []
        for some in _portions(accounts):
            done = await self._client.restore_accounts(some)
            made += done.made
            kept += done.kept
        return AccountsRestored(made=made, kept=tuple(kept))

    def _placed(self, topic: KeptTopic) -> KeptTopic:
        """Return a topic with what it is to say about regions."""
        if self._with_regions:
            return topic
        usual = TopicConfig()
        silent = {name: getattr(usual, name) for name in ABOUT_REGIONS}
        return replace(topic, config=replace(topic.config, **silent))

    async def _check_free(self, topics: list[KeptTopic]) -> None:
        """Look before anything is written whether something is in the way."""
        there = {one.name for one in await self._client.list_topics()}
        taken = sorted(there & {one.name for one in topics})
        if taken and not self._resume:
            raise AlreadyExists(
                f"{', '.join(taken)}: restoring into topics that exist could mix records. Delete"
                " them, restore others with --topic, or say --resume if they come from a restore"
                " of this backup that was interrupted"
            )

    async def _check_level(self, topics: list[KeptTopic]) -> None:
        """Look before anything is written whether the cluster keeps the order of keys."""
        grown = [one.name for one in topics if one.layouts]
        if not grown:
            return
        try:
            level = (await self._client.cluster_status()).feature_level
        except PermissionDenied:
            return  # what is lacking is said when it is met
        if level < KEYED_ORDER_LEVEL:
            raise _lacks_layouts(", ".join(grown))

    async def _restore(self, topic: KeptTopic, positions: list[KeptPositions]) -> None:
        config = topic.config
        if self._replication is not None:
            config = replace(config, replication=self._replication)
        info = await self._made(topic, config.replication)
        layouts = topic.layouts or (len(topic.partitions),)
        for number, count in enumerate(layouts):
            if number:
                # What lies before its fences is there: so the fences come to stand where they were.
                info = await self._grown(topic, info, number)
            if len(info.partitions) < count:
                raise PreconditionFailed(
                    f"{topic.name} has {len(info.partitions)} partitions, the backup"
                    f" {count}: it does not come from a restore of it"
                )
            works = [
                partial(self._fill, topic, one, _bound(one, layouts, number + 1))
                for one in topic.partitions[:count]
            ]
            await in_turns(works, at_once=AT_ONCE)
        ends = {one.number: one.end for one in topic.partitions}
        for kept in positions:
            cut = tuple(_cut(position, ends[kept.partition]) for position in kept.positions)
            for at in range(0, len(cut), GROUPS_AT_ONCE):
                some = cut[at : at + GROUPS_AT_ONCE]
                await self._client.restore_positions(replace(kept, positions=some))
        await self._client.alter_topic(topic.name, config=config)

    async def _made(self, topic: KeptTopic, replication: int | None) -> TopicInfo:
        """Return the topic, made without retention unless it is there."""
        config = replace(
            topic.config,
            replication=replication,
            retention_ms=None,
            retention_bytes=None,
            retention_groups=False,
        )
        try:
            return await self._client.restore_topic(
                topic.name,
                partitions=(topic.layouts or (len(topic.partitions),))[0],
                config=config,
            )
        except AlreadyExists:
            # Only with other settings is it refused: one that is whole has got its own again.
            return await self._client.describe_topic(topic.name)

    async def _grown(self, topic: KeptTopic, info: TopicInfo, number: int) -> TopicInfo:
        """Return the topic with a layout in force, which begins where its partitions end now."""
        deadline = asyncio.get_running_loop().time() + IN_FORCE_S
        if len(info.partitions) < topic.layouts[number]:
            info = await self._client.alter_topic(topic.name, partitions=topic.layouts[number])
        while info.layout < number:
            if not info.layouts:
                raise _lacks_layouts(topic.name)
            if asyncio.get_running_loop().time() > deadline:
                raise PreconditionFailed(
                    f"layout {number} of {topic.name} does not come into force: a partition has no"
                    " leader, or a transaction is open"
                )
            await asyncio.sleep(LOOK_S)
            info = await self._client.describe_topic(topic.name)
        if info.layouts != topic.layouts[: len(info.layouts)]:
            raise PreconditionFailed(
                f"{topic.name} has the layouts {info.layouts}, the backup {topic.layouts}: it does"
                " not come from a restore of it"
            )
        return info

    # --- one partition ------------------------------------------------------------------------

    async def _fill(self, topic: KeptTopic, partition: KeptPartition, until: Offset) -> None:
        """Bring a partition to its mark, or to a fence before it."""
        doubts = 0
        at = await self._checked_end(topic, partition)
        while at < until:
            try:
                async for request in self._requests(topic.name, partition, at, until):
                    at = (await self._client.restore_records(request)).next_offset
                    doubts = 0
                    self._count(request)
                return
            except AngariumError as error:
                # Whether it was taken is not known: where the partition ends tells.
                doubts += 1
                is_doubt = error.retriable or error.code == OffsetOutOfRange.code
                if not is_doubt or doubts > DOUBTS_MAX:
                    raise
                at = await self._checked_end(topic, partition)

    def _count(self, request: RestoreRequest) -> None:
        self._records += sum(len(Batch.trusted(one)) for one in request.batches)
        self._bytes += sum(map(len, request.batches))
        self._told(Progress(records=self._records, bytes=self._bytes))

    async def _requests(
        self, topic: str, partition: KeptPartition, at: Offset, until: Offset
    ) -> AsyncIterator[RestoreRequest]:
        """Yield what brings a partition from `at` to `until`, in this order."""
        gathered: list[Buffer] = []
        size = 0

        def request(past: Offset) -> RestoreRequest:
            return RestoreRequest(
                topic=topic,
                partition=partition.number,
                next_offset=past,
                start_offset=min(partition.start, past),
                batches=tuple(gathered),
            )

        for file in partition.files:
            if file.next <= at and not gathered:
                continue
            if file.first >= until:
                break
            for buffer in await asyncio.to_thread(batches_of, self._store, file):
                batch = Batch.trusted(buffer)
                if batch.next_offset <= at:
                    continue
                if batch.base_offset >= until:
                    break
                if batch.base_offset > at or size + len(buffer) > REQUEST_BYTES:
                    if gathered or batch.base_offset > at:
                        yield request(batch.base_offset)
                    gathered, size = [], 0
                gathered.append(buffer)
                size += len(buffer)
                at = batch.next_offset
        yield request(until)

    async def _checked_end(self, topic: KeptTopic, partition: KeptPartition) -> Offset:
        """Return where a partition ends that is to be filled; raises if it holds other records."""
        found = await self._look(topic.name, partition.number)
        end = found.end_offset
        below = min(end, partition.end)
        if below <= found.start_offset:
            return end
        there = await self._last_below(topic.name, partition.number, below)
        kept = await asyncio.to_thread(self._kept_below, partition, below)
        is_compacted = topic.config.cleanup == "compact"
        if not (_is_left_of(there, kept) if is_compacted else there == kept):
            raise AlreadyExists(
                f"{topic.name} {partition.number} holds other records than the backup below offset"
                f" {below}: it does not come from a restore of it"
            )
        return end

    async def _look(self, topic: str, partition: int) -> FetchResult:
        """Return how a partition stands."""
        try:
            return await self._client.fetch_stored(topic, partition, Offset(0), bytes_max=1)
        except AngariumError as error:
            if error.code != OffsetOutOfRange.code:
                raise
        info = await self._client.describe_topic(topic)
        start = info.partitions[partition].start_offset or Offset(0)
        return await self._client.fetch_stored(topic, partition, start, bytes_max=1)

    async def _last_below(self, topic: str, partition: int, end: Offset) -> bytes | None:
        """Return the batch that holds the offset before `end`; None: there is a gap."""
        found = await self._client.fetch_stored(topic, partition, Offset(end - 1), bytes_max=1)
        for buffer in found.batches[:1]:
            if Batch.trusted(buffer).base_offset < end:
                return bytes(buffer)
        return None

    def _kept_below(self, partition: KeptPartition, end: Offset) -> bytes | None:
        """Return the same of the backup."""
        for file in partition.files:
            if file.first < end <= file.next:
                for buffer in batches_of(self._store, file):
                    batch = Batch.trusted(buffer)
                    if batch.base_offset < end <= batch.next_offset:
                        return bytes(buffer)
        return None


def _lacks_layouts(topics: str) -> PreconditionFailed:
    return PreconditionFailed(
        f"{topics} got partitions behind fences, which restoring keeps: it needs feature level"
        f" {KEYED_ORDER_LEVEL} (`angarium cluster raise-level`), and with --resume a topic that"
        " comes from a restore of this backup"
    )


def _bound(partition: KeptPartition, layouts: tuple[int, ...], layout: int) -> Offset:
    """Return where a layout begins in a partition; where it ends if none of that number does."""
    at = layout - bisect_right(layouts, partition.number) - 1
    return partition.fences[at] if at < len(partition.fences) else partition.end


def _portions(accounts: KeptAccounts) -> Iterator[KeptAccounts]:
    """Yield all of it in requests that can be carried out in time, in the order that they need."""
    of_roles = tuple(one for one in accounts.grants if one.is_role)
    of_users = tuple(one for one in accounts.grants if not one.is_role)
    for part in (
        KeptAccounts(roles=accounts.roles),
        KeptAccounts(grants=of_roles),
        KeptAccounts(users=accounts.users),
        KeptAccounts(grants=of_users),
        KeptAccounts(tokens=accounts.tokens),
        KeptAccounts(quotas=accounts.quotas),
    ):
        for name in part.__struct_fields__:
            rows = getattr(part, name)
            for at in range(0, len(rows), ACCOUNTS_AT_ONCE):
                yield replace(KeptAccounts(), **{name: rows[at : at + ACCOUNTS_AT_ONCE]})


def _is_left_of(there: bytes | None, kept: bytes | None) -> bool:
    """Tell whether a batch may be what compaction has left of another: it keeps these fields."""
    if there is None or kept is None:
        return True  # it took the whole batch away
    one, other = Batch.trusted(there), Batch.trusted(kept)
    return (one.base_offset, one.next_offset, one.append_time) == (
        other.base_offset,
        other.next_offset,
        other.append_time,
    )


def _cut(position: KeptPosition, end: Offset) -> KeptPosition:
    """Return a position without what it says of records behind the mark: after the restore others
    have those offsets."""
    ranges: list[int] = []
    for first, past in zip(position.ranges[::2], position.ranges[1::2], strict=True):
        if first < end:
            ranges += (first, min(past, end))
    return replace(
        position,
        floor=min(position.floor, end),
        ranges=tuple(ranges),
        attempts=tuple(one for one in position.attempts if one.offset < end),
    )
