"""The size of a run: how many of everything, and how small its files are."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from angarium.log.segments import SegmentConfig
from angarium.log.wal import WalConfig
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.testing.sim import wan
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.faults import (
    IN_LOGS,
    OF_REGIONS,
    WITH_CLOCKS,
    WITH_CLOCKS_AHEAD,
    FaultProfile,
)
from angarium.testing.sim.wan import Living, Wan, drawn_wan

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

SHARE_AHEAD = 0.4
AHEAD_FROM = 700_000
"""Runs with consumer groups in which the clocks of all nodes go ahead and are set right again, of
those in which clocks are not compared, and from which seed on."""

RETENTION = 4 * SECOND

RETENTION_AFAR = 15 * SECOND
"""The same where clocks are compared from region to region, which is less exact."""

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

SHARE_WITH_RUMOURS = 0.3
RUMOURS_FROM = 130_000
"""Runs in which nodes hear, rightly or not, that others are gone, and from which seed on."""


SHARE_REBALANCED = 0.5
REBALANCED_FROM = 150_000
REBALANCED_GROUPS = 4
"""Runs in which replicas are evened out all the time, from which seed on, and of how many groups:
with one or two there would be little to even out."""

SHARE_OF_REGIONS = 0.4
REGIONS_FROM = 170_000
"""Runs whose nodes are in several regions, and from which seed on."""

SHARE_HOMED = 0.4
"""Those of them whose partitions have a home, where all their voters are."""

REGIONAL_TIME_MAX = 600 * SECOND
"""How long such a run may take: whatever needs a majority takes a round trip between regions."""

TICK = 20 * MILLISECOND
"""Less than on a real node, as the whole run is quicker than life."""

SHARE_PLACED = 0.4
PLACED_FROM = 180_000
PLACED_NODES = 6
"""Runs whose nodes are in regions and whose topic changes how it lives there, of which seeds, and
how many nodes they have: those of three regions, or of two."""
SHARE_FOLLOWING = 0.3
FOLLOWING_FROM = 210_000
FOLLOWING_GROUPS = 2
FOLLOWING_PRODUCERS = 4
FOLLOWING_FAULTS = 6
"""Those of them in which leaders follow publishers, from which seed on, and with how many groups,
producers and faults: enough to count, and long enough for publishers to move."""

SHARE_GROWING = 0.5
GROWING_FROM = 200_000
GROWING_GROUPS = 4
"""Runs in which a topic is given partitions while keys are published to it, from which seed on, and
how many it comes to have."""

SHARE_WITNESSED = 0.4
WITNESSED_FROM = 400_000
WITNESS_NODES = 2
"""Runs in which a witness breaks ties, of those in one place, and from which seed on."""

SHARE_WITNESSED_BESIDE_ALL = 0.35
WITNESSED_BESIDE_ALL_FROM = 600_000
"""The same of runs in regions, and of those with rebalances, and from which seed on."""

SHARE_HOLDING = 0.5
HOLDING_FROM = 300_000
HOLDING = 8 * MILLISECOND
"""Runs in which leaders hold EVENTUAL entries back to send them together, from which seed on, and
for how long."""


SHARE_PACED = 0.5
PACED_FROM = 340_000
PACED_BYTES = 600
"""Runs in which nodes hold copies back, from which seed on, and what may pass in a tick: less than
a chunk."""

SHARE_HOLED = 0.5
HOLED_FROM = 900_000
"""Runs in which bits flip inside logs, and from which seed on."""

CHUNK_BYTES = 1_024
FAR_CHUNK_BYTES = 16_384
FAR_PACED_BYTES = PACED_BYTES * FAR_CHUNK_BYTES // CHUNK_BYTES
"""How large a chunk of a copy is, how large between regions, and what may pass in a tick there."""


def small_host() -> HostConfig:
    """Return settings under which a short run meets every rare event: rolls, snapshots, copies."""
    return HostConfig(
        replica=ReplicaConfig(
            snapshot_entries=60,
            snapshot_keep_entries=15,
            snapshot_wait_entries=600,
            transfer_chunk_bytes=CHUNK_BYTES,
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
    """Those of `witnesses` left out."""
    replicas: int = 3
    """Full ones of each group that vote."""
    witnesses: int = 0
    """Nodes that have nothing but witnesses, besides the others; with some each group has one."""
    groups: int = 1
    producers: int = 4
    readers: int = 2
    near_readers: int = 0
    """Consumers that read at the nearest replica, whoever leads."""
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
    rumours: int = 0
    """One says all the time that nodes are gone, or nobody does."""
    retention: int | None = None
    """How long records are kept (µs). With it clocks are compared, and faults may set them."""
    rebalancing: bool = False
    """Whether nodes are drained and come back, and replicas are evened out all the time."""
    placing: bool = False
    """With `rebalancing`: whether nodes are in regions, with homes and readers, which change."""
    following: bool = False
    """With `placing`: whether leaders follow publishers, who move from region to region."""
    growing: bool = False
    """Whether a topic is given partitions, with publishers and readers that mind its keys."""
    repeating: bool = False
    """With `growing`: whether requests under idempotency keys come again all the time."""
    replacing: bool = False
    """Whether disks are replaced, or put back as they were, whenever the cluster lets them go."""
    beating: bool = False
    """Whether nodes find out by a beat who is alive, as real ones do."""
    staging: bool = False
    """Whether transactions have several stages, which travel as files beside snapshots, and every
    commit is carried out by steps, as only large ones are otherwise."""
    sharing_micros: int = 0
    """How long a leader waits for more publishes to go into the same entry."""
    holding_micros: int = 0
    """How long a leader waits for more EVENTUAL entries to send with those it has."""
    copy_bytes_per_tick: int | None = None
    """What copies may take of a node in a tick; None: whatever comes."""
    faults_min: int = 10
    """Faults that strike while operations are in flight, at least, before the run ends."""
    wan: Wan | None = None
    """The regions that nodes and clients are in, and how far they are apart; None: all are in one
    place."""
    time_max: int = 120 * SECOND
    host: HostConfig = field(default_factory=small_host)
    faults: FaultProfile = field(default_factory=FaultProfile)

    @property
    def tick(self) -> int:
        """How long a tick is (µs)."""
        return TICK if self.wan is None else wan.TICK

    @property
    def slack(self) -> int:
        """How much longer clients wait because answers come from far away (µs)."""
        return 0 if self.wan is None else self.wan.slack


def drawn_settings(seed: int) -> Settings:
    """Return the size of the run that belongs to `seed`."""
    settings = _drawn_with_company(seed)
    if seed >= HOLED_FROM and random.Random(seed ^ 0x401E).random() < SHARE_HOLED:
        return with_holes(settings)
    return settings


def with_holes(settings: Settings) -> Settings:
    """Return the same run with damage inside logs, and nodes that end by themselves."""
    weights = {**settings.faults.weights, **IN_LOGS}
    return replace(settings, faults=replace(settings.faults, weights=weights))


def _drawn_with_company(seed: int) -> Settings:
    settings = _drawn_settings(seed)
    # Not from the same dice, so that the other runs are what they always were.
    is_compacted = random.Random(seed ^ 0xC0DE).random() < SHARE_COMPACTED
    settings = replace(
        settings,
        compactors=int(is_compacted and may_be_compacted(settings)),
        strangers=int(random.Random(seed ^ 0x57A6).random() < SHARE_WITH_STRANGERS),
        rumours=int(
            seed >= RUMOURS_FROM and random.Random(seed ^ 0x8055).random() < SHARE_WITH_RUMOURS
        ),
        replacing=seed >= REPLACING_FROM and random.Random(seed ^ 0xD15C).random() < SHARE_REPLACED,
    )
    if seed >= HOLDING_FROM and random.Random(seed ^ 0x401D).random() < SHARE_HOLDING:
        settings = replace(settings, holding_micros=HOLDING)
    if seed >= PACED_FROM and random.Random(seed ^ 0x9ACE).random() < SHARE_PACED:
        settings = replace(settings, copy_bytes_per_tick=PACED_BYTES)
    if seed >= STAGING_FROM and random.Random(seed ^ 0x57A9E).random() < SHARE_STAGING:
        settings = with_staging(settings)
    if seed >= REBALANCED_FROM and random.Random(seed ^ 0xBA1A).random() < SHARE_REBALANCED:
        settings = replace(settings, rebalancing=True, groups=REBALANCED_GROUPS)
    if seed >= PLACED_FROM and random.Random(seed ^ 0x91AC).random() < SHARE_PLACED:
        settings = with_regions(settings)
        if seed >= FOLLOWING_FROM and random.Random(seed ^ 0xF011).random() < SHARE_FOLLOWING:
            return with_following(settings)
    if seed >= GROWING_FROM and random.Random(seed ^ 0x6120).random() < SHARE_GROWING:
        # In one region, and without retention: readers have to meet every record.
        return with_growing(settings)
    if random.Random(seed ^ 0xC10C).random() < _share_mistimed(seed, settings):
        settings = replace(settings, retention=RETENTION, faults=FaultProfile(weights=WITH_CLOCKS))
    elif seed >= AHEAD_FROM and settings.members and _is_ahead(seed):
        settings = replace(settings, faults=FaultProfile(weights=WITH_CLOCKS_AHEAD))
    if seed >= WITNESSED_FROM and random.Random(seed ^ 0x717E).random() < SHARE_WITNESSED:
        return with_witnesses(settings, seed)
    return _far_apart(settings, seed)


def _far_apart(settings: Settings, seed: int) -> Settings:
    """Return the same run in regions if it is to have some; last, for all takes longer there."""
    is_witnessed = seed >= WITNESSED_BESIDE_ALL_FROM and (
        random.Random(seed ^ 0x3717E).random() < SHARE_WITNESSED_BESIDE_ALL
    )
    if seed >= REGIONS_FROM and random.Random(seed ^ 0x4E61).random() < SHARE_OF_REGIONS:
        if is_witnessed:
            return with_a_region_of_witnesses(settings, seed)
        return in_regions(settings, seed)
    if is_witnessed and settings.rebalancing:
        return with_witnesses_rebalanced(settings, seed)
    return settings


def in_regions(settings: Settings, seed: int, *, living: Living | None = None) -> Settings:
    """Return the same run with nodes in three or five regions; the seed draws how far apart."""
    rng = random.Random(seed ^ 0x3A7C)
    if settings.placing:
        living = Living.SPREAD  # to begin with: its topic changes how it lives all the time
    elif living is None:
        living = Living.HOMED if rng.random() < SHARE_HOMED else Living.SPREAD
    if living is Living.HOMED:
        regions, nodes, replicas = 3, 9, 3
    else:
        sizes = ((3, 6, 3), (3, 6, 3), (5, 5, 3), (5, 5, 5))
        regions, nodes, replicas = sizes[0] if settings.placing else rng.choice(sizes)
    return replace(
        settings,
        wan=drawn_wan(rng, regions=regions, living=living),
        near_readers=3,
        nodes=nodes,
        replicas=replicas,
        retention=RETENTION_AFAR if settings.retention else None,
        # Its planner knows nothing yet of homes.
        rebalancing=settings.rebalancing and living is Living.SPREAD and nodes > replicas,
        host=_far_reaching(settings.host),
        # Less than a chunk as before, and as many ticks for one: leaders that send several copies
        # at a time came to their end after minutes otherwise (seed 400000).
        copy_bytes_per_tick=settings.copy_bytes_per_tick and FAR_PACED_BYTES,
        time_max=REGIONAL_TIME_MAX,
        faults=FaultProfile(
            weights={**settings.faults.weights, **OF_REGIONS},
            gaps_ms=(800, 1_500, 2_500),
            lasting_ms=(100, 5_000),
        ),
    )


def _far_reaching(host: HostConfig) -> HostConfig:
    """Return settings that fill a long way as real ones do: more may be under way at a time."""
    far = replace(
        host.replica,
        message_bytes_max=16_384,
        inflight_messages_max=64,
        transfer_chunk_bytes=FAR_CHUNK_BYTES,
    )
    return replace(host, replica=far)


def with_growing(settings: Settings) -> Settings:
    """Return the same run with a topic that grows, in which nothing is trimmed or compacted."""
    return replace(
        settings, growing=True, groups=GROWING_GROUPS, stewards=0, compactors=0, rebalancing=False
    )


def with_regions(settings: Settings) -> Settings:
    """Return the same run in a cluster with regions, whose topic is given another placement."""
    return replace(
        settings,
        rebalancing=True,
        placing=True,
        groups=REBALANCED_GROUPS,
        nodes=PLACED_NODES,
        replicas=3,
    )


def with_witnesses(settings: Settings, seed: int) -> Settings:
    """Return the same run with two full replicas of each group, or four, and a witness."""
    four = random.Random(seed ^ 0x4444).random() < 0.2
    return replace(
        settings,
        nodes=5 if four else 3,
        replicas=4 if four else 2,
        witnesses=WITNESS_NODES,
        rebalancing=False,
    )


def with_witnesses_rebalanced(settings: Settings, seed: int) -> Settings:
    """Return the same run with witnesses, and with spare nodes to even replicas out among."""
    witnessed = with_witnesses(settings, seed)
    return replace(
        witnessed,
        nodes=witnessed.nodes + 2,
        rebalancing=True,
        placing=False,
        groups=REBALANCED_GROUPS,
    )


def with_a_region_of_witnesses(settings: Settings, seed: int) -> Settings:
    """Return the same run in regions, the last of which has witnesses and nothing else."""
    rng = random.Random(seed ^ 0x2717E)
    sizes = ((3, 4, 2), (3, 4, 2), (5, 4, 2), (5, 4, 4), (5, 8, 4))
    regions, nodes, replicas = rng.choice(sizes)
    afar = in_regions(replace(settings, placing=False), seed, living=Living.SPREAD)
    return replace(
        afar,
        wan=drawn_wan(rng, regions=regions),
        nodes=nodes,
        replicas=replicas,
        witnesses=nodes // (regions - 1),
        rebalancing=settings.rebalancing and nodes > replicas,
    )


def with_following(settings: Settings) -> Settings:
    """Return the same run with leaders that follow their publishers."""
    return replace(
        with_regions(settings),
        following=True,
        groups=FOLLOWING_GROUPS,
        producers=FOLLOWING_PRODUCERS,
        faults_min=FOLLOWING_FAULTS,
        faults=FaultProfile(gaps_ms=(500, 1_000, 1_500), lasting_ms=(100, 1_000)),
    )


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


def _is_ahead(seed: int) -> bool:
    return random.Random(seed ^ 0xAEAD).random() < SHARE_AHEAD


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
