"""A consumer group of real processes, and the verdict on what became of every record.

async with GroupLoad(cluster, folder, topic="orders", kind=GroupKind.QUEUE) as load:
    await load.publish(200_000)
    ...faults, load.kill_member(), ...
    verdict = await load.conclude()
assert not verdict.violations
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import msgspec

from angarium.api import GroupConfig
from angarium.client import Client
from angarium.errors import AngariumError, NotFound
from angarium.testing.cluster.group_member import Event, MemberSettings
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from angarium.kinds import GroupKind
    from angarium.testing.cluster.cluster import ProcessCluster

PIECE: Final = 1_000
"""Records that are published at a time."""

SETTLE_SECONDS_MAX: Final = 90.0
"""How long after the last fault a group may take to be done with everything."""


@dataclass(slots=True)
class GroupVerdict:
    """What a run came to."""

    records: int
    deliveries: int
    """Records handed to members, counted each time."""
    again: int
    """How many of these were not the first attempt."""
    dead: int
    """Dead letters."""
    killed: int
    """Members that were killed."""
    violations: list[str] = field(default_factory=list)


class GroupLoad:
    """Members of one group on one topic of numbered records."""

    def __init__(
        self,
        cluster: ProcessCluster,
        folder: Path,
        *,
        topic: str,
        kind: GroupKind,
        members: int = 8,
        config: GroupConfig | None = None,
        fail_share: float = 0.0,
        poison_every: int = 0,
        credit: int = 1_000,
        work_ms: int = 0,
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self.topic = topic
        self._kind = kind
        self._count = members
        self._config = config or GroupConfig()
        self._fail_share = fail_share
        self._poison_every = poison_every
        self._credit = credit
        self._work_ms = work_ms
        self._made = 0
        self._published = 0
        self._running: list[subprocess.Popen[bytes]] = []
        self.killed = 0
        servers = tuple(node.address for node in cluster.nodes.values())
        self._servers = servers
        self.client = Client(*servers)

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        await self.client.connect()
        for _ in range(self._count):
            self.start_member()
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in self._running:
            member.kill()
            member.wait()
        await self.client.close()

    # --- what happens ---------------------------------------------------------------------------

    def start_member(self) -> None:
        """Start one more."""
        self._made += 1
        name = self._folder / f"member-{self._made}"
        settings = MemberSettings(
            servers=self._servers,
            topic=self.topic,
            group="workers",
            kind=self._kind,
            config=self._config,
            diary=f"{name}.diary",
            parent=os.getpid(),
            credit=self._credit,
            fail_share=self._fail_share,
            poison_every=self._poison_every,
            work_ms=self._work_ms,
            seed=self._made,
        )
        path = name.with_suffix(".json")
        path.write_bytes(msgspec.json.encode(settings))
        with name.with_suffix(".log").open("ab") as log:
            self._running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "angarium.testing.cluster.group_member", str(path)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    process_group=0,
                )
            )

    def kill_member(self, chance: random.Random) -> None:
        """Kill any member (SIGKILL) and start another one."""
        member = self._running.pop(chance.randrange(len(self._running)))
        member.kill()
        member.wait()
        self.killed += 1
        self.start_member()

    async def publish(self, count: int, *, seconds: float = 0.0) -> None:
        """Publish numbered records, spread over so many seconds."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        first = self._published
        for start in range(first, first + count, PIECE):
            numbers = range(start, min(start + PIECE, first + count))
            values = [b"%d" % number for number in numbers]
            await self.client.publish_batch(self.topic, values, keys=values)
            self._published = numbers.stop
            ahead = started + seconds * (numbers.stop - first) / count - loop.time()
            if ahead > 0:
                await asyncio.sleep(ahead)

    # --- the verdict ----------------------------------------------------------------------------

    async def conclude(self, *, within_s: float = SETTLE_SECONDS_MAX) -> GroupVerdict:
        """Wait until the group is done with everything, and judge."""
        try:
            await eventually(self._is_done, within_s=within_s, what="the group is done")
        except TimeoutError as late:
            raise TimeoutError(f"{late}\n{await self._views()}") from late
        stored = await self._stored()
        letters = await self._letters()
        return self._judge(stored, letters, self._events())

    async def _is_done(self) -> bool:
        try:
            info = await self.client.describe_group("workers")
        except NotFound:
            return False
        return info.lag == 0 and all(one.floor == one.end_offset for one in info.positions)

    async def _views(self) -> str:
        """Return what every node says about the group, for a person."""
        lines = []
        for server in [node.address for node in self._cluster.nodes.values()]:
            try:
                async with Client(server) as client:
                    info = await client.describe_group("workers")
            except AngariumError as error:
                lines.append(f"{server} does not answer: {error}")
                continue
            lines += [f"{server}:", *(f"  {one}" for one in (*info.members, *info.positions))]
        return "\n".join(lines)

    async def _stored(self) -> dict[tuple[int, int], int]:
        found: dict[tuple[int, int], int] = {}
        async for batch in self.client.read_batches(self.topic):
            for offset, value in zip(batch.offsets(), batch.values(), strict=True):
                found[batch.partition, int(offset)] = int(value or b"-1")
        return found

    async def _letters(self) -> dict[tuple[int, int], list[int]]:
        """Return the attempts that dead letters tell, by where their records were."""
        found: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        try:
            async for record in self.client.read(self._config.dead_letter_topic):
                told = dict(record.headers)
                at = (
                    int(told["angarium-dlq-partition"] or 0),
                    int(told["angarium-dlq-offset"] or 0),
                )
                found[at].append(int(told["angarium-dlq-attempts"] or 0))
        except NotFound:
            pass  # nothing was given up
        return dict(found)

    def _events(self) -> list[Event]:
        events: list[Event] = []
        for path in sorted(self._folder.glob("*.diary")):
            # The last line of one that was killed may be cut off.
            lines = path.read_bytes().split(b"\n")[:-1]
            events += [msgspec.json.decode(line, type=Event) for line in lines]
        return sorted(events, key=lambda one: one.at)

    def _judge(
        self,
        stored: dict[tuple[int, int], int],
        letters: dict[tuple[int, int], list[int]],
        events: list[Event],
    ) -> GroupVerdict:
        took = [one for one in events if one.what == "took"]
        verdict = GroupVerdict(
            records=len(stored),
            deliveries=sum(len(one.offsets) for one in took),
            again=sum(len(one.offsets) for one in took if one.attempt > 1),
            dead=sum(map(len, letters.values())),
            killed=self.killed,
        )
        wrong = verdict.violations
        if sorted(stored.values()) != list(range(self._published)):
            wrong.append("the topic does not hold each number once")
        wrong += _judge_values(stored, took)
        wrong += _judge_ends(stored, letters, events)
        wrong += _judge_letters(letters, took, self._config, self._poison_every, stored)
        if self._kind.is_ordered:
            wrong += _judge_order(took)
        return verdict


def _records(event: Event) -> list[tuple[int, int]]:
    return [(event.partition, offset) for offset in event.offsets]


def _judge_values(stored: dict[tuple[int, int], int], took: list[Event]) -> list[str]:
    """Nothing is invented: what members got is what is stored there."""
    return [
        f"{record} was handed out as {number}, and is {stored.get(record)}"
        for event in took
        for record, number in zip(_records(event), event.numbers, strict=True)
        if stored.get(record) != number
    ][:10]


def _judge_ends(
    stored: dict[tuple[int, int], int],
    letters: dict[tuple[int, int], list[int]],
    events: list[Event],
) -> list[str]:
    """Each record ended once: somebody acknowledged it, or it became a dead letter."""
    about_to: set[tuple[int, int]] = set()
    acked: dict[tuple[int, int], int] = {}
    wrong: list[str] = []
    for event in events:
        for record in _records(event):
            if event.what == "acks":
                about_to.add(record)
            elif event.what == "acked":
                acked[record] = max(acked.get(record, 0), event.attempt)
    for event in events:
        if event.what == "took":
            wrong += [
                f"{record} came again, attempt {event.attempt}, after it was acknowledged"
                for record in _records(event)
                if event.attempt > acked.get(record, event.attempt)
            ]
    wrong += [
        f"{record} is missing: settled, and nobody did"
        for record in stored
        if record not in about_to and record not in letters
    ]
    wrong += [
        f"{record} was acknowledged and is a dead letter" for record in letters if record in acked
    ]
    return wrong[:20]


def _judge_letters(
    letters: dict[tuple[int, int], list[int]],
    took: list[Event],
    config: GroupConfig,
    poison_every: int,
    stored: dict[tuple[int, int], int],
) -> list[str]:
    """Dead letters are there once, after the right number of attempts, for all that is poison."""
    highest: defaultdict[tuple[int, int], int] = defaultdict(int)
    for event in took:
        for record in _records(event):
            highest[record] = max(highest[record], event.attempt)
    wrong = [
        f"{record} has {len(told)} dead letters" for record, told in letters.items() if told[1:]
    ]
    wrong += [
        f"the dead letter of {record} tells of {told[0]} attempts, not {config.max_attempts}"
        for record, told in letters.items()
        if told[0] != config.max_attempts
    ]
    wrong += [
        f"{record} was tried {tried} times, more than {config.max_attempts}"
        for record, tried in highest.items()
        if tried > config.max_attempts
    ]
    if poison_every:
        wrong += [
            f"{record} is poison and no dead letter"
            for record, number in stored.items()
            if number % poison_every == 0 and record not in letters
        ]
    return wrong[:20]


def _judge_order(took: list[Event]) -> list[str]:
    """In a stream nothing is handed out before everything below it was."""
    wrong: list[str] = []
    reached: defaultdict[int, int] = defaultdict(int)
    for event in took:
        expected = event.offsets[0]
        if expected > reached[event.partition]:
            wrong.append(
                f"partition {event.partition}: {expected} came when {reached[event.partition]}"
                " had not"
            )
        if event.offsets != sorted(event.offsets):
            wrong.append(f"partition {event.partition}: a delivery is out of order")
        reached[event.partition] = max(reached[event.partition], event.offsets[-1] + 1)
    return wrong[:10]
