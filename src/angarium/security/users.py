"""Checking names and passwords, call after call, without a scrypt for each.

A check takes a fifth of a second of a processor, on purpose; a call takes less than a millisecond.
So the answer is remembered, under a digest that is keyed with a secret of this process: neither the
password nor anything that could be tried against it stays in memory. Checks run in threads, few at
a time, and one for all who ask the same meanwhile. Somebody without an account waits as long as
somebody with a wrong password.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from angarium.errors import LimitExceeded
from angarium.security.passwords import (
    BLOCK,
    COST_LOG2,
    HASH_BYTES,
    PARALLEL,
    SALT_BYTES,
    PasswordHash,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REMEMBERED_MAX: Final = 1_024
"""Answers remembered, right and wrong ones apart, so that guesses never displace those who are
let in. At the bound the oldest is forgotten, and checked again when it comes again."""

CHECKS_MAX: Final = 2
"""Checks at a time: each has a core to itself."""

WAITING_MAX: Final = 32
"""Checks that wait for those. One more is refused: somebody is guessing, and the node has other
things to do."""

PASSWORD_CHARACTERS_MAX: Final = 1_024
"""A longer one is wrong without a look at it."""


class PasswordChecks:
    """Checks passwords against whatever hash a name has at the moment."""

    def __init__(self, find: Callable[[str], str | None], *, like: str | None = None) -> None:
        """`find` returns a name's hash as text; `like` is one whose cost everybody's check has."""
        self._find = find
        self._nobody = _unknown(None if like is None else PasswordHash.parse(like))
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._wrong: dict[bytes, None] = {}
        self._checking: dict[bytes, asyncio.Task[bool]] = {}
        self._turn = asyncio.Semaphore(CHECKS_MAX)

    def remembered(self, name: str, password: str) -> bool | None:
        """Tell whether the password is right, if that was found out before; else None."""
        if len(name) + len(password) > PASSWORD_CHARACTERS_MAX:
            return False
        digest = self._digest(name, password, self._find(name))
        if digest in self._right:
            return True
        return False if digest in self._wrong else None

    def is_checking(self, name: str, password: str) -> bool:
        """Tell whether just this is being checked, for somebody who asked before."""
        if not self._checking or len(name) + len(password) > PASSWORD_CHARACTERS_MAX:
            return False
        return self._digest(name, password, self._find(name)) in self._checking

    async def knows(
        self, name: str, password: str, *, before: Callable[[], None] | None = None
    ) -> bool:
        """Tell whether the password is that of `name`; raises `LimitExceeded`.

        `before` is called when a check's turn has come, and may raise: while it waited, others may
        have failed.
        """
        if len(name) + len(password) > PASSWORD_CHARACTERS_MAX:
            return False
        known = self._find(name)
        digest = self._digest(name, password, known)
        if digest in self._right:
            return True
        if digest in self._wrong:
            return False
        task = self._checking.get(digest)
        if task is None:
            if len(self._checking) >= CHECKS_MAX + WAITING_MAX:
                raise LimitExceeded("password_checks_max", "too many passwords are being checked")
            task = asyncio.get_running_loop().create_task(
                self._check(digest, known, password, before)
            )
            self._checking[digest] = task
            task.add_done_callback(_heard)
        # Shielded: others may wait for the same answer when one of the callers goes away.
        return await asyncio.shield(task)

    async def _check(
        self,
        digest: bytes,
        known: str | None,
        password: str,
        before: Callable[[], None] | None,
    ) -> bool:
        try:
            async with self._turn:
                if before is not None:
                    before()
                against = PasswordHash.parse(known) if known else self._nobody
                matches = await asyncio.to_thread(against.matches, password)
        finally:
            del self._checking[digest]
        is_right = matches and bool(known)
        remembered = self._right if is_right else self._wrong
        if len(remembered) >= REMEMBERED_MAX:
            del remembered[next(iter(remembered))]
        remembered[digest] = None
        return is_right

    def _digest(self, name: str, password: str, known: str | None) -> bytes:
        # The hash is part of it: with a new password, what was right before is not any more.
        text = f"{len(name)}:{name}{len(password)}:{password}{known or ''}"
        octets = text.encode(errors="surrogatepass")
        return hashlib.blake2b(octets, key=self._key, digest_size=32).digest()


class Users(PasswordChecks):
    """Those who have an account in a node's settings, by name."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        """Take names and hashes; `ValueError` for one that is no hash."""
        for text in hashes.values():
            PasswordHash.parse(text)
        super().__init__(dict(hashes).get, like=next(iter(hashes.values()), None))


def _heard(task: asyncio.Task[bool]) -> None:
    """Look at how a check ended: whoever waits still gets its error, but nobody has to."""
    if not task.cancelled():
        task.exception()


def _unknown(like: PasswordHash | None) -> PasswordHash:
    """Return a hash that no password has, and whose check takes as long as that of `like`."""
    return PasswordHash(
        cost_log2=like.cost_log2 if like else COST_LOG2,
        block=like.block if like else BLOCK,
        parallel=like.parallel if like else PARALLEL,
        salt=secrets.token_bytes(SALT_BYTES),
        digest=secrets.token_bytes(HASH_BYTES),
    )
