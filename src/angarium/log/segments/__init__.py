"""A partition's committed batches on disk: segments, their indexes, and how peers copy them.

`partition_log` is the whole; read it first. Below it: `frames` (what a file is made of), `segment`
and `index` (what is known in memory), `footer` (what is known on disk), `tail` and `flush` (the way
to disk), `reader`, `recovery` (opening), `repair`, `manifest` and `importing` (copies for peers),
`delays` (what is due when), `compactor` (fewer records at the same offsets).
"""

from __future__ import annotations

from angarium.log.segments.config import SegmentConfig
from angarium.log.segments.files import OpenFiles
from angarium.log.segments.flush import Flush
from angarium.log.segments.importing import MissingChunk, SegmentImport
from angarium.log.segments.manifest import Manifest, SegmentInfo
from angarium.log.segments.partition_log import PartitionLog
from angarium.log.segments.segment import SegmentDamage

__all__ = [
    "Flush",
    "Manifest",
    "MissingChunk",
    "OpenFiles",
    "PartitionLog",
    "SegmentConfig",
    "SegmentDamage",
    "SegmentImport",
    "SegmentInfo",
]
