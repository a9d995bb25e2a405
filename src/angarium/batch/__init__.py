"""The columnar batch: the unit that clients pack, the log stores, and consumers and Spark receive.

The same bytes all the way. Python touches a single record only at the two ends; the leader numbers
a batch by writing 28 bytes into it (`stamp`). The layout is described byte by byte in
docs/reference/batch.md. `angarium.batch.arrow`, imported on its own because it needs pyarrow,
hands batches to Arrow and back without copying their contents.
"""

from angarium.batch.batch_limits import BatchLimits
from angarium.batch.builder import BatchBuilder
from angarium.batch.checksum import crc32c
from angarium.batch.decoding import Batch, BatchSlice, Record
from angarium.batch.encoding import encode
from angarium.batch.hashing import NO_KEY, key_hash
from angarium.batch.layout import AT_ONCE, HEADER_BYTES, NEVER, NO_TIMESTAMP, TIME_MAX, Codec, Flag
from angarium.batch.section import Headers
from angarium.batch.single import encode_one
from angarium.batch.stamping import batch_length, clear_stamp, split, stamp

__all__ = [
    "AT_ONCE",
    "HEADER_BYTES",
    "NEVER",
    "NO_KEY",
    "NO_TIMESTAMP",
    "TIME_MAX",
    "Batch",
    "BatchBuilder",
    "BatchLimits",
    "BatchSlice",
    "Codec",
    "Flag",
    "Headers",
    "Record",
    "batch_length",
    "clear_stamp",
    "crc32c",
    "encode",
    "encode_one",
    "key_hash",
    "split",
    "stamp",
]
