"""An issuer's keys by https: no longer than is allowed, in time, and from where we were told."""

from __future__ import annotations

import ssl
import time
import urllib.request
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from pathlib import Path

FETCH_S_MAX: Final = 10.0
"""A fetch that takes longer is given up; the last good set stays."""


class KeyFetch:
    """Fetches a set of keys from one address, trusting the system's authorities or `ca_file`."""

    def __init__(self, where: str, *, ca_file: Path | None, bytes_max: int) -> None:
        self._where = where
        self._bytes_max = bytes_max
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _StayHere()
        )

    def read(self) -> bytes:
        """Return what is there now; it blocks."""
        deadline = time.monotonic() + FETCH_S_MAX
        content = bytearray()
        with self._opener.open(self._where, timeout=FETCH_S_MAX) as answer:
            # In pieces: the timeout of a socket begins again with every byte that trickles in.
            while piece := answer.read1(65_536):
                content += piece
                if len(content) > self._bytes_max:
                    raise ValueError(f"the set of keys is longer than {self._bytes_max} bytes")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the issuer took more than {FETCH_S_MAX:g} s")
        return bytes(content)


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: whoever can redirect would otherwise choose the keys."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        del req, fp, msg, headers, newurl
        raise ValueError(f"the issuer answers {code}, a redirect; name the final address")
