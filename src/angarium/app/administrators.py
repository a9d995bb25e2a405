"""Somebody who may let others in: the first administrator, and one who was locked out.

The first one is made by the node that forms a cluster with authentication. A lost one is brought
back by who may write into the data folder of a stopped node: `angarium user recover` leaves a file
there, with what checks the new password, and the node carries it out when it starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api.access import ADMIN
from angarium.errors import AngariumError, InvalidArgument, PreconditionFailed
from angarium.log.folder_lock import lock_folder
from angarium.machine.catalog import UserPut
from angarium.machine.catalog.access_values import VerifierRow
from angarium.retrying import Backoff, Tries
from angarium.service.access.user_calls import checked_password, hashed

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.app.security_settings import SecuritySettings
    from angarium.service.access import Access

FIRST_NAME: Final = "admin"
"""What the first administrator is called."""

PASSWORD_VARIABLE: Final = "ANGARIUM_ADMIN_PASSWORD"  # noqa: S105 - its name
TOLD_FILE: Final = "first-administrator"
"""Where a password that was made up is told, in the data folder, if there is no terminal."""

RECOVERY_FILE: Final = "recover-administrator"
"""What a node finds in its data folder if an administrator is to be brought back."""

MADE_UP_BYTES: Final = 18

PAUSES: Final = Backoff(first_s=0.05, longest_s=1.0)
"""Between two looks whether the cluster can take a user."""

_log = logging.getLogger(__name__)


class _Recovery(msgspec.Struct, frozen=True):
    """The content of a recovery file."""

    name: str
    scrypt: str
    verifiers: tuple[VerifierRow, ...]


class Administrators:
    """Makes the first administrator of a cluster, and brings back one who was lost."""

    def __init__(
        self, access: Access, folder: Path, security: SecuritySettings, *, is_forming: bool
    ) -> None:
        self._access = access
        self._folder = folder
        self._security = security
        self._is_forming = is_forming
        self._is_awaited = False

    def reasons(self) -> tuple[str, ...]:
        """Say why nobody can be let in yet: a password that is right would be called wrong."""
        return ("the first administrator is being made",) if self._is_awaited else ()

    async def run(self) -> None:
        """Do what there is to do, as soon as the cluster can; then end."""
        recovery = await asyncio.to_thread(_read_recovery, self._folder)
        is_first = self._is_forming and self._access.is_required
        if recovery is None and not is_first:
            return
        self._is_awaited = is_first
        tries = Tries(PAUSES)
        while True:
            try:
                catalog = self._access.service.node.catalog
                # A leader can be elected before the cluster has its name and its level.
                catalog.check_formed()
                await catalog.catch_up()
                if recovery is not None:
                    await self._recover(recovery)
                if is_first:
                    await self._make_first()
                self._is_awaited = False
                return
            except AngariumError as error:
                # The feature level of a cluster that was just formed is raised a moment later.
                if not error.retriable and not isinstance(error, PreconditionFailed):
                    self._is_awaited = False
                    _log.error("no administrator could be made", extra={"reason": str(error)})
                    return
                await tries.pause()

    async def _make_first(self) -> None:
        if self._access.service.node.catalog.access_version:
            return  # there are users, or there were
        self._access.calls.check_level()
        if self._access.audit is not None:
            await self._access.audit.recovered(FIRST_NAME, is_first=True)
        given = await asyncio.to_thread(_given_password, self._security.admin_password_file)
        password = given or secrets.token_urlsafe(MADE_UP_BYTES)
        await self._access.calls.create_user(FIRST_NAME, password=password, roles=(ADMIN,))
        _log.info("made the first administrator", extra={"user": FIRST_NAME})
        if not given:
            await asyncio.to_thread(_tell, self._folder, password)

    async def _recover(self, recovery: _Recovery) -> None:
        if self._access.audit is not None:
            await self._access.audit.recovered(recovery.name, is_first=False)
        catalog = self._access.service.node.catalog
        known = catalog.user(recovery.name)
        roles = () if known is None else known.roles
        await catalog.submit(
            UserPut(
                name=recovery.name,
                is_new=known is None,
                roles=tuple(dict.fromkeys((*roles, ADMIN))),
                scrypt=recovery.scrypt,
                verifiers=recovery.verifiers,
                is_locked=False,
            )
        )
        self._access.refresh()
        await asyncio.to_thread((self._folder / RECOVERY_FILE).unlink)
        _log.warning("recovered an administrator", extra={"user": recovery.name})


def prepare_recovery(folder: Path, name: str, password: str) -> None:
    """Have the node of a data folder make `name` an administrator with this password.

    Raises `FolderInUse` unless the node is stopped, and `InvalidArgument` if there is none.
    """
    if not (folder / "identity").is_file():
        raise InvalidArgument(f"{folder} is no data folder of a node")
    kept = hashed(checked_password(password))
    lock = lock_folder(folder)
    try:
        recovery = _Recovery(name, kept.scrypt, kept.verifiers)
        _write_private(folder / RECOVERY_FILE, msgspec.json.encode(recovery))
    finally:
        lock.release()


def _read_recovery(folder: Path) -> _Recovery | None:
    try:
        content = (folder / RECOVERY_FILE).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=_Recovery)
    except msgspec.MsgspecError as error:
        _log.error("%s cannot be read, and is left alone: %s", folder / RECOVERY_FILE, error)
        return None


def _given_password(file: str) -> str:
    if file:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - a text, as it was given
            return opened.readline().rstrip("\r\n")
    return os.environ.get(PASSWORD_VARIABLE, "")


def _tell(folder: Path, password: str) -> None:
    """Tell a password once: on the terminal, or in a file that only the node's user can read.

    Never in the log, which is kept and sent elsewhere.
    """
    if sys.stdout.isatty():
        print(f"the first administrator is {FIRST_NAME!r}, its password {password}", flush=True)
        return
    path = folder / TOLD_FILE
    _write_private(path, f"{password}\n".encode())
    _log.info("its password is in a file: read it, then delete the file", extra={"file": str(path)})


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else may read, whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
