"""The first administrator, and one who was lost: files in a data folder, users in a catalog."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, cast

import pytest
from tests.on_a_loop import on_a_loop
from tests.unit.service.access.asked_service import AskedService, MemoryCatalog

from angarium.app.administrators import (
    RECOVERY_FILE,
    TOLD_FILE,
    Administrators,
    prepare_recovery,
)
from angarium.app.security_settings import SecuritySettings
from angarium.errors import InvalidArgument, NotLeader
from angarium.log.folder_lock import FolderInUse, lock_folder
from angarium.security import PasswordHash
from angarium.service.access import Access

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.service.metering import MeteredService

SECURED = SecuritySettings(authentication="required")


class FormingCatalog(MemoryCatalog):
    """A catalog whose leader is there before the cluster is."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def check_formed(self) -> None:
        self.asked += 1
        if self.asked < 3:
            raise NotLeader("the cluster is being formed")


def access_to(catalog: MemoryCatalog) -> Access:
    return Access(cast("MeteredService", AskedService(catalog)), is_required=True)


@on_a_loop
async def test_the_first_is_made_once_the_cluster_is_there_and_told_in_a_private_file(
    tmp_path: Path,
) -> None:
    catalog = FormingCatalog()
    access = access_to(catalog)
    await Administrators(access, tmp_path, SECURED, is_forming=True).run()
    assert catalog.asked == 3
    told = tmp_path / TOLD_FILE
    assert stat.S_IMODE(told.stat().st_mode) == 0o600
    row = catalog.user("admin")
    assert row is not None
    assert row.roles == ("admin",)
    assert PasswordHash.parse(row.scrypt).matches(told.read_text().strip())
    assert {one.mechanism for one in row.verifiers} == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    told.unlink()
    await access.calls.delete_user("admin")
    await Administrators(access, tmp_path, SECURED, is_forming=True).run()
    assert catalog.user("admin") is None, "who deleted it meant it"
    assert not told.exists()


@on_a_loop
async def test_who_only_joins_or_asks_nobody_makes_none(tmp_path: Path) -> None:
    catalog = FormingCatalog()
    await Administrators(access_to(catalog), tmp_path, SECURED, is_forming=False).run()
    service = cast("MeteredService", AskedService(catalog))
    await Administrators(Access(service), tmp_path, SecuritySettings(), is_forming=True).run()
    assert (catalog.asked, list(catalog.users())) == (0, [])


@on_a_loop
async def test_a_lost_administrator_comes_back_unlocked_and_keeps_its_roles(
    tmp_path: Path,
) -> None:
    catalog = FormingCatalog()
    access = access_to(catalog)
    await access.calls.create_user("boss", password="forgotten", roles=["monitor"])
    await access.calls.alter_user("boss", is_locked=True)
    (tmp_path / "identity").touch()
    prepare_recovery(tmp_path, "boss", "remembered")
    recovery = tmp_path / RECOVERY_FILE
    assert stat.S_IMODE(recovery.stat().st_mode) == 0o600
    assert b"remembered" not in recovery.read_bytes()
    await Administrators(access, tmp_path, SECURED, is_forming=False).run()
    row = catalog.user("boss")
    assert row is not None
    assert (row.roles, row.is_locked) == (("monitor", "admin"), False)
    assert PasswordHash.parse(row.scrypt).matches("remembered")
    assert not recovery.exists()


@on_a_loop
async def test_a_recovery_file_that_makes_no_sense_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / RECOVERY_FILE).write_text('{"name": 7}')
    catalog = FormingCatalog()
    await Administrators(access_to(catalog), tmp_path, SECURED, is_forming=False).run()
    assert (tmp_path / RECOVERY_FILE).exists()
    assert list(catalog.users()) == []


def test_nobody_is_recovered_beside_a_running_node_or_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no data folder"):
        prepare_recovery(tmp_path, "boss", "remembered")
    (tmp_path / "identity").touch()
    with pytest.raises(InvalidArgument, match="characters"):
        prepare_recovery(tmp_path, "boss", "short")
    lock = lock_folder(tmp_path)
    with pytest.raises(FolderInUse):
        prepare_recovery(tmp_path, "boss", "remembered")
    lock.release()
    assert not (tmp_path / RECOVERY_FILE).exists()
