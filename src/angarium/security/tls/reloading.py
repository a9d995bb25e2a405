"""Something that is made from files, and made again when they change.

What was there before is kept until everything that is new can be used, so a file that is broken,
half written or of another key harms nobody. It is told once for each state of the files, and only
when a second look finds them still like that: a certificate and its key are two files, and whoever
replaces them does so one after the other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar

from angarium.security.tls.errors import UnusableCertificate
from angarium.security.tls.files import signature

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from angarium.security.tls.files import Signature

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Reloading(Generic[T]):
    """The newest of what the files gave that could be used."""

    def __init__(self, name: str, paths: tuple[Path, ...], make: Callable[[], T]) -> None:
        """Make it for the first time; raises `UnusableCertificate`."""
        self._name = name
        self._paths = paths
        self._make = make
        self._seen: Signature = signature(paths)
        self._refused: Signature | None = None
        self._told: Signature | None = None
        self.current = make()
        self.reloads = 0
        """How often what was new has been taken."""
        self.refusals = 0
        """How often it could not be."""

    def look(self) -> bool:
        """Take what is new in the files, if it can be used; tell whether there was something.

        It reads files, so an event loop leaves it to a thread.
        """
        now = signature(self._paths)
        if now == self._seen:
            return False
        try:
            made = self._make()
        except UnusableCertificate as error:
            self._refuse(now, error)
            return False
        self.current = made
        # What was read may be newer than what was looked at before: then the next look reads again.
        self._seen = now
        self._refused = self._told = None
        self.reloads += 1
        _log.info("took new certificates", extra={"of": self._name})
        return True

    def _refuse(self, now: Signature, error: UnusableCertificate) -> None:
        if now != self._refused:
            self._refused = now
            return
        if now != self._told:
            self._told = now
            self.refusals += 1
            _log.error(
                "new certificates cannot be used; those from before stay",
                extra={"of": self._name, "reason": str(error)},
            )
