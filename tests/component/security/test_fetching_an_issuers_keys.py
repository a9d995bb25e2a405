"""An issuer's keys over https: from whom they are taken, and from whom not."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from joserfc.jwk import ECKey

from angarium.security.jwt_keys import IssuerKeys, reader_of
from angarium.security.tls.issuing import Authority, Names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = ECKey.generate_key("P-256", {"kid": "one"})
SET = json.dumps({"keys": [KEY.as_dict(private=False)]}).encode()


class Issuer(BaseHTTPRequestHandler):
    """Answers by the path."""

    def do_GET(self) -> None:
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", f"https://127.0.0.1:{self.server.server_port}/keys")  # type: ignore[attr-defined]
            self.end_headers()
            return
        body = {"/keys": SET, "/giant": b"x" * (2 << 20)}.get(self.path)
        self.send_response(200 if body else 500)
        self.end_headers()
        self.wfile.write(body or b"no")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def issuer(folder: Path, authority: Authority) -> Iterator[str]:
    certificate, key = authority.issue(Names(common_name="issuer", hosts=("127.0.0.1",)), days=1)
    (folder / "issuer.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "issuer.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_keys_come_by_https_from_who_can_prove_its_name_and_by_no_detour(tmp_path: Path) -> None:
    authority = Authority.make("of the tests", days=1)
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
    stranger = tmp_path / "stranger.pem"
    stranger.write_bytes(Authority.make("somebody else", days=1).pem)
    with issuer(tmp_path, authority) as address:
        assert reader_of(f"{address}/keys", ca_file=trusted)() == SET
        for path, said in (("/elsewhere", "redirect"), ("/giant", "longer"), ("/no", "500")):
            with pytest.raises(Exception, match=said):
                reader_of(address + path, ca_file=trusted)()
        with pytest.raises(OSError, match="certificate"):
            reader_of(f"{address}/keys", ca_file=stranger)()


def test_the_last_good_keys_stay_when_the_issuer_is_gone(tmp_path: Path) -> None:
    authority = Authority.make("of the tests", days=1)
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)

    async def check() -> None:
        with issuer(tmp_path, authority) as address:
            keys = IssuerKeys(reader_of(f"{address}/keys", ca_file=trusted))
            await keys.refresh()
        assert keys.find("one") is not None
        await keys.refresh()
        assert keys.find("one") is not None

    asyncio.run(check())


def test_keys_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(SET)
    assert reader_of(str(path))() == SET
