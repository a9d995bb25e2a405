"""Backups on the wire. What may be large travels in the payload."""

from __future__ import annotations

import msgspec

from angarium.api.topics import TopicConfig
from angarium.ids import Offset


class ReadPositionsHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.backups.KeptPositions`."""

    topic: str
    partition: int


class RestoreTopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.TopicInfo`."""

    name: str
    partitions: int
    config: TopicConfig


class RestoreRecordsHeader(msgspec.Struct, frozen=True, array_like=True):
    """The payload holds the batches. Answered with `api.backups.Restored`."""

    topic: str
    partition: int
    next_offset: Offset
    start_offset: Offset = Offset(0)
