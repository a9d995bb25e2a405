"""A word that only leads to others, written alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace


def family(options: Namespace) -> int:
    """Show which words may follow."""
    options.family.print_help()
    return 0
