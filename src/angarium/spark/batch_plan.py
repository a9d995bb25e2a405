"""The plan of a batch read: which offsets it reads, fixed before the first task starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import InvalidArgument
from angarium.spark.boundaries import CommittedBy, EachOffset, Edge
from angarium.spark.locating import chosen, located
from angarium.spark.losses import LossPolicy
from angarium.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from angarium.spark.cluster import Cluster
    from angarium.spark.options import ReadOptions


def batch_ranges(options: ReadOptions, cluster: Cluster) -> list[OffsetRange]:
    """Return the ranges of a batch read, one for each partition that has anything in it.

    Ends are found after starts, so that what was there when the read began is part of it. A start
    that has been trimmed away, or an end that does not exist, is a loss.
    """
    policy = LossPolicy(options.fail_on_data_loss)
    meant = chosen(options.choice, cluster.topics())
    starts = located(
        cluster, meant, options.start, is_start=True, must_match_time=options.must_match_time
    )
    ends = located(cluster, meant, options.end, is_start=False)
    first = located(cluster, meant, Edge.EARLIEST, is_start=True)
    past = located(cluster, meant, Edge.LATEST, is_start=False)
    ranges = []
    for topic, partition in meant.topic_partitions():
        start, stop = starts[topic][partition], ends[topic][partition]
        low, high = first[topic][partition], past[topic][partition]
        here = f"{topic} partition {partition}"
        if isinstance(options.start, EachOffset | CommittedBy):
            if isinstance(options.end, EachOffset) and start > stop:
                raise InvalidArgument(
                    f"startingOffsets ({start}) lies behind endingOffsets ({stop}) in {here}"
                )
            # Any other start was found there a moment ago; retention may just have passed it.
            if start < low:
                policy.meet(f"{here} begins at {low}, not at {start}")
        if max(start, stop) > high:
            policy.meet(f"{here} ends at {high}, not at {max(start, stop)}")
        ranges.append(
            OffsetRange(topic, partition, max(start, low), min(stop, high), meant.topics[topic])
        )
    return [one for one in ranges if one.records]
