"""The golden data directories on disk, each with a JSON file that says what must be read from it.

A directory is written once for every set of formats there has been and never again: it is what a
node of that version left behind, and the promise that later ones come up on it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.golden.data.described import described
from tests.golden.data.story import tell

from angarium.batch.layout import VERSION as BATCH_VERSION
from angarium.log.os_disk import OsDisk
from angarium.log.segments.manifest import MAGIC as MANIFEST_MAGIC
from angarium.machine.forms import VERSION as COMMAND_VERSION
from angarium.machine.snapshots import FORMAT as MACHINE_VERSION

FOLDER: Final = Path(__file__).parent
DATA: Final = "data"
CONTENTS: Final = "contents.json"

_SIGNATURES: Final = {
    "identity": ("identity", 19),
    "write-ahead log": ("wal/*.log", 12),
    "index of a closed log": ("wal/clean", 8),
    "snapshot": ("snapshots/*.snapshot", 8),
    "footer": ("groups/*/segments/*.foot", 8),
    "start mark": ("groups/*/segments/start", 8),
    "stage": ("groups/*/stages/*.stage", 4),
}
"""For each kind of file where to find one, and how many of its first bytes tell the version."""


def names() -> list[str]:
    """Return the name of every golden directory there is, the newest last."""
    return sorted((path.parent.name for path in FOLDER.glob(f"v*/{CONTENTS}")), key=_number)


def copy_of(name: str, place: Path) -> OsDisk:
    """Return a disk with a copy of a golden directory in `place`; the original is never opened."""
    shutil.copytree(FOLDER / name / DATA, place)
    return OsDisk(place)


def read(name: str) -> dict[str, Any]:
    """Return what must be read from a golden directory, and the formats it is written in."""
    contents: dict[str, Any] = json.loads((FOLDER / name / CONTENTS).read_text(encoding="utf-8"))
    return contents


def formats(folder: Path) -> dict[str, str | int]:
    """Return the versions of everything that a data directory in `folder` is written in."""
    found: dict[str, str | int] = {}
    for kind, (pattern, length) in _SIGNATURES.items():
        path = min(folder.glob(pattern))
        found[kind] = path.read_bytes()[:length].decode("latin-1")
    return {
        **found,
        "manifest of segments": MANIFEST_MAGIC.decode("ascii"),
        "batch": BATCH_VERSION,
        "commands": COMMAND_VERSION,
        "state of a machine": MACHINE_VERSION,
    }


def write() -> list[str]:
    """Write a directory if none is written in today's formats; none is ever written again."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / DATA
        tell(OsDisk(fresh))
        today = formats(fresh)
        if any(read(name)["formats"] == today for name in names()):
            return []
        name = f"v{_number(names()[-1]) + 1 if names() else 1}"
        contents = described(OsDisk(shutil.copytree(fresh, Path(scratch) / "copy")))
        shutil.copytree(fresh, FOLDER / name / DATA)
        written = json.dumps({"formats": today, "contents": contents}, indent=1)
        (FOLDER / name / CONTENTS).write_text(written + "\n", encoding="utf-8")
    return [f"data/{name}"]


def _number(name: str) -> int:
    return int(name.removeprefix("v"))
