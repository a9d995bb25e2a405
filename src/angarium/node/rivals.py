"""Another process that says it is this node: one on a copy of its folder, or a liar.

The other nodes refuse the second one, and cannot tell which of the two is the node. So their
word alone ends nobody: this node asks where the other one is said to be. A process on a copy of the
folder can show that it is one, for it knows the folder's secret, which is told to nobody; then one
of the two has to end, and it is this one, as the one that is refused. One that cannot show it has
only spoken in this node's name: this one stays, says so, is not ready, and asks again.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from typing import TYPE_CHECKING, Final

from angarium.addresses import dialled
from angarium.errors import AngariumError
from angarium.log import folder_secret
from angarium.wire import Hello, Role, dial
from angarium.wire.errors import NodeIsAlive
from angarium.wire.operations import Operation, SameFolderAnswer, SameFolderHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.log.disk import Disk
    from angarium.node.node import Node

ANSWER_S_MAX: Final = 1.0
"""How long a rival may take to show what it knows."""

HEARD_S: Final = 10.0
"""So long a refusal counts: links try again every two seconds."""

_log = logging.getLogger(__name__)


class Rivals:
    """Finds out who else says that they are this node."""

    def __init__(self, node: Node, disk: Disk) -> None:
        self._node = node
        self._disk = disk
        self._secret = b""
        self._refusal: NodeIsAlive | None = None
        self._refused_at = 0.0
        self._is_looking = False

    def load(self) -> None:
        """Know the folder's secret. Blocks."""
        self._secret = folder_secret.load(self._disk, secrets.token_bytes)

    def prove(self, nonce: bytes) -> SameFolderAnswer:
        """Show a process on the same folder that this one knows its secret."""
        process = self._node.process
        return SameFolderAnswer(process, _proof(self._secret, nonce, process))

    def reasons(self) -> Iterator[str]:
        """Say that this node is kept out, as long as it is."""
        if self._refusal is not None and _now() - self._refused_at < HEARD_S:
            yield (
                "another process says that it is this node, and the other nodes speak to that "
                f"one{_at(self._refusal)}: if this data folder is a copy, end this process; if "
                "not, end the other one"
            )

    def hear(self, refusal: NodeIsAlive) -> None:
        """Hear from another node that somebody else is this one."""
        self._refusal, self._refused_at = refusal, _now()
        if not self._is_looking:
            self._is_looking = True
            self._node.run_beside(lambda: self._look(refusal))

    def let_in(self) -> None:
        """Hear that another node speaks to this one."""
        self._refusal = None

    async def _look(self, refusal: NodeIsAlive) -> None:
        try:
            known = self._node.catalog.machine.nodes.by_id.get(self._node.id)
            addresses = [] if known is None else [dict(known.addresses).get("wire", "")]
            for address in dict.fromkeys([getattr(refusal, "address", ""), *addresses]):
                await self.look_at(address)
        except NodeIsAlive as copied:
            self._node.fail(copied)
        except AngariumError as error:
            _log.debug("not known who the other process is: %s", error)
        finally:
            self._is_looking = False

    async def look_at(self, address: str) -> None:
        """Raise `NodeIsAlive` if a process on a copy of this folder answers at `address`."""
        where = dialled(address)
        if address == self._node.addresses["wire"] or where is None:
            return
        nonce = secrets.token_bytes(32)
        try:
            connection = await dial(
                host=where.host,
                port=where.port,
                hello=Hello(role=Role.CLIENT),
                timeout_s=ANSWER_S_MAX,
                tls=self._node.config.tls,
            )
            try:
                frame = await connection.request(
                    Operation.SAME_FOLDER, SameFolderHeader(nonce), timeout_s=ANSWER_S_MAX
                )
                answer = frame.read(SameFolderAnswer)
            finally:
                await connection.close(timeout_s=ANSWER_S_MAX)
        except AngariumError:
            return  # nobody is there, or somebody else
        # What this very process has said may have been carried there, to be said again.
        if answer.process != self._node.process and hmac.compare_digest(
            answer.proof, _proof(self._secret, nonce, answer.process)
        ):
            raise NodeIsAlive(
                f"node {self._node.id} is alive in another process, at {address}, with the same "
                "data: this data folder is a copy. A copy is no second node: end this one, or "
                "start it with an empty folder"
            )


def _proof(secret: bytes, nonce: bytes, process: int) -> bytes:
    said = b"angarium: the same folder" + process.to_bytes(8, "little") + nonce
    return hmac.digest(secret, said, "sha256")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _at(refusal: NodeIsAlive) -> str:
    address = getattr(refusal, "address", "")
    return f" ({address})" if address else ""
