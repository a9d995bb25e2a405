"""The work of groups in a soak: retries, delays, dead letters, compaction, retention by groups.

Two groups share a topic of jobs, a queue and a key group; some jobs are delayed, some fail once,
some always. The topic keeps what a group has not settled, and nothing else. A stream group follows
a compacted topic of prices. Whatever is published is remembered here until the groups are done with
it, so that at the end something missing is something wrong.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from angarium.api import GroupConfig, TopicConfig
from angarium.errors import AngariumError
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from angarium.client import Client
    from angarium.client.groups.group_records import GroupRecord

JOBS: Final = "jobs"
JOBS_PARTITIONS: Final = 4
JOB_BYTES: Final = 100
JOB_KEYS: Final = 500
WORKERS: Final = 2
"""Consumers in each of the groups."""

DELAYED_EVERY: Final = 20
DELAY_S_MAX: Final = 10
FAILS_EVERY: Final = 53
"""Every so-manieth job fails at its first attempt."""

POISON_EVERY: Final = 1_009
"""Every so-manieth job fails always, and becomes a dead letter of each group."""

DEAD_LETTERS: Final = "soak.dlq"
DEAD_LETTERS_KEPT_MS: Final = 5 * 60_000

PRICES: Final = "prices"
PRICES_PARTITIONS: Final = 2
PRICE_BYTES: Final = 500
PRICE_KEYS: Final = 4_000
GONE_EVERY: Final = 97
"""Every so-manieth price is a null: its key is gone."""

TURNS_PER_SECOND: Final = 10
CONFIG: Final = GroupConfig(
    max_attempts=3,
    ack_timeout_ms=60_000,
    backoff_min_ms=200,
    backoff_max_ms=2_000,
    dead_letter_topic=DEAD_LETTERS,
)


class GroupWork:
    """Publishes jobs and prices, consumes them in groups, and minds what became of each."""

    def __init__(self, client: Client, *, rate: int) -> None:
        self.faults: list[str] = []
        self.handed_ms: list[float] = []
        self.late_ms: list[float] = []
        """How long things took; whoever looks empties."""
        self.unanswered = 0
        """Records whose publish was not answered in time."""
        self.settled = 0
        self.retried = 0
        self.dead = 0
        self._client = client
        self._per_turn = max(1, rate // TURNS_PER_SECOND)
        self._unsettled: dict[str, set[int]] = {"queue": set(), "key": set()}
        self._last_of_key: dict[bytes, int] = {}
        self._stream_at: dict[int, int] = {}
        self._prices: dict[bytes, bytes | None] = {}
        """The last price of each key."""
        self._doubtful: set[int] = set()
        self._doubtful_keys: set[bytes] = set()
        """Jobs, and keys of prices, of publishes that were not answered."""
        self._made = 0
        self._priced = 0
        self._is_over = False
        self._groups = [*(f"{kind}-workers" for kind in self._unsettled), "ledger"]

    async def prepare(self) -> None:
        """Create the topics."""
        client = self._client
        until_settled = TopicConfig(retention_groups=True)
        await client.create_topic(JOBS, partitions=JOBS_PARTITIONS, config=until_settled)
        kept = TopicConfig(retention_ms=DEAD_LETTERS_KEPT_MS)
        await client.create_topic(DEAD_LETTERS, config=kept)
        compacted = TopicConfig(cleanup="compact", tombstone_ms=60_000)
        await client.create_topic(PRICES, partitions=PRICES_PARTITIONS, config=compacted)

    def consumers(self) -> list[Coroutine[None, None, None]]:
        """Return every consumer, to run until it is cancelled."""
        kinds = [kind for kind in self._unsettled for _ in range(WORKERS)]
        return [
            *(self._consume(kind) for kind in kinds),
            *(self._follow() for _ in range(WORKERS)),
        ]

    def stop(self) -> None:
        """Publish no more."""
        self._is_over = True

    @property
    def unsettled(self) -> int:
        """How many jobs the group that is further behind has yet to settle."""
        return max(map(len, self._unsettled.values()))

    # --- publishing -----------------------------------------------------------------------------

    async def publish(self) -> None:
        """Publish until `stop` is called; nothing is broken off."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        async with asyncio.TaskGroup() as turns:
            while not self._is_over:
                await asyncio.sleep(max(0.0, due - loop.time()))
                due += 1 / TURNS_PER_SECOND
                turns.create_task(self._take_turn())

    async def _take_turn(self) -> None:
        """Publish a share of both; what is not answered in time may be there or not."""
        jobs, prices = self._next_jobs(), self._next_prices()
        try:
            await self._publish_jobs(jobs)
        except AngariumError:
            self.unanswered += len(jobs)
            self._doubtful.update(jobs)
            for missing in self._unsettled.values():
                missing.difference_update(jobs)
        keys, values = prices
        try:
            await self._client.publish_batch(PRICES, values, keys=keys)
        except AngariumError:
            self.unanswered += len(keys)
            for key in keys:
                self._doubtful_keys.add(key)

    def _next_jobs(self) -> range:
        numbers = range(self._made, self._made + self._per_turn)
        self._made = numbers.stop
        for missing in self._unsettled.values():
            missing.update(numbers)
        return numbers

    async def _publish_jobs(self, numbers: range) -> None:
        now = time.time_ns() // 1_000
        prompt = [one for one in numbers if one % DELAYED_EVERY]
        later = [one for one in numbers if not one % DELAYED_EVERY]
        if prompt:
            await self._client.publish_batch(
                JOBS,
                [_job(one) for one in prompt],
                keys=[b"%d" % (one % JOB_KEYS) for one in prompt],
                timestamps=now,
            )
        if later:
            # Without a key: one that is delayed is not in order.
            await self._client.publish_batch(
                JOBS,
                [_job(one) for one in later],
                timestamps=now,
                deliver_at=[now + (1 + one // 7 % DELAY_S_MAX) * 1_000_000 for one in later],
            )

    def _next_prices(self) -> tuple[list[bytes], list[bytes | None]]:
        numbers = range(self._priced, self._priced + self._per_turn)
        self._priced = numbers.stop
        # A step that is prime to the number of keys: all of them come, in an order like chance.
        keys = [b"k%d" % (one * 1_597 % PRICE_KEYS) for one in numbers]
        values = [
            b"%d" % one + b"." * (PRICE_BYTES - len(str(one))) if one % GONE_EVERY else None
            for one in numbers
        ]
        self._prices.update(zip(keys, values, strict=True))
        return keys, values

    # --- consuming ------------------------------------------------------------------------------

    async def _consume(self, kind: str) -> None:
        missing = self._unsettled[kind]
        group = self._client.group(f"{kind}-workers", kind=kind, config=CONFIG)
        async with group.consume(JOBS, credit=2_000) as records:
            async for record in records:
                number = int((record.value or b"").partition(b".")[0])
                self._note_times(record)
                fails_once = number % FAILS_EVERY == 0 and record.attempt == 1
                if number % POISON_EVERY == 0 or fails_once:
                    if record.attempt >= CONFIG.max_attempts:
                        missing.discard(number)  # from here on it is a dead letter's business
                        self.dead += 1
                    record.nack_nowait(reason="as planned")
                    continue
                self.settled += 1
                if number not in missing and number not in self._doubtful:
                    self.faults.append(f"{kind}: job {number} came again after it was settled")
                missing.discard(number)
                if kind == "key" and record.key is not None:
                    self._check_order(record.key, number)
                record.ack_nowait()

    def _note_times(self, record: GroupRecord) -> None:
        now = time.time_ns() // 1_000
        if record.attempt > 1:
            self.retried += 1
        elif record.deliver_at:
            self.late_ms.append((now - record.deliver_at) / 1_000)
            if now < record.deliver_at:
                self.faults.append(f"a delayed job came {record.deliver_at - now} µs too early")
        else:
            self.handed_ms.append((now - record.timestamp) / 1_000)

    def _check_order(self, key: bytes, number: int) -> None:
        last = self._last_of_key.get(key, -1)
        if number < last:
            self.faults.append(f"key {key!r}: job {number} came after {last}")
        self._last_of_key[key] = number

    async def _follow(self) -> None:
        group = self._client.group("ledger", kind="stream")
        async for batch in group.consume_batches(PRICES):
            offsets = batch.offsets()
            at = self._stream_at.get(batch.partition, 0)
            if offsets[0] < at and batch.attempt == 1:
                self.faults.append(
                    f"prices {batch.partition}: {offsets[0]} came though {at} was reached"
                )
            self._stream_at[batch.partition] = int(offsets[-1]) + 1
            batch.ack_nowait()

    # --- the end --------------------------------------------------------------------------------

    async def conclude(self, *, within_s: float = 60.0) -> str:
        """Wait until the groups are done with everything, judge, and say what there was."""

        async def is_done() -> bool:
            if self.unsettled:
                return False
            infos = [await self._client.describe_group(name) for name in self._groups]
            return not any(info.lag for info in infos)

        try:
            await eventually(is_done, within_s=within_s, what="the groups are done")
        except TimeoutError as late:
            self.faults.append(str(late))
            for kind, missing in self._unsettled.items():
                if missing:
                    some = sorted(missing)[:5]
                    self.faults.append(f"{kind}: {len(missing)} jobs never settled: {some} ...")
        return "\n".join([await self._judge_prices(), await self._judge_groups()])

    async def _judge_prices(self) -> str:
        """Every key has its last price, however much of the rest was compacted away."""
        found: dict[bytes, bytes | None] = {}
        left = 0
        async for batch in self._client.read_batches(PRICES):
            left += len(batch)
            keys = batch.keys()
            found.update(zip(map(bytes, filter(None, keys)), batch.values(), strict=True))
        wrong = [
            key
            for key, price in self._prices.items()
            # One that is gone may be gone altogether, tombstone included.
            if found.get(key) != price and key not in self._doubtful_keys
        ]
        if wrong:
            self.faults.append(f"{len(wrong)} keys do not have their last price: {wrong[:5]}")
        return (
            f"prices: {self._priced:,} were published, {left:,} are left after compaction; "
            f"{len(self._prices) - len(wrong):,} of {len(self._prices):,} keys have their last one"
        )

    async def _judge_groups(self) -> str:
        jobs = await self._client.describe_topic(JOBS)
        starts = sum(one.start_offset or 0 for one in jobs.partitions)
        ends = sum(one.end_offset or 0 for one in jobs.partitions)
        graves = await self._client.describe_topic(DEAD_LETTERS)
        letters = sum(one.end_offset or 0 for one in graves.partitions)
        if letters < self.dead:
            self.faults.append(f"{self.dead} jobs were given up, and {letters} dead letters made")
        return (
            f"jobs: {self._made:,} were published, each settled by two groups; {starts:,} of "
            f"{ends:,} are trimmed away; {self.retried:,} attempts were not the first, "
            f"{letters:,} dead letters"
        )


def _job(number: int) -> bytes:
    return b"%d" % number + b"." * (JOB_BYTES - len(str(number)))
