"""The layouts of a mirrored topic: it is given partitions in the other cluster as it was here.

A record that lies behind a fence here (docs/decisions/0025) goes behind that fence there. So a
topic is made with the partitions that it began with, and given the others when the first record
comes that was dealt to them; what was dealt before is committed by then, for a micro-batch ends at
fences. Rows name their layout, so that the other cluster refuses one that would come too late,
instead of bringing it out of its order.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from angarium.errors import AlreadyExists, AngariumError, LayoutChanged, NotFound

if TYPE_CHECKING:
    from angarium.api import TopicInfo
    from angarium.spark.link import Link

READY_S: Final = 1.0
"""How long a topic of the other cluster is taken to be as it was when it was last looked at."""

PATIENCE_S: Final = 60.0
POLL_S: Final = 0.05
"""How long it may take until either cluster is as far as a task needs it, and how often to look."""

_infos: dict[tuple[Link, str], TopicInfo] = {}
_ready: dict[tuple[Link, str], tuple[tuple[int, ...], float]] = {}
"""Layouts that a topic of a cluster has, the last of them in force, and when that was seen."""


def dealt_by(here: Link, topic: str, rows: pa.RecordBatch) -> tuple[TopicInfo, pa.Array]:
    """Return by which layout of the topic each row was dealt, and what is known of the topic."""
    partitions, offsets = rows.column("partition"), rows.column("offset")
    info = _informed(here, topic, partitions, offsets)
    numbers = partitions.to_numpy()
    found = np.zeros(len(numbers), dtype=np.int32)
    for partition in np.unique(numbers).tolist():
        own = numbers == partition
        fences = np.asarray(info.partitions[partition].fences, dtype=np.int64)
        born = bisect_right(info.layouts, partition)
        found[own] = born + np.searchsorted(fences, offsets.to_numpy()[own], side="right")
    return info, pa.array(found)


def _informed(here: Link, topic: str, partitions: pa.Array, offsets: pa.Array) -> TopicInfo:
    """Return a topic as somebody describes it who has all these records: and so their fences."""
    table = pa.table({"partition": partitions, "offset": offsets})
    last = table.group_by("partition").aggregate([("offset", "max")]).to_pydict()
    needed = dict(zip(last["partition"], last["offset_max"], strict=True))
    deadline = time.monotonic() + PATIENCE_S
    info = _infos.get((here, topic))
    while info is None or not _has(info, needed):
        if time.monotonic() > deadline:
            raise LayoutChanged(f"no node describes {topic} with everything that was read of it")
        if info is not None:
            time.sleep(POLL_S)
        info = _infos[here, topic] = here.describe(topic)
    return info


def _has(info: TopicInfo, needed: dict[int, int]) -> bool:
    ends = [one.end_offset for one in info.partitions]
    return all(one < len(ends) and (ends[one] or 0) > at for one, at in needed.items())


def make_ready(there: Link, name: str, info: TopicInfo, layout: int) -> bool:
    """Have a topic of the other cluster be laid out as `info` says, up to a layout, in force.

    False if it is laid out in another way, because somebody else has given it partitions: then it
    has those that are needed, and its keys have no order across that.
    """
    wanted = (info.layouts or (len(info.partitions),))[: layout + 1]
    known, seen_at = _ready.get((there, name), ((), 0.0))
    if known == wanted and time.monotonic() - seen_at < READY_S:
        return True
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = _found_or_made(there, name, info, wanted[0])
        own = found.layouts or (len(found.partitions),)
        if own == wanted and found.layout == layout:
            _ready[there, name] = (own, time.monotonic())
            return True
        if own != wanted[: len(own)] and own[-1] >= wanted[-1]:
            return False
        if own[-1] < wanted[-1]:
            is_alike = own == wanted[: len(own)]
            with suppress(AngariumError):  # another task was quicker, or it is tried again
                there.add_partitions(name, wanted[len(own)] if is_alike else wanted[-1])
        time.sleep(POLL_S)
    raise LayoutChanged(
        f"{name} of the other cluster is being given partitions, and that takes too long: look "
        f"there with `angarium topic describe {name}`"
    )


def _found_or_made(there: Link, name: str, info: TopicInfo, partitions: int) -> TopicInfo:
    try:
        return there.describe(name)
    except NotFound:
        # How many copies there are is the other cluster's affair.
        config = msgspec.structs.replace(info.config, replication=None)
        with suppress(AlreadyExists):  # another task was quicker
            there.create_topic(name, partitions=partitions, config=config)
        return there.describe(name)


def layouts_column(layouts: pa.Array, *, is_named: bool) -> pa.Array:
    """Return the sink's column `layout`."""
    return layouts if is_named else pa.nulls(len(layouts), pa.int32())


def newest(layouts: pa.Array) -> int:
    """Return the last layout of some rows."""
    return int(pc.max(layouts).as_py())
