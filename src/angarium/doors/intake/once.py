"""What a request is recognised by when it comes again: a key of the client's own choosing.

The partition remembers it (`machine.keys`), so that a repeated request is recognised whichever node
it comes to and which one leads by then; the same key with another content is refused.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from angarium.doors.intake.outgoing import ProducerIdentity
from angarium.ids import Epoch
from angarium.machine.keys import identity_of


class Once(NamedTuple):
    """A key, and what came under it."""

    key: bytes
    content: bytes

    def at(self, batch: int = 0, first: int = 0, records: int = 1) -> ProducerIdentity:
        """Return the identity of one of the batches that the request comes to in a partition.

        If the same request is cut into other batches later, for the topic's limit has changed,
        their numbers of records differ, and so it counts as another request.
        """
        del first
        key = self.key if not batch else b"%b/%d" % (self.key, batch)
        producer, sequence = identity_of(key, b"%d/%b" % (records, self.content))
        return ProducerIdentity(producer, Epoch(0), sequence)

    def under(self, layout: int) -> Once:
        """Return the key under which a request of many records is stored by a topic's `layout`.

        Each layout cuts a request into other batches. A client's key contains no newline.
        """
        return self._replace(key=b"%b\n%d" % (self.key, layout))


ProducerIdentities: TypeAlias = ProducerIdentity | Once
"""Whose the batches of a request are."""
