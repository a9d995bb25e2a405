"""The few fields of a batch's header that decide about its numbering, read at once.

A machine looks at a batch for two microseconds: it wants neither columns nor checksums (those were
checked where the batch came in), only who sent it and how many offsets it takes.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.batch import split
from angarium.errors import InvalidBatch

if TYPE_CHECKING:
    from angarium.ids import Buffer

NUMBERING_FIELDS: Final = Struct("<8xq8xq4xI12xIqqI")
"""Base offset, append time, length, span, producer id, first sequence, epoch: see batch.layout."""


def spans(buffer: Buffer) -> list[int]:
    """Return how many offsets each of the concatenated batches in `buffer` takes."""
    found = [NUMBERING_FIELDS.unpack_from(view)[3] for view in split(buffer)]
    if 0 in found:
        raise InvalidBatch("a batch without records cannot be numbered")
    return found
