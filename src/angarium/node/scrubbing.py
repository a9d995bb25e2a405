"""Scrubbing: read what nobody reads, so that rot is found while peers still have good copies.

Sealed segments are verified one slice at a time, partition after partition, round after round. What
is found damaged is mended from a peer like everything else that is found damaged.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from angarium.errors import StorageError
from angarium.log.scrub import Scrub

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.ids import RaftGroupId
    from angarium.replica.partition_replica import PartitionReplica

_log = logging.getLogger(__name__)

SLICE_BYTES = 256 << 10
"""Bytes verified at a time, on the event loop: a tenth of a millisecond from memory."""

REST_S = 60.0
"""How long to wait after a round, so that a small log is not read over and over."""


class Scrubbing:
    """One slice after the other of everything this node holds."""

    def __init__(self, *, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._waiting: list[RaftGroupId] = []
        """Partitions this round has not come to yet."""
        self._current: tuple[RaftGroupId, Scrub] | None = None
        self.verified_bytes = 0
        """In all, since the node started."""

    async def run(self, replicas: Mapping[RaftGroupId, PartitionReplica]) -> None:
        """Verify until cancelled; at once over if the settings want none of it."""
        while self._bytes_per_s > 0:
            before = self.verified_bytes
            is_round_over = not self.step(replicas)
            slept = (self.verified_bytes - before) / self._bytes_per_s
            await asyncio.sleep(REST_S if is_round_over else slept)

    def step(self, replicas: Mapping[RaftGroupId, PartitionReplica]) -> bool:
        """Verify the next slice; False says that a round is over."""
        scrub = self._next(replicas)
        if scrub is None:
            self._waiting = list(replicas)
            return False
        group, current = scrub
        before = current.verified_bytes
        try:
            damage = current.step()
        except StorageError as error:
            # A disk that cannot be read; readers of these bytes will be told the same.
            _log.warning("cannot verify a partition", extra={"group": group, "why": str(error)})
            self._current = None
            return True
        self.verified_bytes += current.verified_bytes - before
        if damage is not None:
            _log.warning(
                "found damage, will be mended", extra={"group": group, "what": str(damage)}
            )
        if current.is_done:
            self._current = None
        return True

    def _next(
        self, replicas: Mapping[RaftGroupId, PartitionReplica]
    ) -> tuple[RaftGroupId, Scrub] | None:
        """Return the partition to go on with; one whose files were replaced begins anew."""
        if self._current is not None:
            group, scrub = self._current
            replica = replicas.get(group)
            if replica is not None and scrub.log is replica.partition.log:
                return self._current
        while self._waiting:
            group = self._waiting.pop()
            replica = replicas.get(group)
            if replica is not None:
                log = replica.partition.log
                self._current = group, Scrub(log, slice_bytes=SLICE_BYTES)
                return self._current
        self._current = None
        return None
