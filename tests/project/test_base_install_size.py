"""What `pip install angarium` brings stays small enough to be tried out within a minute."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import angarium
import angarium_compat

BASE_MEGABYTES_MAX: Final = 60
"""Everything together, our own modules and compiled ones included. `make run` installs this."""


def needed(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """Collect `name` and whatever it needs without any extra."""
    if name not in found:
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # for another Python than this one
            return found
        for requirement in found[name].requires or ():
            if "extra ==" not in requirement:
                needed(re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower(), found)
    return found


def megabytes(paths: list[Path]) -> float:
    """Return what files hold, as pip counts it; on a disk each takes whole blocks."""
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def test_the_base_install_stays_within_its_limit() -> None:
    found = needed("angarium", {})
    assert {"protobuf", "uvloop"} <= found.keys()
    assert found.keys().isdisjoint({"grpcio", "pyarrow"})
    sizes = {
        name: megabytes([Path(str(one.locate_file(file))) for file in one.files or ()])
        for name, one in found.items()
    }
    # Installed in place, so that its list of files has none of its modules.
    sizes["angarium"] = sum(
        megabytes(list(Path(one.__path__[0]).rglob("*"))) for one in (angarium, angarium_compat)
    )
    assert sum(sizes.values()) < BASE_MEGABYTES_MAX, sizes
