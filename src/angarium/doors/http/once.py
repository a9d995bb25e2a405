"""Requests that may be sent again: idempotency keys, and numbers of the client's own.

`Idempotency-Key` is any word, such as a UUID. The partition remembers it (`machine.keys`), so that
a repeated request is recognised whichever node it comes to and whoever leads by then; the same key
with another body is refused. `Angarium-Sequence: NAME:NUMBER` is for clients that count: a
partition remembers the last number of a name for good, not every key of a day.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.batch import key_hash
from angarium.doors.http.records import NOBODY, Identity
from angarium.errors import InvalidArgument
from angarium.ids import Epoch
from angarium.machine.keys import identity_of
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.doors.http.records import Outgoing
    from angarium.doors.http.server.messages import Request

KEY_BYTES_MAX: Final = 255
"""Length of a key. A longer one is refused."""

SEQUENCE_HEADER: Final = b"angarium-sequence"
KEY_HEADER: Final = b"idempotency-key"

PRODUCER_PREFIX: Final = "http."
"""Producers of this door have names of their own, so that nobody fences them by accident."""

_NUMBERED: Final = re.compile(r"([A-Za-z0-9._-]{1,100}):([0-9]{1,18})")
_content: Final = msgspec.msgpack.Encoder().encode


class Once(NamedTuple):
    """What a request is recognised by when it comes again."""

    key: bytes
    content: bytes

    def identity(self, batch: int = 0, records: int = 1) -> Identity:
        """Return the identity of one of the batches that the request comes to in a partition.

        If the same request is cut into other batches later, for the topic's limit has changed,
        their numbers of records differ, and so it counts as another request.
        """
        key = self.key if not batch else b"%b/%d" % (self.key, batch)
        producer, sequence = identity_of(key, b"%d/%b" % (records, self.content))
        return Identity(producer, Epoch(0), sequence)

    def partition(self, partitions: int) -> int:
        """Return where records without a key go: a repeated request finds the same place."""
        return key_hash(self.key) % partitions


class Numbered(NamedTuple):
    """A producer's name and the number it gave to a request."""

    producer: str
    number: int


def identity_at(once: Once | None, batch: int, records: int) -> Identity:
    """Return the identity of a batch, which is nobody's if its request has no key."""
    return NOBODY if once is None else once.identity(batch, records)


def once_of(
    request: Request, mode: DeliveryMode | None, record: Outgoing | None = None
) -> Once | None:
    """Return what the request is recognised by, if it has a key; raises `InvalidArgument`.

    Key and headers of a record may come beside the body, and are as much of what was asked.
    """
    key = request.header(KEY_HEADER)
    if key is None:
        return None
    if not 0 < len(key) <= KEY_BYTES_MAX or not key.isascii():
        raise InvalidArgument(f"an Idempotency-Key has 1 to {KEY_BYTES_MAX} characters of ASCII")
    _check_mode(mode)
    beside = () if record is None else (record.key, record.headers)
    return Once(key, _content((beside, request.body)))


def numbered_of(request: Request, mode: DeliveryMode | None) -> Numbered | None:
    """Return the number that a client gave to its request, if any; raises `InvalidArgument`."""
    text = request.text_header(SEQUENCE_HEADER)
    if text is None:
        return None
    fits = _NUMBERED.fullmatch(text)
    if fits is None:
        raise InvalidArgument("Angarium-Sequence is NAME:NUMBER, and the number grows")
    if mode not in (None, DeliveryMode.CONSISTENT):
        raise InvalidArgument("a record with a number of its own is stored in mode consistent")
    return Numbered(f"{PRODUCER_PREFIX}{fits[1]}", int(fits[2]))


def _check_mode(mode: DeliveryMode | None) -> None:
    if mode is DeliveryMode.PERFORMANCE:
        raise InvalidArgument(
            "mode performance stores nothing, so nobody could tell that a key came before"
        )
