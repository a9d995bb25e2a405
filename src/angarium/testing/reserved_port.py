"""A port that stays a node's own while the node is down."""

from __future__ import annotations

import socket
from typing import Final

HOST: Final = "127.0.0.1"


class ReservedPort:
    """A free port that nobody else is given while a node is down.

    The socket is bound but does not listen, so the node may listen on the port, while the kernel
    gives it to no other program: not as a port to listen on, nor as an outgoing connection's own.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Let somebody else have it."""
        self._socket.close()
