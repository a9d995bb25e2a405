"""How much one partition's machine may remember. Every replica must agree, so these are logged.

A limit changes only through a `Configure` entry, and so at the same index of the log everywhere.
At a limit the command is refused with `RESOURCE_EXHAUSTED` and the limit's name, and nothing
changes; the exceptions are `producers_max` and `series_max`, where the longest silent one makes
room, and `keys_max`.
"""

from __future__ import annotations

from typing import Final

import msgspec

OFFSET_MAX: Final = (1 << 63) - 1
"""Offsets fit a signed 64-bit integer, as Arrow and Spark want them. Nothing is numbered above."""

RESTORED_AHEAD_US_MAX: Final = 600_000_000
"""How much later than the partition's own time a restored batch may have been appended. A later one
is refused: the partition's time would follow it, and retention would take what is new for old."""

RESTORED_GAP_MAX: Final = 1 << 48
"""Offsets that one `Restore` may leave empty: they are written as gaps of 2**32 each. More are
refused; a partition that began so far up is restored by several."""

NAME_CHARACTERS_MAX: Final = 256
"""Length of a transaction's, stage's, group's or member's name. Longer ones are refused."""

CONTENT_CHARACTERS_MAX: Final = 1_024
"""Length of what a commit says it is of, kept for a repeated commit. A longer text is refused."""

REASON_CHARACTERS_MAX: Final = 512
"""Length of the reason kept with a retry or a dead letter. The rest is cut off."""


class PartitionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one partition may hold. Small integers throughout, so that a snapshot stays small."""

    producers_max: int = 10_000
    """Idempotent producers remembered. The next one evicts the least recently used, and ids below
    the highest evicted one are refused from then on unless still remembered."""

    named_producers_max: int = 10_000
    """Producers that stay until deleted. At the limit a new named producer is refused."""

    series_max: int = 10_000
    """Names of transactions remembered, here and as a home. At the limit the one unused for longest
    makes room, if it has been for long enough (below); otherwise a new name is refused."""

    series_micros_min: int = 24 * 3_600 * 1_000_000
    """How long a participant remembers a name that its home has decided for; the home is what keeps
    a commit from being repeated. Names that this partition decides for are never forgotten."""

    decisions_micros_min: int = 30 * 24 * 3_600 * 1_000_000
    """How long a home remembers a name, at the least. One that comes again after it was forgotten
    is a new one."""

    attempts_max: int = 8
    """Undecided transactions of one name in this partition. At the limit a further one waits."""

    stages_max: int = 1_024
    """Stages of one open transaction. At the limit a new stage is refused."""

    staged_bytes_max: int = 256 << 20
    """Bytes of all open stages together. At the limit a stage grows no further. At level 2 leaders
    put their node's setting here, and say with it:"""

    stages_beside: bool = False
    """Open stages are copied as files beside a snapshot, so that they may be larger than one. No
    limit, but of the same kind: releases before level 2 know nothing of such files."""

    staged_acks_max: int = 16_384
    """Acknowledged ranges that wait in one stage. At the limit the stage grows no further."""

    transaction_micros_max: int = 15 * 60 * 1_000_000
    """Age of an open transaction by the machine's clock. Later it can only be aborted."""

    participants_max: int = 4_096
    """Partitions of one transaction. A longer list is refused."""

    groups_max: int = 16_384
    """Consumer groups of this partition. At the limit a new group is refused."""

    containers_max: int = 65_536
    """Containers of acknowledged ranges in one group, each of up to 1,024 offsets or one run. At
    the limit only acknowledgements that need no further container are taken."""

    retries_max: int = 131_072
    """Records of one group that wait for another attempt or their dead letter. At the limit a
    further one is refused."""

    members_max: int = 4_096
    """Members of one group. A longer list is refused."""

    reserve_max: int = 1 << 32
    """Offsets reserved by one command. A larger request is refused."""

    keys_max: int = 65_536
    """Idempotency keys remembered. The next one makes the oldest forgotten: under that key the
    same request would be taken for a new one."""

    key_micros_max: int = 24 * 3_600 * 1_000_000
    """How long a key is remembered at the most, by the machine's clock."""
