"""How a node gets its join token, and how whoever runs several nodes makes tokens for them.

A node that is to join reads its token from a file or the environment. Whoever starts nodes on one
machine (`angarium up --secure`, `serve --processes`) leaves the digests of tokens that it has made
up in the data folder of one of them, which puts them into the catalog when it starts. Whoever may
write into a node's data folder may do everything anyway.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import (
    AlreadyExists,
    AngariumError,
    InvalidArgument,
    PreconditionFailed,
)
from angarium.log.folder_identity import INVITATIONS_DRAFT, INVITATIONS_NAME
from angarium.log.folder_modes import make_private
from angarium.retrying import Backoff, Tries
from angarium.security.tokens import new_join_token, token_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from angarium.service.access import Access

VARIABLE: Final = "ANGARIUM_JOIN_TOKEN"
"""Where the environment has a join token."""

PAUSES: Final = Backoff(first_s=0.05, longest_s=1.0)
"""Between two looks whether the cluster can take them."""

_log = logging.getLogger(__name__)


def join_token_in(
    file: Path | None, environment: Mapping[str, str] = os.environ
) -> Callable[[], str]:
    """Return what reads a node's join token, from `file` if there is one: empty if there is none.

    It raises `InvalidArgument` for a file that cannot be read.
    """

    def read() -> str:
        if file is None:
            return environment.get(VARIABLE, "").strip()
        try:
            with file.open(encoding="ascii") as opened:
                return opened.readline(256).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "there is no token in it"
            raise InvalidArgument(f"{file}: {reason}") from None

    return read


def invite(host: Path, guests: Sequence[Path]) -> None:
    """Let one new node in for each file of `guests`, which gets its token.

    `host` is the data folder of a node that is not running; it is the one that lets them in.
    """
    secrets = [new_join_token().reveal() for _ in guests]
    make_private(host)
    digests = [token_digest(one).hex() for one in secrets]
    _write_private(host / INVITATIONS_DRAFT, msgspec.json.encode(digests))
    for guest, secret in zip(guests, secrets, strict=True):
        _write_private(guest, f"{secret}\n".encode())
    (host / INVITATIONS_DRAFT).replace(host / INVITATIONS_NAME)


def are_pending(host: Path) -> bool:
    """Tell whether a node has still to do what it was told by `invite`."""
    return (host / INVITATIONS_NAME).exists()


class Invitations:
    """Puts the tokens into the catalog that were left in a node's data folder."""

    def __init__(self, access: Access, folder: Path) -> None:
        self._access = access
        self._file = folder / INVITATIONS_NAME

    async def run(self) -> None:
        """Do what there is to do, as soon as the cluster can; then end."""
        digests = await asyncio.to_thread(self._read)
        if digests is None:
            return
        tries = Tries(PAUSES)
        while True:
            try:
                self._access.service.node.catalog.check_formed()
                for digest in list(digests):
                    await self._put(digest)
                    digests.remove(digest)
                break
            except AngariumError as error:
                # The feature level of a cluster that was just formed is raised a moment later.
                if not error.retriable and not isinstance(error, PreconditionFailed):
                    _log.error("nobody could be invited", extra={"reason": str(error)})
                    return
                await tries.pause()
        await asyncio.to_thread(self._file.unlink)
        _log.info("let nodes join that were invited by a file", extra={"file": str(self._file)})

    async def _put(self, digest: bytes) -> None:
        with suppress(AlreadyExists):  # told twice: the first time the answer was lost
            await self._access.join_tokens.put(digest)

    def _read(self) -> list[bytes] | None:
        try:
            written = msgspec.json.decode(self._file.read_bytes(), type=list[str])
            return [bytes.fromhex(one) for one in written]
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, ValueError) as error:
            _log.error("%s cannot be read, and is left alone: %s", self._file, error)
            return None


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
