"""Whose turn it is to write where nothing can be locked: an object that its owner keeps changing.

Nobody's clock is believed: whoever finds the object watches it for a while by its own clock. If it
changes, its owner is at work; if not, its owner is gone, and the watcher takes it over.

It saves work and is no promise. An owner that was stopped for long goes on beside another one; what
they write has different names, and only one of them can create the manifest.
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import AlreadyExists, AngariumError, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.backup.store import BackupStore

LEASE: Final = "lock"

BEAT_S: Final = 3.0
"""How often its owner changes it."""

WATCH_S: Final = 15.0
"""How long it may stay the same before its owner counts as gone; several beats may be lost."""

LOOK_S: Final = 0.5
"""How often a watcher looks."""


@contextmanager
def leased(store: BackupStore) -> Iterator[None]:
    """Have the lease; raises `PreconditionFailed` while somebody else keeps it."""
    owner = secrets.token_hex(16)
    _take(store, owner)
    over = threading.Event()
    keeper = threading.Thread(target=_keep, args=(store, owner, over), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
        with suppress(AngariumError):  # it is taken over in time if it stays
            if _is_mine(store, owner):
                store.delete(LEASE)


def _take(store: BackupStore, owner: str) -> None:
    until = time.monotonic() + WATCH_S
    first: bytes | None = None
    while True:
        try:
            store.create(LEASE, _said(owner, 0))
        except AlreadyExists:
            with suppress(NotFound):
                found = store.read(LEASE)
                first = found if first is None else first
                if found != first:
                    raise PreconditionFailed(
                        f"another process is writing a backup to {store}"
                    ) from None
        else:
            return
        if time.monotonic() > until:
            store.write(LEASE, _said(owner, 0))
            return
        time.sleep(LOOK_S)


def _keep(store: BackupStore, owner: str, over: threading.Event) -> None:
    beats = 0
    while not over.wait(BEAT_S):
        beats += 1
        # A store that is not there is noticed by those who have something to write.
        with suppress(AngariumError):
            if not _is_mine(store, owner):
                return
            store.write(LEASE, _said(owner, beats))


def _is_mine(store: BackupStore, owner: str) -> bool:
    try:
        return store.read(LEASE).startswith(owner.encode())
    except NotFound:
        return False


def _said(owner: str, beats: int) -> bytes:
    return f"{owner} {beats}\n".encode()
