"""Runs of streaming queries, numbered: a newer run of a query fences every older one.

Spark tells a task the query's id and the run's, which is drawn anew at each start, but no number.
So runs *claim* one: the first task of a run appends a record to the topic `angarium-spark-runs`,
and the offset of a run's first claim is its number, its *epoch*. All tasks of a run find the same
one, however many claim at once; a driver that was thought dead and goes on finds its old one, and
is refused.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api import TopicConfig
from angarium.errors import AlreadyExists

if TYPE_CHECKING:
    from angarium.client.transactions.staged import StagedWrite
    from angarium.spark.link import Link

RUNS_TOPIC: Final = "angarium-spark-runs"
"""Claims, one small record for each run of a query. They are never removed."""


class Claim(msgspec.Struct, frozen=True):
    """A run says that it is there."""

    query: str
    run: str


class Runs:
    """What one process knows of the runs."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._epochs: dict[Claim, int] = {}
        self._read_to = 0
        self._is_made = False

    def epoch(self, query: str, run: str) -> int:
        """Return the epoch of a run, claiming one if it has none."""
        claim = Claim(query, run)
        if claim not in self._epochs:
            self._make_topic()
            self._read()
        if claim not in self._epochs:
            self._link.publish(RUNS_TOPIC, key=query, value=msgspec.json.encode(claim))
            self._read()
        return self._epochs[claim]

    def _make_topic(self) -> None:
        if not self._is_made and RUNS_TOPIC not in self._link.topics():
            # Another task may do so at the same moment.
            with suppress(AlreadyExists):
                self._link.create_topic(RUNS_TOPIC, partitions=1, config=TopicConfig())
        self._is_made = True

    def _read(self) -> None:
        """Take over the claims that are new, all that were acknowledged before this call."""
        while True:
            batches = self._link.begin_fetch(RUNS_TOPIC, 0, self._read_to, fresh=True).result()
            for batch in batches:
                for offset, value in zip(batch.offsets(), batch.values(), strict=True):
                    claim = msgspec.json.decode(value or b"", type=Claim)
                    # Counted from 1: 0 is the epoch of writes that are no stream's.
                    self._epochs.setdefault(claim, offset + 1)
            if batches.after == self._read_to:
                return
            self._read_to = batches.after


def write_epoch(link: Link, name: str) -> int:
    """Return the epoch of a new run of a write that has a name of its own: a higher one than all
    before it had.

    A run that failed has closed its number, for its epoch. They are counted by a series beside that
    of the write, whose transactions are empty.
    """
    number = 0
    while True:
        counted = link.call(link.staged(f"{name}#runs", epoch=0, sequence=number).commit([]))
        if not counted.repeated:
            return number + 1
        # Also if it was this call, asked again: a number that nobody uses is no matter.
        number = max(number, counted.last_sequence or 0) + 1


def batch_write(link: Link, query: str, epoch: int, batch: int) -> StagedWrite:
    """Return the transaction of one micro-batch.

    Batches have odd sequences; the even one before each is for `fence`.
    """
    return link.staged(_series(query), epoch=epoch, sequence=2 * batch + 1)


def fence(link: Link, query: str, epoch: int, batch: int) -> None:
    """Let no older run commit anything from `batch` on.

    A commit would do that, too, but only when it comes: until then an older run that plans other
    batches than ours could get ahead of us. Aborting a transaction that nobody uses is enough.
    """
    link.call(link.staged(_series(query), epoch=epoch, sequence=2 * batch).abort())


def _series(query: str) -> str:
    return f"spark-{query}"
