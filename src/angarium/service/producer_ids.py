"""Ids of producers without a name: a number that the catalog issued, and for whom.

The number is never issued twice, and grows: what a partition forgets it forgets from below. Behind
it stands a tag, made of who opened the producer, so that every node can tell without asking anybody
whether a batch comes from who its producer was issued to. A tag of 0 is nobody's: of producers that
were opened while authentication was off, or before the cluster's level allowed tags.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from angarium.errors import LimitExceeded
from angarium.ids import ProducerId
from angarium.machine.producers import NAMED_FROM

TAG_BITS: Final = 24
"""By accident two principals have the same tag once in 16 million pairs."""

_TAGS: Final = 1 << TAG_BITS


def issued(number: int) -> ProducerId:
    """Return the id that is made of a number, for nobody in particular."""
    producer = number << TAG_BITS
    if producer >= NAMED_FROM:
        raise LimitExceeded("producers_max", "the cluster has issued every id of a producer")
    return ProducerId(producer)


def tagged(producer: ProducerId, tag: int) -> ProducerId:
    """Return the id that says for whom it was issued."""
    assert producer % _TAGS == 0
    return ProducerId(producer | tag)


def tag_in(producer: int) -> int:
    """Return for whom an id was issued; 0: for anybody. Numbers from before tags have none."""
    return producer % _TAGS if producer >= _TAGS else 0


def tag_for(owner: str) -> int:
    """Return the tag of somebody; never 0."""
    digest = blake2b(owner.encode(errors="surrogatepass"), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "little") % (_TAGS - 1)
