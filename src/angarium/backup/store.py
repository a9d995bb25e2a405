"""Where backups lie: one small port. `folder` and `objects` are its adapters.

Whatever is written is there whole or not at all. A name that says of which run it is has one writer
alone; what several could write at once, a manifest, is made by `create`, which one of them wins.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from angarium.backup.folder import FolderStore
from angarium.errors import InvalidArgument, PreconditionFailed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class BackupStore(Protocol):
    """Named bytes. Names are paths with `/`; a name that is not there raises `NotFound`."""

    def names(self, folder: str) -> list[str]:
        """Return the names below a folder, sorted; none if there is no such folder."""

    def read(self, name: str) -> bytes:
        """Return the bytes under a name."""

    def write(self, name: str, data: bytes) -> None:
        """Keep them: when this returns they are durable, before that there is nothing of them."""

    def create(self, name: str, data: bytes) -> None:
        """Do as `write`, unless the name is there: raises `AlreadyExists`, and nothing changes.

        The same bytes under the name are what an earlier attempt has made.
        """

    def delete(self, *names: str) -> None:
        """Forget them; what is not there is forgotten already."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other writers out; raises `PreconditionFailed` while there is one.

        It saves work, and is no promise: of writers that do not see each other, `create` lets one
        through.
        """


def store_at(where: str) -> BackupStore:
    """Return the store that somebody has named; raises `InvalidArgument`."""
    scheme, found, rest = where.partition("://")
    if not found:
        return FolderStore(Path(where))
    if scheme == "file" and rest.startswith("/"):
        return FolderStore(Path(rest))
    if scheme == "s3":
        # An extra, and slow to load: whoever names a folder needs none of it.
        try:
            from angarium.backup.objects import ObjectStore  # noqa: PLC0415
        except ModuleNotFoundError:
            raise PreconditionFailed(
                "an object store needs an extra: pip install 'angarium[object-store]'"
            ) from None
        return ObjectStore.at(where)
    raise InvalidArgument(
        f"{scheme}://: backups are kept in a folder, or in an object store that has S3's API:"
        " s3://BUCKET/PREFIX"
    )
