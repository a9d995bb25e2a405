"""Generate `angarium.proto` from the sources in proto/, or say whether it is up to date.

    python scripts/proto.py [--check]

Nobody edits what this writes. protoc names modules after the proto package (`angarium.v1`), while
ours live in a room of their own (`angarium.proto.v1`); the one import between generated modules is
rewritten for that, and nothing else is touched. The file's own name, which reflection shows to
clients, stays `angarium/v1/broker.proto`.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Final

from grpc_tools import protoc

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "proto"
GENERATED: Final = ROOT / "src" / "angarium" / "proto"
KINDS: Final = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py")


def main(arguments: list[str]) -> int:
    """Write the generated modules, or with --check only compare; return the exit status."""
    wanted = generated()
    if "--check" in arguments:
        stale = stale_modules(wanted)
        for name in stale:
            print(f"{name} is not what proto/ says: run `make proto`")
        return 1 if stale else 0
    for name, text in wanted.items():
        path = GENERATED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in stale_modules(wanted):  # what no source stands for any more
        (GENERATED / name).unlink()
    return 0


def generated() -> dict[str, str]:
    """Return what protoc makes of the sources: path below `angarium/proto`, and text."""
    # Those of proto/compat are for clients of earlier brokers: all of one package, none ours.
    own = (SOURCES / "angarium").rglob("*.proto")
    sources = sorted(str(path.relative_to(SOURCES)) for path in own)
    with tempfile.TemporaryDirectory() as folder:
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={SOURCES}",
                f"--proto_path={files('grpc_tools') / '_proto'}",
                f"--python_out={folder}",
                f"--pyi_out={folder}",
                f"--grpc_python_out={folder}",
                *sources,
            ]
        )
        if status != 0:
            raise SystemExit("protoc refused the sources; its words are above")
        made = Path(folder) / "angarium"
        return {
            str(path.relative_to(made)): _in_our_room(path.read_text(encoding="utf-8"))
            for kind in KINDS
            for path in sorted(made.rglob(kind))
        }


def stale_modules(wanted: dict[str, str]) -> list[str]:
    """Return the modules that are missing, different, or no longer stood for by a source."""
    there = {str(path.relative_to(GENERATED)) for kind in KINDS for path in GENERATED.rglob(kind)}
    return sorted(
        name
        for name in there | wanted.keys()
        if name not in there
        or name not in wanted
        or (GENERATED / name).read_text(encoding="utf-8") != wanted[name]
    )


def _in_our_room(text: str) -> str:
    return text.replace("from angarium.v1 import ", "from angarium.proto.v1 import ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
