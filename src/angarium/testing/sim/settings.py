"""The size of a run: how many of everything, and how small its files are."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from angarium.log.segments import SegmentConfig
from angarium.log.wal import WalConfig
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.testing.sim.clock import SECOND
from angarium.testing.sim.faults import WITH_CLOCKS, FaultProfile

OPERATIONS_MIN = 200
"""Client operations every run completes."""

OVERLAPPING_FAULTS_MIN = 5
"""Faults every run sees strike while an operation is in flight."""

SHARE_MISTIMED = 0.8
MISTIMED_FROM = 50_000
"""Of runs from this seed on, those in which clocks are wrong and records are trimmed by age, if
nothing counts every record. Earlier seeds are what they always were."""

SHARE_MISTIMED_BESIDE_ALL = 0.4
MISTIMED_BESIDE_ALL_FROM = 60_000
"""The same of runs with transactions or consumer groups, and from which seed on."""

RETENTION = 4 * SECOND

SHARE_REPLACED = 0.25
"""Runs in which disks are replaced and rolled back besides all else."""

REPLACING_FROM = 100
"""The first seed of such a run: searches for planted bugs begin below it and stay the same."""

SHARE_COMPACTED = 0.3
"""Runs with compaction, of those in which nothing stands in the way of it."""

SHARE_STAGING = 0.5
"""Runs in which whatever is committed counts as large, of those with transactions."""

STAGING_FROM = 100
"""The first seed of such a run: as above."""

SHARE_WITH_STRANGERS = 0.3
"""Runs in which somebody forges frames."""


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
    strangers: int = 0
    """One forges frames all the time, or none does."""
    retention: int | None = None
    """How long records are kept (µs). With it clocks are compared, and faults may set them."""
    replacing: bool = False
    """Whether disks are replaced, or put back as they were, whenever the cluster lets them go."""
    staging: bool = False
    """Whether transactions have several stages, which travel as files beside snapshots, and every
    commit is carried out by steps, as only large ones are otherwise."""
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
    settings = replace(
        settings,
        compactors=int(is_compacted and may_be_compacted(settings)),
        strangers=int(random.Random(seed ^ 0x57A6).random() < SHARE_WITH_STRANGERS),
        replacing=seed >= REPLACING_FROM and random.Random(seed ^ 0xD15C).random() < SHARE_REPLACED,
    )
    if seed >= STAGING_FROM and random.Random(seed ^ 0x57A9E).random() < SHARE_STAGING:
        settings = with_staging(settings)
    if random.Random(seed ^ 0xC10C).random() >= _share_mistimed(seed, settings):
        return settings
    return replace(settings, retention=RETENTION, faults=FaultProfile(weights=WITH_CLOCKS))


def with_staging(settings: Settings) -> Settings:
    """Return the same run with transactions that count as large."""
    small = replace(settings.host.replica, commit_step_bytes=100)
    return replace(settings, staging=True, host=replace(settings.host, replica=small))


def _share_mistimed(seed: int, settings: Settings) -> float:
    """Return how many of the runs like this one have clocks that are wrong."""
    if settings.compactors or seed < MISTIMED_FROM:
        return 0.0
    if may_be_compacted(settings):
        return SHARE_MISTIMED
    return SHARE_MISTIMED_BESIDE_ALL if seed >= MISTIMED_BESIDE_ALL_FROM else 0.0


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
