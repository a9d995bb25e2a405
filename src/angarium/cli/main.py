"""The `angarium` command: reads what was written, does it, and says in a sentence what went wrong.

Nothing is imported before it is needed, so that `angarium --help` stays instant on a base install.
Ctrl-C and a reader that has seen enough (`angarium sub demo | head`) end it quietly.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from angarium.cli.grammar import grammar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
"""What a shell reports for a program that SIGINT or SIGPIPE ended."""

TRACEBACK_VARIABLE: Final = "ANGARIUM_TRACEBACK"
"""If set, errors are shown with their traceback: for those who mend this program."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; a usage error leaves with status 2."""
    parser = grammar()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    # A node runs for months, and its memory starts with what is left from here: the words of every
    # command are a megabyte.
    del parser
    gc.collect()
    try:
        status = command(options.run)(options)
        # A reader that went away shows when the last bytes are written: here, not at exit.
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # What is left in the buffer would be complained about at exit; it goes nowhere instead.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if TRACEBACK_VARIABLE in os.environ:
            raise
        return _complaint(error)
    return status


def command(name: str) -> Callable[[Any], int]:
    """Return the function that `name` ("module:function" in `angarium.cli.commands`) stands for."""
    module, _, function = name.partition(":")
    found: Callable[[Any], int] = getattr(
        importlib.import_module(f"angarium.cli.commands.{module}"), function
    )
    return found


def _complaint(error: Exception) -> int:
    complaints = importlib.import_module("angarium.cli.complaints")
    print(complaints.sentence(error), file=sys.stderr)
    status: int = complaints.exit_status(error)
    return status
