"""The plan of a streaming read: how far each micro-batch goes, and what it reads.

What a micro-batch reads is fixed by its two offsets and never depends on when it is run: a batch
that Spark repeats after a crash reads the same records. Where records are gone, what happens is
decided here, when the batch is planned, and by nobody else: a task never starts over elsewhere.
A partition that nobody can answer for stays where it is meanwhile, and the others go on.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.api import Start, StartAt
from angarium.api.fences import bound_of, gates_open
from angarium.errors import AngariumError, NotFound
from angarium.spark.allotment import allotted, allotted_bytes
from angarium.spark.answering import PATIENCE_S, Answering, NobodyAnswers
from angarium.spark.locating import Chosen, by_topic, chosen, located
from angarium.spark.losses import LossPolicy
from angarium.spark.offsets import NOWHERE, StreamOffset
from angarium.spark.options import Assigned
from angarium.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.api import TopicInfo
    from angarium.spark.cluster import Cluster
    from angarium.spark.options import ReadOptions

_log = logging.getLogger(__name__)

PATIENCE_AT_LAST_S: Final = 60.0
"""How long a query waits that ends with what is there now, or cannot go on without knowing it."""

RECORD_BYTES_GUESS: Final = 1024.0
"""How large a record counts as where the log has none to look at, or nobody shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerLimit:
    """What one trigger may read; None stands for no limit."""

    records_max: int | None = None
    records_min: int | None = None
    bytes_max: int | None = None


class StreamPlan:
    """Plans the micro-batches of one query, one after the other."""

    def __init__(
        self, options: ReadOptions, cluster: Cluster, *, clock: Callable[[], float]
    ) -> None:
        """Plan what `options` ask for; `clock` counts seconds."""
        self._options = options
        self._cluster = cluster
        self._clock = clock
        self._policy = LossPolicy(options.fail_on_data_loss)
        self._answering = Answering(cluster)
        self._infos: Mapping[str, TopicInfo] = {}
        """Topics as they were when it was last asked how far they go."""
        self._initial: StreamOffset | None = None
        self._target: StreamOffset | None = None
        self.newest_seen: StreamOffset | None = None
        """The end of everything, as it was when a micro-batch was last planned."""
        self._reported: tuple[Mapping[str, int], Mapping[tuple[str, int], int]] | None = None
        """What the group was last told: topics' ids, and how far the query has come."""
        self._last_batch_at = clock()

    # --- where it begins and ends -----------------------------------------------------------

    def initial(self) -> StreamOffset:
        """Return where the query begins, the same whenever it is asked."""
        if self._initial is None:
            options = self._options
            meant = chosen(options.choice, self._cluster.topics())
            offsets = located(
                self._cluster,
                meant,
                options.start,
                is_start=True,
                must_match_time=options.must_match_time,
            )
            self._initial = StreamOffset(offsets=offsets, topics=meant.topics, is_initial=True)
        return self._initial

    @property
    def silent(self) -> Mapping[str, list[int]]:
        """Partitions that nobody answered for when it was last asked, by topic."""
        found: dict[str, list[int]] = {}
        for topic, partition in sorted(self._answering.silent):
            found.setdefault(topic, []).append(partition)
        return found

    def newest(
        self, start: StreamOffset, *, patience_s: float = PATIENCE_S, must_answer: bool = False
    ) -> StreamOffset:
        """Return the end of everything there is now, for a query that has come to `start`.

        New partitions and topics are part of it. One that was deleted, or made anew under its
        name, is a loss; what is left or new of it is read then. One that nobody answers for ends
        where the query stands, or `NobodyAnswers`.
        """
        meant = self._present(start)
        pairs = meant.topic_partitions()
        self._answering.forget_all_but(pairs)
        patience_s = PATIENCE_AT_LAST_S if must_answer else patience_s
        ends = self._answering.offsets(pairs, Start(StartAt.LATEST), patience_s=patience_s)
        floors: dict[tuple[str, int], int] = {}
        for topic, partition in pairs:
            known = self._known(start, meant, topic, partition)
            end = ends.get((topic, partition))
            if end is None:
                if must_answer:
                    error = self._answering.silent[topic, partition]
                    raise NobodyAnswers(topic, partition, error)
                # A copy that is behind the query has lost nothing: it lags.
                floors[topic, partition] = max(known or 0, self._copy_end(topic, partition))
                continue
            if known is not None and end < known:
                self._policy.meet(
                    f"{_spoken(topic, partition)} ends at {end}, but the query stands at {known}"
                )
            floors[topic, partition] = max(end, known or 0)
        return StreamOffset(offsets=by_topic(floors), topics=meant.topics)

    def stop_at_newest(self) -> None:
        """Go no further than what is there now: the query ends when it has come so far."""
        self._target = self.newest(NOWHERE, patience_s=PATIENCE_AT_LAST_S)

    def report(self, reached: StreamOffset) -> None:
        """Tell the group, if there is one, that everything below `reached` is done.

        A broker that cannot be told right now is told next time; a group that is not ours to move
        fails the query. A partition's leader keeps the group's place there, so that of a silent one
        is told when it answers again: the others would wait for it each time.
        """
        group = self._options.group
        offsets = {
            (topic, partition): offset
            for topic, partitions in reached.offsets.items()
            for partition, offset in partitions.items()
            if (topic, partition) not in self._answering.silent
        }
        told = (reached.topics, offsets)
        if group is None or not offsets or told == self._reported:
            return
        try:
            self._cluster.report(group, offsets)
        except NotFound:
            # A topic was deleted, which `newest` meets; the others have been told.
            self._reported = told
        except AngariumError as error:
            if not error.retriable:
                raise
            _log.warning("the group %s was not told how far the query has come: %s", group, error)
        else:
            self._reported = told

    # --- one micro-batch --------------------------------------------------------------------

    def end(self, start: StreamOffset, limit: TriggerLimit) -> StreamOffset:
        """Return how far the next micro-batch goes; `start` itself if there is nothing for it."""
        newest = self.newest_seen = self.newest(start)
        if self._target is not None:
            newest = self._no_further_than_target(newest)
        begin = self._begin(start, newest)
        newest = self._up_to_fences(newest, begin)
        waiting = {
            (topic, partition): max(0, stop - begin[topic][partition])
            for topic, partitions in newest.offsets.items()
            for partition, stop in partitions.items()
        }
        total = sum(waiting.values())
        if not total or self._should_wait(total, limit):
            return start
        self._last_batch_at = self._clock()
        share = waiting if limit.records_max is None else allotted(waiting, limit.records_max)
        if limit.bytes_max is not None:
            share = allotted_bytes(share, self._record_bytes(share, begin), limit.bytes_max)
        offsets = {
            (topic, partition): begin[topic][partition] + count
            for (topic, partition), count in share.items()
        }
        return StreamOffset(
            offsets=by_topic(offsets),
            topics=newest.topics,
            start=start if start.is_initial else None,
        )

    def ranges(self, start: StreamOffset, end: StreamOffset) -> list[OffsetRange]:
        """Return what the micro-batch between two offsets reads."""
        # The first batch says itself where it began; what Spark says may be a later "latest".
        start = end.start or start
        for topic, id_ in start.topics.items():
            if end.topics.get(topic) != id_:
                self._policy.meet(f"the topic {topic} was deleted")
        begin = self._begin(start, end)
        there = set(self._still_there(end).topic_partitions())
        wanted = [pair for pair in there if begin[pair[0]][pair[1]] < end.offsets[pair[0]][pair[1]]]
        first = self._answering.offsets(sorted(wanted), Start(StartAt.EARLIEST))
        ranges = []
        for topic, partitions in end.offsets.items():
            for partition, stop in partitions.items():
                begins = begin[topic][partition]
                if begins >= stop:
                    continue
                if (topic, partition) not in there:
                    self._policy.meet(f"{_spoken(topic, partition)} was deleted")
                    continue
                # Where nobody tells, the task waits for its records, and meets what is gone.
                low = first.get((topic, partition), begins)
                if begins < min(low, stop):
                    self._policy.meet(
                        f"{_spoken(topic, partition)} begins at {low}, not at {begins}"
                    )
                ranges.append(
                    OffsetRange(topic, partition, max(begins, low), stop, end.topics[topic])
                )
        return [one for one in ranges if one.records]

    def _up_to_fences(self, newest: StreamOffset, begin: dict[str, dict[int, int]]) -> StreamOffset:
        """Return the end of a micro-batch in which no key is out of its order.

        A topic that was given partitions is read up to its fences first; what lies behind them, and
        in the partitions that came with them, belongs to the next micro-batch.
        """
        offsets: dict[str, dict[int, int]] = {}
        for topic, ends in newest.offsets.items():
            info = self._infos[topic]
            if len(ends) < len(info.partitions):
                # Who reads only some partitions does not wait for the others.
                offsets[topic] = dict(ends)
                continue
            opened = gates_open(info, begin[topic])
            offsets[topic] = {}
            for partition, end in ends.items():
                bound, known = bound_of(info, partition, opened), info.partitions[partition]
                stop = end if bound is None else min(end, bound)
                if info.layouts:
                    # Of later records it is not known whether they lie behind another fence, and of
                    # none where nobody could be asked: its leader may have come back since.
                    stop = min(stop, known.end_offset or 0)
                offsets[topic][partition] = max(stop, begin[topic][partition])
        return StreamOffset(offsets=offsets, topics=newest.topics)

    # --- inside -----------------------------------------------------------------------------

    def _present(self, start: StreamOffset) -> Chosen:
        """Return the partitions to read from now on, and meet those that are gone."""
        topics = self._infos = self._cluster.topics()
        meant = chosen(self._options.choice, topics, must_exist=False)
        for topic, partitions in start.offsets.items():
            if topic not in meant.topics:
                self._policy.meet(f"the topic {topic} was deleted")
            elif meant.topics[topic] != start.topics.get(topic):
                self._policy.meet(f"the topic {topic} was deleted and made anew")
            elif gone := sorted(partitions.keys() - set(meant.partitions[topic])):
                self._policy.meet(f"{_spoken(topic, gone[0])} was deleted")
        return meant

    def _copy_end(self, topic: str, partition: int) -> int:
        """Return where the nearest copy ends that can be read while nobody leads, or 0."""
        if not (self._options.region or self._options.from_nearest):
            return 0
        found = next(one for one in self._infos[topic].partitions if one.number == partition)
        return int(found.end_offset or 0)

    def _known(self, start: StreamOffset, meant: Chosen, topic: str, partition: int) -> int | None:
        if start.topics.get(topic) != meant.topics[topic]:
            return None
        return start.offsets.get(topic, {}).get(partition)

    def _begin(self, start: StreamOffset, end: StreamOffset) -> dict[str, dict[int, int]]:
        """Return where to begin in every partition of `end`: new ones are read from offset 0."""
        return {
            topic: {
                partition: (
                    start.offsets.get(topic, {}).get(partition, 0)
                    if start.topics.get(topic) == end.topics[topic]
                    else 0
                )
                for partition in partitions
            }
            for topic, partitions in end.offsets.items()
        }

    def _still_there(self, end: StreamOffset) -> Chosen:
        """Return the partitions of `end` that exist, in the topics that it meant."""
        topics = self._cluster.topics()
        same = {
            topic: tuple(sorted(partitions))
            for topic, partitions in end.offsets.items()
            if topic in topics and int(topics[topic].id) == end.topics[topic]
        }
        return chosen(Assigned(same), topics, must_exist=False)

    def _no_further_than_target(self, newest: StreamOffset) -> StreamOffset:
        assert self._target is not None
        target = self._target
        return StreamOffset(
            offsets={
                topic: {
                    partition: min(end, target.offsets[topic][partition])
                    for partition, end in partitions.items()
                    if partition in target.offsets[topic]
                }
                for topic, partitions in newest.offsets.items()
                if target.topics.get(topic) == newest.topics[topic]
            },
            topics={
                topic: id_
                for topic, id_ in newest.topics.items()
                if target.topics.get(topic) == id_
            },
        )

    def _should_wait(self, waiting: int, limit: TriggerLimit) -> bool:
        # A query that ends with what is there would wait for ever for more.
        if limit.records_min is None or waiting >= limit.records_min or self._target is not None:
            return False
        return self._clock() - self._last_batch_at < self._options.trigger_delay_s_max

    def _record_bytes(
        self, share: Mapping[tuple[str, int], int], begin: Mapping[str, Mapping[int, int]]
    ) -> dict[tuple[str, int], float]:
        sizes = {}
        for (topic, partition), count in share.items():
            seen = self._mean_bytes(topic, partition, begin[topic][partition]) if count else None
            sizes[topic, partition] = RECORD_BYTES_GUESS if seen is None else seen
        return sizes

    def _mean_bytes(self, topic: str, partition: int, offset: int) -> float | None:
        try:
            return self._cluster.record_bytes(topic, partition, offset)
        except AngariumError as error:
            if not error.retriable:
                raise
            return None  # fallen silent since; its task waits for its records


def _spoken(topic: str, partition: int) -> str:
    return f"{topic} partition {partition}"
