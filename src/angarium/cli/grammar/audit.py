"""`angarium audit list | verify`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from angarium.cli.grammar.quantities import From, start
from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_LIST = """\
    angarium audit list --since 1h
    angarium audit list --who alice --denied
    angarium audit list --what 'user.*' --since 2026-11-01
    angarium audit list --follow --format json

Who reads them needs audit.read. json prints an object per line, with offset and hash."""

_VERIFY = """\
    angarium audit verify --write-anchor /mnt/elsewhere/audit.json
    angarium audit verify --anchor /mnt/elsewhere/audit.json
    angarium sub angarium.audit --from earliest --no-follow --format json > audit.lines
    angarium audit verify --file audit.lines

Says which record was removed, changed or moved, and ends with 8 if one was. What no other record
vouches for yet, the newest one or so, can be taken away without a trace, and who can write every
record anew can forge them all: keep an anchor elsewhere. docs/reference/audit.md has the rule."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("audit", "read and check who did what")

    listing = family.add("list", "show audit records", run="audit:list_some", more=_LIST)
    listing.add_argument("--who", metavar="NAME", help="only of this principal")
    listing.add_argument(
        "--what",
        metavar="PATTERN",
        help="only this method, action or event: create_topic, user.*, denial",
    )
    listing.add_argument("--resource", metavar="PATTERN", help="only on this: orders, team-a.*")
    listing.add_argument("--denied", action="store_true", help="only what was not allowed")
    listing.add_argument(
        "--since",
        type=since,
        default=From("earliest"),
        metavar="TIME",
        help="from this time on, or an age such as 2h (default: all that is kept)",
    )
    listing.add_argument("--max", type=positive, metavar="N", help="stop after N records")
    listing.add_argument("--follow", action="store_true", help="wait for more")

    verify = family.add(
        "verify", "check that no record was altered", run="audit:verify", more=_VERIFY
    )
    verify.add_argument("--anchor", metavar="FILE", help="hold the records against what this kept")
    verify.add_argument(
        "--write-anchor", metavar="FILE", help="keep the newest hash here, if all is sound"
    )
    verify.add_argument(
        "--file", metavar="FILE", help="check records that `angarium sub --format json` wrote"
    )
    verify.add_argument(
        "--topic", metavar="TOPIC", help="check a copy of them (default: angarium.audit)"
    )


def since(text: str) -> From:
    """Read a time, or how long ago: 2h and -2h are the same."""
    try:
        return start(f"-{text}")
    except argparse.ArgumentTypeError:
        found = start(text)
    if found.at != "timestamp":
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time; write one such as 2026-11-03T12:00Z, or an age such as 2h"
        )
    return found
