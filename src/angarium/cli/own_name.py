"""How the reader has to write `angarium` for it to be found, as it was found this time."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def own_name() -> str:
    """Return what to write in a shell in this folder."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_shortest(Path(sys.executable))} -m angarium"
    found = shutil.which("angarium")
    if found is not None and called.exists() and Path(found).samefile(called):
        return "angarium"
    return _shortest(called)


def _shortest(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
