"""What a commit of the sink was of, so that a repetition can be told from something else.

A batch is recognised by its number. A checkpoint that was restored from a backup, or copied, makes
other batches with the same numbers; if they were taken for repetitions, their records would be
lost. So each commit says what it contains, the broker remembers that for the newest commit of each
query or `writeId`, and a second commit under the same number is compared with it.

Two micro-batches are the same if they read the same offsets, as Spark notes them in the checkpoint;
rows, their order and the tasks may differ. Where those notes cannot be read, and for writes by
`writeId`, the rows have to be the same, in any order and any tasks.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

TEXT_CHARACTERS_MAX: Final = 1_024
"""What the broker keeps of a commit; where a batch ended is left out of a longer text."""

_SUM: Final = (1 << 64) - 1


class Tally(msgspec.Struct, frozen=True):
    """How many rows there were, and two sums over hashes of them: order does not matter."""

    rows: int = 0
    sums: tuple[int, int] = (0, 0)

    def plus(self, other: Tally) -> Tally:
        """Return what both have counted."""
        first, second = zip(self.sums, other.sums, strict=True)
        return Tally(self.rows + other.rows, (sum(first) & _SUM, sum(second) & _SUM))


class Contents(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one commit was of."""

    rows: int
    into: str = ""
    """The topic, if all rows go to one."""
    read: str = ""
    """A digest of what was read."""
    ends: str = ""
    """What was read in words, if that is short."""
    digest: str = ""
    """Of the rows, unless it is known what was read."""

    def encode(self) -> str:
        """Return the text that the broker remembers."""
        return msgspec.json.encode(self).decode()

    def is_same_as(self, other: Contents) -> bool:
        """Tell whether this is a repetition of the other."""
        if self.into != other.into:
            return False
        if self.read and other.read:
            return self.read == other.read
        if self.digest and other.digest and self.digest != other.digest:
            return False
        return self.rows == other.rows

    def __str__(self) -> str:
        what = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        into = f" into {self.into}" if self.into else ""
        return f"{what}{into}, read up to {self.ends}" if self.ends else what + into


def contents(tallies: Iterable[Tally], *, into: str | None, read: str | None) -> Contents:
    """Return what a commit is of: `read` is what its rows were made from, if that is known."""
    whole = Tally()
    for one in tallies:
        whole = whole.plus(one)
    if read is None:
        digest = "" if whole.sums == (0, 0) else "{:016x}{:016x}".format(*whole.sums)
        return Contents(whole.rows, into or "", digest=digest)
    known = hashlib.blake2b(read.encode(), digest_size=16).hexdigest()
    own = Contents(whole.rows, into or "", read=known, ends=read)
    is_short = len(own.encode()) <= TEXT_CHARACTERS_MAX
    return own if is_short else msgspec.structs.replace(own, ends="")


def remembered(text: str) -> Contents | None:
    """Return what the broker remembers of a commit; None if that does not say anything."""
    try:
        return msgspec.json.decode(text, type=Contents)
    except msgspec.MsgspecError:
        return None


def tally(rows: pa.RecordBatch, *, hashes: bool) -> Tally:
    """Count rows; with `hashes`, add up those of their topic, key, value and headers."""
    if not hashes or not rows.num_rows:
        return Tally(rows.num_rows)
    crcs = [0] * rows.num_rows
    for name in ("topic", "key", "headers", "value"):
        if name in rows.schema.names:
            crcs = list(map(zlib.crc32, map(_bytes, rows.column(name).to_pylist()), crcs))
    return Tally(rows.num_rows, (sum(crcs) & _SUM, sum(crc * crc for crc in crcs) & _SUM))


def _bytes(value: object) -> bytes:
    """Return what a value is hashed as: no value is not an empty one."""
    if isinstance(value, bytes):
        return b"b" + value
    return b"b" + value.encode() if isinstance(value, str) else repr(value).encode()


def local_folder(location: str | None) -> Path | None:
    """Return a checkpoint's folder if it lies where Python can read it."""
    if not location:
        return None
    parts = urlsplit(location)
    if parts.scheme not in {"", "file"} or parts.netloc:
        return None
    return Path(location if not parts.scheme else unquote(parts.path))


def read_up_to(checkpoint: Path | None, query: str, batch: int) -> str | None:
    """Return what a micro-batch has read, as Spark has written it down before it began.

    None if the folder is not the query's checkpoint, or cannot be read here.
    """
    if checkpoint is None:
        return None
    try:
        if json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"] != query:
            return None
        return ends_in((checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ends_in(offsets: str) -> str:
    """Return the ends of all sources in a file of Spark's `offsets`, without what is not theirs.

    Its first line is the version of its form, the second has clocks and settings.
    """
    return "\n".join(map(_without_marks, offsets.strip().split("\n")[2:]))


def _without_marks(line: str) -> str:
    """Leave out where a query began: what is left is an option `startingOffsets`."""
    try:
        found = json.loads(line)
    except ValueError:
        return line
    if not isinstance(found, dict) or "@topics" not in found:
        return line
    return json.dumps({name: ends for name, ends in found.items() if not name.startswith("@")})
