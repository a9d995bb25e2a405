"""The names of a partition's files. A segment is called by the first offset it may hold.

Offsets are padded with zeros, so that the order of names is the order of offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.ids import Offset

if TYPE_CHECKING:
    from angarium.log.disk import Disk

SEGMENT: Final = ".seg"
"""Batches and gaps, nothing else."""
FOOTER: Final = ".foot"
"""What is known about a sealed segment, with its index."""
DELAYS: Final = ".delay"
"""The delayed records of a sealed segment, in the order of delivery."""
IMPORT: Final = ".import"
"""A segment on its way in from a peer."""
IMPORT_FOOTER: Final = ".import-foot"
"""The footer of one that is whole; it gets its name together with the segment."""

COMPACT: Final = ".compact"
"""A segment being rewritten with fewer records."""
COMPACT_FOOTER: Final = ".compactfoot"
COMPACT_DELAYS: Final = ".compactdelay"

DRAFT: Final = ".draft"
"""What `replace_file` leaves behind if it is interrupted."""

START_MARK: Final = "start"
COMPACTED_MARK: Final = "compacted"
COMPACT_DECIDED: Final = "compact.decided"
IMPORT_MANIFEST: Final = "import.manifest"
IMPORT_DECIDED: Final = "import.decided"

_DIGITS: Final = 20

FIRST_OFFSET: Final = Offset(0)


def file_name(folder: str, base_offset: Offset, suffix: str) -> str:
    """Return the full name of one of a segment's files."""
    return f"{folder}/{base_offset:0{_DIGITS}d}{suffix}"


def offsets_named(disk: Disk, folder: str, suffix: str) -> list[Offset]:
    """Return the base offsets that have a file with `suffix` in `folder`, in order."""
    stems = (name.removesuffix(suffix) for name in disk.list(folder) if name.endswith(suffix))
    return [Offset(int(stem)) for stem in stems if len(stem) == _DIGITS and stem.isdecimal()]
