"""Numbers that come out the same on every replica, whatever Python, seed or machine it runs on."""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, Final

import google_crc32c
import msgspec

from angarium.machine.outcomes import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer

_STEP: Final = Struct("<QQIQ")
_PAIR: Final = Struct("<QQ")
_encode = msgspec.msgpack.Encoder().encode
_from_bytes = int.from_bytes


def running_hash(
    previous: int, *, index: int, data: Buffer, outcomes: Sequence[object], next_offset: int
) -> int:
    """Return the 64-bit hash of a machine that applied `data` at `index` after `previous`.

    A refusal counts with its code only: the wording of messages may differ between versions.
    """
    checksum = google_crc32c.value(data if type(data) is bytes else bytes(data))
    digest = blake2b(_STEP.pack(previous, index, checksum, next_offset), digest_size=8)
    if outcomes:
        digest.update(_encode([one.code if type(one) is Refused else one for one in outcomes]))
    return _from_bytes(digest.digest(), "little")


def affinity(left: int, right: int) -> int:
    """Return a 64-bit score of a pair, for rendezvous hashing (Thaler and Ravishankar, 1998)."""
    return _from_bytes(blake2b(_PAIR.pack(left, right), digest_size=8).digest(), "little")


def home_partition(name: str, partitions: int) -> int:
    """Return which of a topic's `partitions` is the home of the transaction or group `name`."""
    assert partitions > 0, "a topic has at least one partition"
    digest = blake2b(name.encode(), digest_size=8).digest()
    return _from_bytes(digest, "little") % partitions
