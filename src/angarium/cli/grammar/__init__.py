"""What can be written behind `angarium`, word by word.

Nothing here imports another room: the whole grammar is there in milliseconds. A command names the
function that does it as "module:function" inside `angarium.cli.commands`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import angarium
from angarium.cli.grammar import (
    audit,
    backup,
    bench,
    cluster,
    completion,
    discover,
    dlq,
    fetch,
    gateway,
    grant,
    group,
    log,
    pipeline,
    profile,
    pub,
    quota,
    role,
    run,
    serve,
    sql,
    sub,
    tls,
    token,
    topic,
    topology,
    up,
    user,
    whoami,
)
from angarium.cli.grammar.words import Parser, Words, add_connection_options

if TYPE_CHECKING:
    from typing import Final

_DESCRIPTION = """\
Angarium: a replicated message broker whose topics are Spark tables.

A first look:  angarium up                        a local cluster of three nodes
               angarium pub demo hello            publish a record
               angarium sub demo --from earliest  read what is there, and what comes"""

_EPILOG = """\
`angarium COMMAND --help` says more. Options can also be set in the environment (ANGARIUM_SERVERS,
ANGARIUM_PROFILE, ANGARIUM_FORMAT) and in profiles (~/.config/angarium/profiles.toml)."""

_ORDER: Final = (
    up,
    serve,
    gateway,
    topic,
    pub,
    sub,
    fetch,
    group,
    dlq,
    run,
    sql,
    pipeline,
    cluster,
    topology,
    backup,
    discover,
    bench,
    log,
    user,
    role,
    grant,
    token,
    quota,
    whoami,
    audit,
    tls,
    profile,
    completion,
)


def grammar() -> argparse.ArgumentParser:
    """Return the whole parser."""
    parser = Parser(
        prog="angarium",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"angarium {angarium.__version__}")
    add_connection_options(parser)
    words = Words.below(parser)
    for module in _ORDER:
        module.add(words)
    return parser
