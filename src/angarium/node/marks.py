"""A node remembers how far the others' logs were durable, and lets nobody in whose log went back.

What it has heard is on its own disk as well, so that a whole cluster may be restarted. A node that
is refused for this reason ends (`Node`): whatever it said would be counted as if it still had what
it acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET

from angarium.errors import StorageError, Unreachable
from angarium.ids import Incarnation, NodeId, replica_id
from angarium.log.peer_ends import PeerEnds
from angarium.node.admission import is_removed
from angarium.node.recollections import Recollections
from angarium.wire.errors import RolledBack

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import UnsetType

    from angarium.ids import ReplicaId
    from angarium.log.disk import Disk
    from angarium.node.node import Node
    from angarium.wire import Hello, Role

GATHER_S: Final = 0.05
"""How long a save waits once a new end has come: the others answer at about the same time."""

SAVE_S: Final = 0.2
"""The least time between two savings. The others are asked once a second and answer together, so
there is seldom more than one in it."""

TELL_EVERY_S: Final = 60.0
"""The least time between two warnings that a save has failed."""

GREETING_S_MAX: Final = 5.0
"""How long ago a greeting may have been written whose sender still waits for an answer: a link that
dials does so for 2 s. Where this node was paused, several of one sender lie in wait for it."""

_log = logging.getLogger(__name__)


class Doubt(NamedTuple):
    """A greeting that seemed to have been overtaken by its sender's own answer."""

    end: int
    """Where the answer said that the log ends."""
    since: float
    """When that was noticed: a greeting written later cannot end before `end`."""


class Marks:
    """The recollections of one node."""

    def __init__(
        self, node: Node, disk: Disk, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._node = node
        self._saved = PeerEnds(disk)
        self._clock = clock
        self._recollections = Recollections()
        self._tellers: dict[ReplicaId, int | UnsetType] = {}
        """The process that told of the end which is remembered, where it was told to this one."""
        self._doubted: dict[tuple[ReplicaId, Role], Doubt] = {}
        self._news = asyncio.Event()
        self._turn = asyncio.Lock()
        """Held while the file is written or closed."""
        self._saving: asyncio.Task[None] | None = None
        """Kept so that it is not collected where no caller waits for it any more."""
        self._told_at = -TELL_EVERY_S

    def load(self) -> None:
        """Remember what was written down; a file that cannot be read is as good as none."""
        try:
            self._recollections = Recollections(self._saved.load())
        except (StorageError, OSError) as trouble:
            _log.warning("%s; where the other nodes' logs ended is forgotten", trouble)

    def note(self, node: NodeId, end: int) -> None:
        """Hear from a node how far its log is durable.

        Somebody who answers in its place is not remembered in its place.
        """
        connection = self._node.peers.connection(node)
        if connection is not None and self._node.admission.is_member(connection.peer.hello):
            replica = self._node.admission.voice(connection)
            if self._recollections.note(replica, end):
                self._news.set()
                self._tellers[replica] = connection.peer.hello.process

    def remembers(self, hello: Hello) -> bool:
        """Tell whether this very node was met before, with the disk it has now.

        No client is told the incarnation, so nobody else can name it.
        """
        return _replica(hello) in self._recollections.ends

    def check(self, hello: Hello) -> None:
        """Raise `RolledBack` for a node whose log ends before where it was durable.

        Its greeting and its answer to a question come by two connections, so an answer may overtake
        a greeting that was written before it. Then `Unreachable` asks for another greeting.
        """
        if not hello.node or not isinstance(hello.log_end, int):
            return
        replica = _replica(hello)
        greeter = (replica, hello.role)
        reason = self._recollections.objection(replica, hello.log_end)
        if reason is None:
            self._doubted.pop(greeter, None)
            return
        # A virtual machine that is put back with its memory is the same process as before. But it
        # says again what it said first, also when all that was on its way has arrived.
        is_same = hello.process is not UNSET and self._tellers.get(replica) == hello.process
        doubt = self._doubted.get(greeter)
        if is_same and (doubt is None or hello.log_end >= doubt.end):
            doubt = Doubt(self._recollections.ends[replica], self._clock())
            self._doubted[greeter] = doubt
        # Refused either way. But the other verdict is for ever: nobody who only spoke too early
        # may hear it.
        if is_same and doubt is not None and self._clock() - doubt.since <= GREETING_S_MAX:
            raise Unreachable(
                f"node {hello.node} has said since that its log is longer: once again"
            )
        _log.error("%s", reason)
        raise RolledBack(reason)

    async def run(self) -> None:
        """Save new ends as soon as they come, until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER_S)
            await self.save()
            await asyncio.sleep(SAVE_S)

    async def save(self) -> None:
        """Write down what was heard since the last time: also when the node stops.

        What is known of nodes that were removed is forgotten: their ids are never given again. A
        file that cannot be written, whatever the reason, is tried again: it is a hint, and no node
        ends for want of one. Where the caller is cancelled, what has begun is ended all the same: a
        thread cannot be stopped, and `close` waits for it.
        """
        self._saving = asyncio.create_task(self._save())
        await asyncio.shield(self._saving)

    async def close(self) -> None:
        """Close the file, once what is being written has been."""
        async with self._turn:
            self._saved.close()

    async def _save(self) -> None:
        async with self._turn:
            await self._save_news()

    async def _save_news(self) -> None:
        replica = self._node.host.catalog
        if replica is not None:
            machine = replica.catalog.machine
            if self._recollections.forget(lambda one: is_removed(machine, one)):
                self._news.set()
        known = self._recollections.ends
        self._tellers = {one: by for one, by in self._tellers.items() if one in known}
        self._doubted = {one: end for one, end in self._doubted.items() if one[0] in known}
        if not self._news.is_set():
            return
        self._news.clear()
        try:
            await asyncio.to_thread(self._saved.save, dict(known))
        except (StorageError, OSError) as trouble:
            self._news.set()
            self._tell(trouble)

    def _tell(self, trouble: Exception) -> None:
        now = self._clock()
        if now - self._told_at >= TELL_EVERY_S:
            self._told_at = now
            _log.warning(
                "where the other nodes' logs end cannot be written down",
                extra={"reason": str(trouble)},
            )


def _replica(hello: Hello) -> ReplicaId:
    return replica_id(NodeId(hello.node), Incarnation(hello.incarnation))
