"""An issuer's public keys: fetched beside the calls, kept while newer ones cannot be had.

The set is read again every few minutes, and when a JWT names a key that is not in it, but not more
than once a minute, whoever asks for it: random names of keys must neither empty the set nor make
this node a nuisance to the issuer.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from joserfc.jwk import Key

_log = logging.getLogger(__name__)

REFRESH_S: Final = 300.0
"""How often the set is read again."""

UNKNOWN_REFRESH_S: Final = 60.0
"""How soon after the last look an unknown key may cause another one."""

LOOK_S_MAX: Final = 2.0
"""How long a call waits for a look that its unknown key has caused; then it is refused."""

SET_BYTES_MAX: Final = 1 << 20
KEYS_MAX: Final = 256
"""A larger set is refused as a whole; the last good one stays."""


class IssuerKeys:
    """The last good set of one issuer's keys. Its owner runs `run` as a task."""

    def __init__(
        self, read: Callable[[], bytes], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`read` returns the set as JSON, and blocks: it runs in a thread."""
        self._read = read
        self._clock = clock
        self._keys: dict[str | None, Key] = {}
        self.published: frozenset[str] = frozenset()
        """The prints of all of them: a name may be given to another key."""
        self._looked_at: float | None = None
        self._looking: asyncio.Task[None] | None = None

    @property
    def edition(self) -> object:
        """Another one after every look that has succeeded: what was checked before may not hold."""
        return self._keys

    def find(self, kid: str | None) -> Key | None:
        """Return the key of that name; without a name, the only one there is."""
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    async def find_fresh(self, kid: str | None) -> Key | None:
        """Return the key, after another look at the issuer's if that is due."""
        found = self.find(kid)
        if found is not None:
            return found
        is_due = self._looked_at is None or self._clock() - self._looked_at >= UNKNOWN_REFRESH_S
        if self._looking is None and is_due:
            self._looking = asyncio.get_running_loop().create_task(self.refresh())
            self._looking.add_done_callback(self._looked)
        if self._looking is not None:
            # Waited for, not cancelled: others wait as well, and the next one profits.
            await asyncio.wait({self._looking}, timeout=LOOK_S_MAX)
        return self.find(kid)

    async def run(self) -> None:
        """Keep the set up to date until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(REFRESH_S)

    async def refresh(self) -> None:
        """Look once; what goes wrong is logged, and the last good set stays."""
        self._looked_at = self._clock()
        try:
            text = await asyncio.to_thread(self._read)
            self._keys = keys_in(text)
            self.published = frozenset(key.thumbprint() for key in self._keys.values())
        except Exception as error:  # the issuer is somebody else's: nothing it does may harm us
            _log.warning(
                "an issuer's keys could not be read; %d known ones stay: %s",
                len(self._keys),
                error,
            )

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._looking = None
        if not task.cancelled():
            task.exception()


def check_installed() -> None:
    """Raise `PreconditionFailed` without the extra: when a node starts, not with the first call."""
    if importlib.util.find_spec("joserfc") is None:
        raise PreconditionFailed("JWTs need an extra: pip install 'angarium[jwt]'")


def keys_in(text: bytes) -> dict[str | None, Key]:
    """Return the public keys of a set that can check signatures; `ValueError` if there is none.

    Keys of other kinds are passed over: an issuer may have some for encryption, and a shared one
    (`oct`) would let everybody who can check a signature make one.
    """
    from joserfc.errors import JoseError  # noqa: PLC0415  (an extra, loaded where JWTs are used)
    from joserfc.jwk import JWKRegistry  # noqa: PLC0415

    if len(text) > SET_BYTES_MAX:
        raise ValueError(f"the set of keys is longer than {SET_BYTES_MAX} bytes")
    document = json.loads(text)
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise ValueError(f"no set of at most {KEYS_MAX} keys")
    found: dict[str | None, Key] = {}
    for one in listed:
        if not isinstance(one, dict) or one.get("kty") not in {"RSA", "EC", "OKP"}:
            continue
        if one.get("use", "sig") != "sig":
            continue
        try:
            key = JWKRegistry.import_key(_public(one))
        except (JoseError, ValueError, TypeError) as error:
            _log.warning("a key of an issuer is passed over: %s", error)
            continue
        kid = one.get("kid")
        found[kid if isinstance(kid, str) else None] = key
    if not found:
        raise ValueError("the set has no key that checks signatures")
    return found


def _public(key: dict[str, Any]) -> dict[str, Any]:
    # Somebody may have published the private half by mistake; it has no business in our memory.
    return {name: value for name, value in key.items() if name not in _PRIVATE}


_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


def reader_of(where: str, *, ca_file: Path | None = None) -> Callable[[], bytes]:
    """Return what reads a set of keys from a file, or from an https address.

    `ValueError` for an address that is neither: plain http would let the network choose the keys.
    """
    if where.startswith("https://"):
        # Only here: it brings an HTTP client, which takes a node's memory and few have a use for.
        from angarium.security.jwt_fetching import KeyFetch  # noqa: PLC0415

        return KeyFetch(where, ca_file=ca_file, bytes_max=SET_BYTES_MAX).read
    if "://" in where:
        raise ValueError("keys are read from a file or by https, and nothing else")
    return lambda: _bounded(Path(where))


def _bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(SET_BYTES_MAX + 1)
