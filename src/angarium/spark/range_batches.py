"""Reading a range of offsets on an executor: the next fetch runs while Spark takes the last.

Exactly the records of the range are read, whatever happens meanwhile: a leader that moves is
followed, a replica that lags is passed by, and a record that is gone is a loss that is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.client.reading.face import FetchedBatches
from angarium.errors import NotFound, OffsetOutOfRange
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.client.records import ReceivedBatch
    from angarium.spark.link import Link
    from angarium.spark.losses import LossPolicy
    from angarium.spark.ranges import OffsetRange


def range_batches(
    link: Link, wanted: OffsetRange, *, policy: LossPolicy, from_nearest: bool = False
) -> Iterator[ReceivedBatch]:
    """Yield the records of `wanted`, in the batches in which they are stored."""
    topic, partition, offset = wanted.topic, wanted.partition, wanted.start
    if not _is_same_topic(link, wanted, from_nearest=from_nearest):
        policy.meet(f"the topic {topic} was deleted")
        return
    is_sure = False
    coming = link.begin_fetch(topic, partition, offset)
    try:
        while offset < wanted.stop:
            try:
                batches = coming.result()
            except OffsetOutOfRange as outside:
                batches = FetchedBatches(after=_behind_the_trimmed(wanted, offset, outside, policy))
            except NotFound:
                policy.meet(f"the topic {topic} was deleted")
                return
            if batches.after == offset and is_sure:
                _meet_the_end(link, wanted, offset, policy)
                return
            # Nothing came: a replica may lag, or only gaps are left. A leader that makes sure that
            # it leads knows which.
            is_sure = batches.after == offset
            offset = batches.after
            if offset < wanted.stop:
                coming = link.begin_fetch(topic, partition, offset, fresh=is_sure)
            yield from _within(batches, wanted.stop)
    finally:
        coming.cancel()


def _is_same_topic(link: Link, wanted: OffsetRange, *, from_nearest: bool) -> bool:
    try:
        return link.topic_id(wanted.topic, from_nearest=from_nearest) == wanted.topic_id
    except NotFound:
        return False


def _behind_the_trimmed(
    wanted: OffsetRange, offset: int, outside: OffsetOutOfRange, policy: LossPolicy
) -> int:
    """Return where to go on: behind what was trimmed away, but never beyond the range."""
    if offset >= outside.start:
        return offset  # ahead of the replica that answered
    here = f"{wanted.topic} partition {wanted.partition}"
    policy.meet(f"{here} begins at {outside.start} by now, and {offset} was to be read")
    return min(outside.start, wanted.stop)


def _meet_the_end(link: Link, wanted: OffsetRange, offset: int, policy: LossPolicy) -> None:
    """Look why a leader has nothing more: gaps up to the end of the range, or no such offsets."""
    end = link.end_offset(wanted.topic, wanted.partition)
    if end < wanted.stop:
        policy.meet(f"{wanted} was to be read from {offset} on, and the partition ends at {end}")


def _within(batches: list[ReceivedBatch], stop: int) -> Iterator[ReceivedBatch]:
    """Yield the batches up to below `stop`; the last one may reach beyond it."""
    for batch in batches:
        if batch.batch.next_offset > stop:
            end = min(batch.stop, batch.batch.position_of(Offset(stop)))
            if end > batch.start:
                yield msgspec.structs.replace(batch, stop=end)
        else:
            yield batch
