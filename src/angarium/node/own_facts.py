"""What a node tells the others of itself, beside whether it may be relied on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from angarium.errors import StorageError
from angarium.ids import Micros
from angarium.log.folder_modes import shared_mode

if TYPE_CHECKING:
    from angarium.log.disk import Disk
    from angarium.node.config import NodeConfig


class NodeFacts(msgspec.Struct, frozen=True, array_like=True):
    """A node's release, start, certificates and disk."""

    version: str = ""
    started_at: Micros = Micros(0)
    certificate_days: float | None = None
    """How long the certificate is good that expires first."""
    disk_free_bytes: int | None = None
    shared_mode: int = 0
    """The mode of the data folder, if other users of the machine may enter or read it; else 0."""


class OwnFacts:
    """The facts of one node."""

    def __init__(self, config: NodeConfig, disk: Disk) -> None:
        self._config = config
        self._disk = disk
        self._started_at = Micros(time.time_ns() // 1_000)

    def now(self) -> NodeFacts:
        """Return them as they are now."""
        tls = self._config.tls
        days = [one.days_left(time.time()) for _, one in tls.certificates()] if tls else []
        try:
            free: int | None = self._disk.free_bytes()
        except StorageError:
            free = None
        return NodeFacts(
            self._config.release.software,
            self._started_at,
            min(days, default=None),
            free,
            shared_mode(self._config.data_directory),
        )
