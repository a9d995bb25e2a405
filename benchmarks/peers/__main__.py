"""Angarium and the brokers people would pick instead, side by side, in one run.

    python -m benchmarks.peers [--quick] [--peers nats,redis,...] [--only KEY,...] [--format json]

Three nodes each, files on the same disk, 100-byte records, one partition. What an acknowledgement
means differs and is told with every figure: Angarium's CONSISTENT is fsynced by a majority. What a
peer acknowledged is read back and compared by id, as it is with us.

Clients are in the extra `peers`; a peer whose server is not installed is skipped with the line that
installs it.
"""

from __future__ import annotations

import argparse
import platform
import sys
import sysconfig
from typing import TYPE_CHECKING

import msgspec
import uvloop
from benchmarks.peers.known import KNOWN
from benchmarks.peers.rounds import KEYS, Rounds

if TYPE_CHECKING:
    from collections.abc import Container


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="within a minute, without loaded_mb, beside NATS unless --peers names others",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--only", default="", metavar="KEY,...", help=", ".join(KEYS))
    parser.add_argument("--peers", default="", metavar="NAME,...", help=", ".join(KNOWN))
    options = parser.parse_args()
    only, peers = _named(parser, options.only, KEYS), _named(parser, options.peers, KNOWN)
    if not peers:
        peers = ["nats"] if options.quick else list(KNOWN)
    rounds = Rounds(is_quick=options.quick, peers=peers, only=set(only))
    print(f"{'figure':28}{'ours':>16}{'other':>16}{'ratio':>10}", file=sys.stderr)
    uvloop.run(rounds.run())
    if options.format == "json":
        told: dict[str, object] = {key: one.as_json() for key, one in rounds.figures.items()}
        told["about"] = {"python": _python(), "peers": rounds.about}
        print(msgspec.json.format(msgspec.json.encode(told)).decode())
    if rounds.failed:
        raise SystemExit(f"not everything was measured beside {', '.join(rounds.failed)}")


def _named(parser: argparse.ArgumentParser, given: str, known: Container[str]) -> list[str]:
    names = [name for name in given.split(",") if name]
    strange = [name for name in names if name not in known]
    if strange:
        parser.error(f"there is no {', '.join(strange)}")
    return names


def _python() -> str:
    """Say which Python it was: one built with profile-guided optimisation is a sixth cheaper."""
    if sys.base_prefix == "/usr":  # Debian optimises without telling `configure`
        return f"the distribution's CPython {platform.python_version()}"
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    built = "with" if "--enable-optimizations" in arguments else "without"
    return f"CPython {platform.python_version()} built {built} profile-guided optimisation"


if __name__ == "__main__":
    main()
