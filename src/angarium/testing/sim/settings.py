"""The size of a run: how many of everything, and how small its files are."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from angarium.log.segments import SegmentConfig
from angarium.log.wal import WalConfig
from angarium.replica.config import ReplicaConfig
from angarium.replica.host import HostConfig
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.faults import FaultProfile

OPERATIONS_MIN = 200
"""Client operations every run completes."""

OVERLAPPING_FAULTS_MIN = 5
"""Faults every run sees strike while an operation is in flight."""

SHARE_COMPACTED = 0.3
"""Runs with compaction, of those in which nothing stands in the way of it."""


def small_host() -> HostConfig:
    """Return settings under which a short run meets every rare event: rolls, snapshots, copies."""
    return HostConfig(
        replica=ReplicaConfig(
            snapshot_entries=60,
            snapshot_keep_entries=15,
            snapshot_wait_entries=600,
            transfer_chunk_bytes=1_024,
            transfer_patience_ticks=15,
            message_bytes_max=4_096,
            inflight_messages_max=8,
            rest_after_ticks=6,
        ),
        wal=WalConfig(
            file_bytes=16_384, reserve_bytes=8_192, cache_bytes=4_096, smooth_bytes=1_024
        ),
        segments=SegmentConfig(segment_bytes=8_192),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The size of a run."""

    nodes: int = 4
    replicas: int = 3
    groups: int = 1
    producers: int = 4
    readers: int = 2
    stewards: int = 0
    """One trims and reserves, or none does."""
    transactors: int = 0
    redrivers: int = 0
    """Clients that send the same dead letters back."""
    members: int = 0
    """Members of each consumer group; with none there are no groups."""
    compactors: int = 0
    """One has logs compacted, or none does. Not together with transactions or groups."""
    sharing_micros: int = 0
    """How long a leader waits for more publishes to go into the same entry."""
    faults_min: int = 10
    """Faults that strike while operations are in flight, at least, before the run ends."""
    time_max: int = 120 * SECOND
    host: HostConfig = field(default_factory=small_host)
    faults: FaultProfile = field(default_factory=FaultProfile)


def drawn_settings(seed: int) -> Settings:
    """Return the size of the run that belongs to `seed`."""
    settings = _drawn_settings(seed)
    # Not from the same dice, so that the other runs are what they always were.
    is_compacted = random.Random(seed ^ 0xC0DE).random() < SHARE_COMPACTED
    return replace(settings, compactors=int(is_compacted and may_be_compacted(settings)))


def may_be_compacted(settings: Settings) -> bool:
    """Tell whether a run has no client that keeps no keys, or counts every record."""
    return not (settings.transactors + settings.redrivers + settings.members)


def _drawn_settings(seed: int) -> Settings:
    rng = random.Random(seed ^ 0xD1CE)
    five = rng.random() < 0.1
    return Settings(
        nodes=5 if five else rng.choice((4, 4, 4, 5)),
        replicas=5 if five else 3,
        groups=rng.choice((1, 1, 2)),
        stewards=rng.choice((0, 0, 1)),
        transactors=rng.choice((0, 0, 1, 2)),
        sharing_micros=rng.choice((0, 0, 1_000)),
        faults_min=rng.choice((OVERLAPPING_FAULTS_MIN, 10, 20)),
        redrivers=rng.choice((0, 0, 0, 2)),
        members=rng.choice((0, 0, 0, 3)),
    )
