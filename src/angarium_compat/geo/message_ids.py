"""A message's id: a UUID made of topic, partition and offset, so every node gives the same one.

Version 8 of UUIDs leaves the bits to their maker: 60 are a hash of the cluster, the topic's number
(which is never used again, unlike its name) and the partition, 62 are the offset itself. Two
messages of a partition never share one; two partitions do with a chance of one in 2^60.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.ids import TopicId

_VERSION: Final = "8"
_VARIANT: Final = 1 << 63


class MessageIds:
    """The ids of one partition's messages."""

    __slots__ = ("_head",)

    def __init__(self, *, cluster: str, topic: TopicId, partition: int) -> None:
        partition_name = f"{cluster}/{topic}/{partition}".encode()
        digest = hashlib.sha256(partition_name).hexdigest()
        self._head = f"{digest[:8]}-{digest[8:12]}-{_VERSION}{digest[12:15]}-"

    def at(self, offset: int) -> str:
        """Return the id of the message at an offset."""
        tail = f"{_VARIANT | offset:016x}"
        return f"{self._head}{tail[:4]}-{tail[4:]}"
