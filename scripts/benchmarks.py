"""Run the benchmarks of `benchmarks/micro`, one after the other, each in a process of its own.

    python scripts/benchmarks.py [NAME ...]

A NAME picks the benchmarks whose file name contains it. One after the other, because two at once
would measure each other. `rounds` takes minutes and writes a page: it runs only when it is named.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
ONLY_WHEN_NAMED: Final = ("rounds",)


def main(wanted: list[str]) -> int:
    """Run what `wanted` picks, or everything; return the exit status."""
    there = sorted(
        f"micro.{path.stem}" for path in (ROOT / "benchmarks" / "micro").glob("[a-z]*.py")
    )
    chosen = [name for name in there if not wanted or any(part in name for part in wanted)]
    chosen += [name for name in ONLY_WHEN_NAMED if name in wanted]
    if not chosen:
        names = ", ".join([*there, *ONLY_WHEN_NAMED])
        print(f"no benchmark is called {' or '.join(wanted)}; there are: {names}")
        return 2
    failed = []
    for name in chosen:
        print(f"\n== {name}", flush=True)
        started = time.monotonic()
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:  # noqa: S603  (ours)
            failed.append(name)
        print(f"== {name}: {time.monotonic() - started:.1f} s", flush=True)
    if failed:
        print(f"\nFAILED: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
