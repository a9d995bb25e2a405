"""A real DNS server for tests: dnsmasq, without rights, on a port of its own."""

from __future__ import annotations

import getpass
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Self

from tests.system_programs import require_program

from angarium.addresses import Address

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOST = "127.0.0.1"
STARTED_S = 60.0


class DnsServer:
    """Answers for `.test`, with a TTL of a second. Use it with `with`."""

    def __init__(self, folder: Path) -> None:
        self._program = require_program("dnsmasq", apt="dnsmasq-base")
        self._log = folder / "dnsmasq.log"
        self._process: subprocess.Popen[bytes] | None = None
        # Bound for TCP as long as this lives, so that nobody else is given the number.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind((HOST, 0))
        self.address = Address(HOST, self._reserved.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._reserved.close()

    def answer(self, *records: str) -> None:
        """Answer with these records from now on, in dnsmasq's words: host-record=a.test,10.0.0.1"""
        self.stop()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._program,
                    "--no-daemon",
                    "--conf-file=/dev/null",
                    "--pid-file=",
                    f"--user={getpass.getuser()}",
                    "--group=",
                    f"--port={self.address.port}",
                    f"--listen-address={HOST}",
                    "--bind-interfaces",
                    "--no-resolv",
                    "--no-hosts",
                    "--local=/test/",
                    "--local-ttl=1",
                    *(f"--{one}" for one in records),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait()

    def stop(self) -> None:
        """Answer nobody any more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + STARTED_S
        while True:
            try:
                socket.create_connection(self.address, timeout=1).close()
            except OSError:
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.01)
            else:
                return


def hosts(name: str, addresses: Sequence[Address]) -> list[str]:
    """Return records by which a name has these addresses, without their ports."""
    return [f"host-record={name},{one.host}" for one in addresses]


def service(name: str, addresses: Sequence[Address]) -> list[str]:
    """Return records of a service with these addresses, each of a host of its own."""
    records = []
    for number, one in enumerate(addresses):
        records += [
            f"srv-host={name},host-{number}.test,{one.port}",
            f"host-record=host-{number}.test,{one.host}",
        ]
    return records
