"""`angarium serve` with small files: a short test meets rolls, snapshots and segment copies.

    python -m angarium.testing.cluster.small_node --config node.toml [--parent PID]
                                                  [--segment-bytes N] [--chunk-bytes N]

Everything else is the node that users run. With `--segment-bytes` only segments are small: so long.
A newcomer copies in small pieces, too, 1.3 MB a second in all; `--chunk-bytes` lets a long test,
which has more to copy with every minute, do so in larger ones.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.app import composition
from angarium.app.parent import die_with
from angarium.app.serving import serve
from angarium.app.sources import load_settings
from angarium.log.segments import SegmentConfig
from angarium.log.wal import WalConfig
from angarium.replica.config import HostConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.node.release import Release

CHUNK_BYTES: Final = 16 << 10
"""What a newcomer asks for at a time, four times in a tick."""


def main(release: Release | None = None, arguments: Sequence[str] | None = None) -> int:
    """Run a node until it is told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--parent", type=int)
    parser.add_argument("--segment-bytes", type=int)
    parser.add_argument("--chunk-bytes", type=int, default=CHUNK_BYTES)
    options = parser.parse_args(arguments)
    if options.parent is not None and not die_with(options.parent):
        return 1
    settings = load_settings(file=options.config, environment=os.environ, flags={})
    config = composition.config_of(settings)
    usual, length = config.host_config, options.segment_bytes
    chunk = options.chunk_bytes
    small = dataclasses.replace(
        config,
        host_config=small_files(usual, chunk) if length is None else small_segments(usual, length),
        release=release or config.release,
    )
    return serve(lambda signals: [composition.NodePart(small, signals)], settings.log)


def small_files(usual: HostConfig, chunk_bytes: int = CHUNK_BYTES) -> HostConfig:
    """Return the settings of a host whose log forgets soon; it copies in such pieces."""
    return HostConfig(
        replica=dataclasses.replace(
            usual.replica,
            snapshot_entries=300,
            snapshot_keep_entries=50,
            snapshot_bytes=1 << 20,
            transfer_chunk_bytes=chunk_bytes,
        ),
        wal=WalConfig(file_bytes=1 << 20, reserve_bytes=64 << 10, cache_bytes=256 << 10),
        segments=SegmentConfig(segment_bytes=128 << 10, preallocate_bytes=64 << 10),
    )


def small_segments(usual: HostConfig, length: int) -> HostConfig:
    """Return the settings of a host whose segments are short, and nothing else."""
    segments = SegmentConfig(segment_bytes=length, preallocate_bytes=length // 4)
    return dataclasses.replace(usual, segments=segments)


if __name__ == "__main__":
    sys.exit(main())
