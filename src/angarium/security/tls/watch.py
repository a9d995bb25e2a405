"""Looking at the files of certificates while a process runs, and at the days that are left."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from angarium.telemetry.exposition import Family, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from angarium.security.tls.certificate import Certificate
    from angarium.security.tls.reloading import Reloading

LOOK_S: Final = 1.0
"""How often files are looked at: a new certificate is in use after this, at most."""

WARN_DAYS: Final = 14.0
"""With fewer days left a warning is logged, at the start and then once a day."""

WARN_EVERY_S: Final = 86_400.0

_log = logging.getLogger(__name__)


class TlsWatch:
    """Follows files in a thread, so that the event loop never waits for a disk."""

    def __init__(
        self,
        made: Iterable[Reloading[Any]],
        certificates: Callable[[], Iterator[tuple[str, Certificate]]],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Follow `made`; `certificates` returns those in use, by what they are for."""
        self._made = tuple(made)
        self._certificates = certificates
        self._clock = clock
        self.on_change: Callable[[str], None] | None = None
        """Told what became of new files: `taken` or `refused`."""
        self._counted = (0, 0)
        self._warned: dict[str, float] = {}
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
        self.warn()
        self._looking = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Look no longer."""
        if self._looking is not None:
            self._looking.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(self.look)
            self._tell()
            self.warn()

    def look(self) -> None:
        """Look at the files once."""
        for one in self._made:
            try:
                one.look()
            except Exception:
                # A mistake of ours must not end the looking: the certificates would run out.
                _log.exception("looking at certificates met a mistake of ours")

    def _tell(self) -> None:
        now = (sum(one.reloads for one in self._made), sum(one.refusals for one in self._made))
        before, self._counted = self._counted, now
        if self.on_change is not None:
            for outcome, count, known in zip(("taken", "refused"), now, before, strict=True):
                if count > known:
                    self.on_change(outcome)

    def warn(self) -> None:
        """Log which certificates have few days left."""
        now = self._clock()
        for use, certificate in self._certificates():
            left = certificate.days_left(now)
            if left >= WARN_DAYS:
                self._warned.pop(use, None)
            elif now - self._warned.get(use, 0.0) >= WARN_EVERY_S:
                self._warned[use] = now
                _log.warning(
                    "a certificate expires soon; put a new one in its file, it is taken at once",
                    extra={"of": use, "days_left": round(left, 1)},
                )

    def families(self) -> Iterator[Family]:
        """Return metrics."""
        now = self._clock()
        yield Family(
            "angarium_tls_certificate_days_left",
            "gauge",
            "Days until a certificate in use expires, by what it is used for.",
            tuple(
                Sample(round(one.days_left(now), 3), (("use", use),))
                for use, one in self._certificates()
            ),
        )
        yield Family(
            "angarium_tls_reloads_total",
            "counter",
            "New certificate files, by what became of them.",
            (
                Sample(sum(one.reloads for one in self._made), (("outcome", "taken"),)),
                Sample(sum(one.refusals for one in self._made), (("outcome", "refused"),)),
            ),
        )
