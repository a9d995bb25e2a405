"""Freshness: how long ago a topic got its last record, asked of the broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.client import SyncClient
    from angarium.pipelines.expectations import TopicQuality


def newest_at(client: SyncClient, topic: str) -> float | None:
    """Return when a topic got its newest record, in seconds since 1970; None if it has none."""
    times = []
    for one in client.describe_topic(topic).partitions:
        end = int(client.find_offset(topic, one.number, "latest"))
        try:
            record = client.fetch_one(topic, one.number, end - 1) if end else None
        except AngariumError:
            continue  # trimmed, expired or compacted away meanwhile
        if record is not None:
            times.append(record.append_time / 1e6)
    return max(times, default=None)


def ages_s(
    client: SyncClient, topics: Iterable[TopicQuality], *, now: float | None = None
) -> dict[str, float | None]:
    """Return the age of the newest record of topics that have to be fresh; None: it has none."""
    moment = time.time() if now is None else now
    newest = {one.topic: newest_at(client, one.topic) for one in topics if one.fresh_s is not None}
    return {topic: None if at is None else max(0.0, moment - at) for topic, at in newest.items()}
