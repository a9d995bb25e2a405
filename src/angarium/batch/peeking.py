"""What a batch says of itself, looked up without reading the rest of its header.

For whoever wants one number of a batch that somebody else checks: nothing is checked here, and what
is too short to be a batch says nothing.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.batch.layout import HEADER_BYTES
from angarium.ids import NO_PRODUCER

if TYPE_CHECKING:
    from angarium.ids import Buffer

COUNT_START: Final = 48
PRODUCER_START: Final = 56

_COUNT: Final = Struct("<I")
_PRODUCER: Final = Struct("<q")


def records_in(batch: Buffer) -> int:
    """Return how many records a batch says that it has."""
    if len(batch) < HEADER_BYTES:
        return 0
    count: int = _COUNT.unpack_from(batch, COUNT_START)[0]
    return count


def producer_in(batch: Buffer) -> int:
    """Return which producer a batch says that it is of."""
    if len(batch) < HEADER_BYTES:
        return NO_PRODUCER
    producer: int = _PRODUCER.unpack_from(batch, PRODUCER_START)[0]
    return producer
