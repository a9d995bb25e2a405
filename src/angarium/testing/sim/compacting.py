"""Compaction in a simulated cluster: somebody who has logs compacted, and how that is judged.

In a run with compaction every record has one of a few keys, told from its value, and is published
in CONSISTENT mode. What a compaction may remove is thereby known to whoever judges the run: a
record whose key comes again further up, below the offset that was named. `restored` puts such
records back at their offsets, so that all other checks go on to hold for everything else.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from angarium.batch import crc32c
from angarium.ids import Offset
from angarium.machine import Compact
from angarium.testing.history import FinalLog, LogRecord
from angarium.testing.sim.calls import Caller
from angarium.testing.sim.clock import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import RaftGroupId
    from angarium.machine import Outcome
    from angarium.testing.history import History
    from angarium.testing.sim.requests import PublishReply
    from angarium.testing.sim.world import World

KEYS: Final = 24


def keys_of_values(values: Sequence[bytes]) -> list[bytes | None]:
    """Return the key of each record."""
    return [b"key-%d" % (crc32c(value) % KEYS) for value in values]


class Compacting:
    """Has logs compacted, now and then, up to where they end at that moment."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.name = "compacting"
        self.active = True
        self.in_flight = 0
        self.until: dict[RaftGroupId, int] = {}
        """What was named, whether or not it was heard."""
        self._rng = random.Random(seed)
        self._caller = Caller(world, self.name, self._rng)
        for producer in world.producers:
            producer.consistent_share = 1.0

    def start(self) -> None:
        """Begin."""
        self._later()

    def receive(self, reply: PublishReply) -> None:
        """Take an answer."""
        self._caller.receive(reply)

    def are_done(self) -> bool:
        """Tell whether every replica is there and what the last compaction asks for.

        One whose segment turns out damaged on the way, when its peers have compacted theirs, comes
        back as somebody else, with nothing at first (seed 20802).
        """
        return all(
            self.world.operator.is_settled(group)
            and self.world.is_agreed(group)
            and all(
                replica is not None and not replica.partition.files.is_to_be_compacted
                for node in self.world.operator.holders(group)
                for replica in (self.world.replica_at(node, group),)
            )
            for group in self.world.groups
        )

    def expect_the_end(self) -> None:
        """Wait until every replica has done what was asked for."""
        self.world.wait(30 * SECOND, self.are_done)
        if not self.are_done():
            self.world.history.incidents.append("C10: a compaction is not done after 30 s")

    def judge(self) -> None:
        """Compare the final logs, and make up for what was rightly removed from them."""
        history = self.world.history
        history.incidents += _differences(history.final)
        for publish in history.publishes:
            # Of what was stored nobody knows where, nobody knows whether it had to stay.
            publish.stored = publish.stored and publish.group not in self.until
        history.final = [
            restored(log, self.until.get(log.group, 0), history) for log in history.final
        ]

    def _later(self) -> None:
        self.world.scheduler.after(self._rng.randrange(200, 1_500) * MILLISECOND, self._act)

    def _act(self) -> None:
        if not self.active:
            return
        group = self._rng.choice(self.world.groups)
        leader = self.world.operator.leader(group)
        if leader is None:
            self._later()
            return
        until = leader.partition.log.end_offset
        self.until[group] = max(until, self.until.get(group, 0))

        def done(outcome: Outcome | None) -> None:
            self.world.note(self.name, "group", group, "up to", until, outcome)
            self.in_flight = 0
            self._later()

        self.in_flight = 1
        self._caller.call(group, Compact(until=Offset(until)), done, attempts_max=50)


def restored(log: FinalLog, until: int, history: History) -> FinalLog:
    """Return a log with what compaction has rightly removed from it, as far as it is known."""
    held = {record.offset: record for record in log.records}
    latest: dict[bytes | None, int] = {}
    for record in log.records:
        if record.offset < until:
            latest[keys_of_values([record.value])[0]] = record.offset
    for publish in history.publishes:
        if publish.group != log.group or publish.base_offset < 0:
            continue
        keys = keys_of_values(publish.values)
        for at, (value, key) in enumerate(zip(publish.values, keys, strict=True)):
            offset = publish.base_offset + at
            is_below = log.start <= offset < min(until, latest.get(key, -1))
            if is_below and offset not in held:
                held[offset] = LogRecord(
                    offset, value, publish.producer, publish.epoch, publish.sequence + at
                )
    # Readers may have been before or behind the compaction.
    there = {record.offset for record in log.records}
    below = range(log.start, min(until, log.end))
    gaps = [(offset, offset + 1) for offset in below if offset not in there]
    records = tuple(held[offset] for offset in sorted(held))
    return FinalLog(log.node, log.group, log.start, log.end, records, (*log.gaps, *gaps))


def _differences(logs: Sequence[FinalLog]) -> list[str]:
    """Say where replicas of a group that begin at the same offset hold different records."""
    first: dict[tuple[RaftGroupId, int], FinalLog] = {}
    found = []
    for log in logs:
        other = first.setdefault((log.group, log.start), log)
        if log.records != other.records:
            found.append(
                f"C9: nodes {other.node} and {log.node} differ in group {log.group}, compacted"
            )
    return found
