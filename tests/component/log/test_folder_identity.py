"""A data directory has one identity, for good; damage to it is never papered over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.log.test_folder_identity import OURS

from angarium.log import folder_identity
from angarium.log.memory_disk import MemoryDisk
from angarium.log.os_disk import OsDisk

if TYPE_CHECKING:
    from pathlib import Path


def test_an_identity_is_read_back(tmp_path: Path) -> None:
    for disk in (OsDisk(tmp_path), MemoryDisk()):
        assert folder_identity.load(disk) is None
        folder_identity.create(disk, OURS)
        assert folder_identity.load(disk) == OURS
        folder_identity.check(disk, OURS)
