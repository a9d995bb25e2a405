"""A record on its way in, whichever door it came through, and who sent it."""

from __future__ import annotations

from typing import Final, NamedTuple

from angarium.batch import AT_ONCE, NEVER, BatchBuilder, encode, encode_one
from angarium.doors import timing
from angarium.errors import InvalidArgument
from angarium.ids import NO_PRODUCER, Epoch, ProducerId, Sequence

Pairs = tuple[tuple[str, bytes | None], ...]


class Outgoing(NamedTuple):
    """A record on its way in."""

    value: bytes | None
    key: bytes | None = None
    headers: Pairs = ()
    timestamp: int = 0
    expires_at: int = NEVER
    deliver_at: int = AT_ONCE

    @property
    def is_plain(self) -> bool:
        """Whether nothing about it could be refused that is right about its neighbours."""
        return self.expires_at == NEVER and self.deliver_at == AT_ONCE

    @property
    def size(self) -> int:
        """How many bytes of data it has."""
        value, key, headers, _, _, _ = self
        size = len(value or b"") + len(key or b"")
        if headers:
            size += sum(len(name) + len(content or b"") for name, content in headers)
        return size


BARE: Final = Outgoing(None)[2:]
"""What a record has besides key and value if it has nothing."""


class ProducerIdentity(NamedTuple):
    """Who produced a batch, and which of its records is the first in it."""

    producer_id: ProducerId = NO_PRODUCER
    epoch: Epoch = Epoch(0)
    sequence: Sequence = Sequence(0)

    def at(self, batch: int, first: int, records: int) -> ProducerIdentity:
        """Return the identity of one batch of a request: the batch's number, the number of its
        first record in the request, and how many it has."""
        del batch, records
        return self._replace(sequence=Sequence(self.sequence + first)) if self.producer_id else self


NOBODY: Final = ProducerIdentity()


def deadlines(
    expires_at: int, deliver_at: int, expires_after_ms: int, deliver_after_ms: int
) -> tuple[int, int]:
    """Return when a record expires and is delivered; what is `after` counts from now, 0 is not
    said."""
    if expires_after_ms or deliver_after_ms:
        if expires_after_ms < 0 or deliver_after_ms < 0:
            raise InvalidArgument(
                "a record neither expires nor is delivered before it is published"
            )
        now = timing.now()
        expires_at = now + 1_000 * expires_after_ms if expires_after_ms else expires_at
        deliver_at = now + 1_000 * deliver_after_ms if deliver_after_ms else deliver_at
    return expires_at or NEVER, deliver_at or AT_ONCE


def single_batch(record: Outgoing, identity: ProducerIdentity = NOBODY) -> bytearray:
    """Return a batch of this one record."""
    value, key, headers, timestamp, expires_at, deliver_at = record
    producer_id, epoch, sequence = identity
    if headers:
        return encode(
            (value,),
            keys=(key,),
            headers=(headers,),
            timestamps=timestamp,
            expires_at=expires_at,
            deliver_at=deliver_at,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
        )
    return encode_one(
        value,
        key=key,
        timestamp=timestamp,
        expires_at=expires_at,
        deliver_at=deliver_at,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
    )


def added(builder: BatchBuilder, record: Outgoing) -> bool:
    """Add a record to a batch that is being built; False if the batch is too full for it."""
    value, key, headers, timestamp, expires_at, deliver_at = record
    return builder.add(
        value,
        key=key,
        headers=headers,
        timestamp=timestamp,
        expires_at=expires_at,
        deliver_at=deliver_at,
    )
