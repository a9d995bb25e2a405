"""What a peer is: servers that can be started here, and a client to publish and to read with.

Everything that is measured is written once against this port (`shapes`), so that no peer gets a
load of its own, and every peer has to hand back what it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.bench.resources import Watched


class NotInstalled(Exception):
    """A peer cannot be started here; the text is the line that installs it."""


class PublishFailed(Exception):
    """A peer did not acknowledge what it was given."""


class Reader(Protocol):
    """Reads topics from their beginning."""

    async def some(self) -> Sequence[bytes]:
        """Return what is next, as soon as there is anything."""
        ...

    async def close(self) -> None:
        """Stop reading."""
        ...


class PeerClient(Protocol):
    """One client, as its library would have it used by one process."""

    async def publish(self, topic: str, value: bytes) -> None:
        """Publish one record and wait for its acknowledgement."""
        ...

    async def publish_all(self, topic: str, values: Sequence[bytes]) -> None:
        """Publish as fast as the library can, and wait until all are acknowledged."""
        ...

    async def reader(self, topics: Sequence[str]) -> Reader:
        """Begin to read."""
        ...

    async def close(self) -> None:
        """Hang up."""
        ...


class Setting(Protocol):
    """A peer under one promise of durability: one column of the table."""

    @property
    def key(self) -> str:
        """How the figures call it."""
        ...

    @property
    def promise(self) -> str:
        """What an acknowledgement meant."""
        ...

    async def make_topic(self, topic: str) -> None:
        """Make a topic of one partition on three nodes."""
        ...

    async def drop_topic(self, topic: str) -> None:
        """Take it away, with what it holds."""
        ...

    async def client(self, *, is_alone: bool) -> PeerClient:
        """Connect; a client that is alone never has more than one publish on its way."""
        ...

    async def close(self) -> None:
        """Hang up what makes topics, before the nodes go."""
        ...


class Peer(Protocol):
    """A broker of three nodes on this machine, from `start` to `stop`."""

    @property
    def settings(self) -> Sequence[Setting]:
        """The promises under which it is measured; the goals are about the first."""
        ...

    @property
    def watched(self) -> Sequence[Watched]:
        """Its nodes' processes."""
        ...

    @property
    def versions(self) -> str:
        """The server's and the client library's."""
        ...

    async def start(self) -> None:
        """Start the nodes and return when records can be published; raises `NotInstalled`."""
        ...

    def stop(self) -> None:
        """Stop every node, and return when all are gone."""
        ...
