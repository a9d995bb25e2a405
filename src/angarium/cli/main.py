"""The `angarium` command. It answers for itself; the node and its tools join it with the cluster.

Nothing is imported before it is needed, so that `angarium --help` stays instant on a base install.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import angarium

if TYPE_CHECKING:
    from collections.abc import Sequence

_DESCRIPTION = "Angarium: a replicated message broker whose topics are Spark tables."

_STATUS = """\
What exists: the heart, as a library (angarium.batch, .log, .raft, .machine, .replica) and the
simulator that tries to break it (angarium.testing). What comes next: the node and its commands.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; a usage error leaves with status 2."""
    parser = _parser()
    parser.parse_args(arguments)
    parser.print_help()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="angarium",
        description=_DESCRIPTION,
        epilog=_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"angarium {angarium.__version__}")
    return parser
