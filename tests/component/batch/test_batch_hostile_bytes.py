"""The door: bytes with a valid checksum that lie about everything else."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.batch.test_batch_hostile_bytes import MEBIBYTE, PEAK_BYTES_MAX, forged_section

from angarium.batch import Codec, encode

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def test_the_memory_of_the_decompressor_itself_is_bounded_too() -> None:
    """What C code allocates no tracer sees, so a process of its own tells its resident size.

    The worst case found: a full section behind a stream that asks for the largest window.
    """
    section = encode([bytes(32 * MEBIBYTE - 64)])[136:]
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(
        options={parameter.window_log: 25, parameter.content_size_flag: 0}
    )
    stream = compressor.compress(section[:8]) + compressor.compress(
        section[8:], compressor.FLUSH_FRAME
    )
    buffer = forged_section(stream, codec=Codec.ZSTD, section_bytes=len(section))
    script = """
import sys
from angarium.batch import Batch
def high_water():  # of this process alone; getrusage would start with its parent's
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
buffer = sys.stdin.buffer.read()
before = high_water()
assert Batch.parse(buffer).count == 1
print(high_water() - before)
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], input=buffer, capture_output=True, check=True
    )
    grown_bytes = int(answer.stdout) * 1024
    assert len(section) < grown_bytes < PEAK_BYTES_MAX
