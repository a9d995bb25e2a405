"""`angarium profile list`"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from angarium.cli.output import print_json, print_table
from angarium.cli.profiles import choices, read_profiles

if TYPE_CHECKING:
    from argparse import Namespace


def list_all(options: Namespace) -> int:
    """Print the profiles."""
    known = read_profiles(os.environ)
    rows = [
        (
            name,
            name == known.default,
            ",".join(map(str, one.servers)) if one.servers else None,
            one.format,
            one.timeout_s,
        )
        for name, one in known.by_name.items()
    ]
    names = ("name", "default", "servers", "format", "timeout")
    if choices(options).is_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(names, rows, none=f"There are no profiles in {known.path}.")
    return 0
