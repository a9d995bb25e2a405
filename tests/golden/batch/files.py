"""The golden batches on disk: for each name the batch, and in JSON what it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.golden.batch.samples import described, samples

from angarium.batch import Batch
from angarium.batch.layout import VERSION

FOLDER: Final = Path(__file__).parent


def names() -> list[str]:
    """Return the name of every golden batch there is, of every version."""
    return sorted(path.stem for path in FOLDER.glob("v*.batch"))


def read(name: str) -> tuple[bytes, dict[str, Any]]:
    """Return a golden batch, and what it holds."""
    return (
        (FOLDER / f"{name}.batch").read_bytes(),
        json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")),
    )


def write() -> list[str]:
    """Write what is missing for the present version; what is there is never written again."""
    written = []
    for sample, buffer in samples().items():
        path = FOLDER / f"v{VERSION}-{sample}.batch"
        if not path.exists():
            contents = json.dumps(described(Batch.parse(buffer, compacted=True)), indent=1)
            path.with_suffix(".json").write_text(contents + "\n", encoding="utf-8")
            path.write_bytes(buffer)
            written.append(path.name)
    return written
