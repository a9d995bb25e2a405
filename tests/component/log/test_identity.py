"""A data directory has one identity, for good; damage to it is never papered over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.log.test_identity import OURS

from angarium.log import identity as identities
from angarium.log.memory_disk import MemoryDisk
from angarium.log.os_disk import OsDisk

if TYPE_CHECKING:
    from pathlib import Path


def test_an_identity_is_read_back(tmp_path: Path) -> None:
    for disk in (OsDisk(tmp_path), MemoryDisk()):
        assert identities.load(disk) is None
        identities.create(disk, OURS)
        assert identities.load(disk) == OURS
        identities.check(disk, OURS)
