"""Open files and connections: as many as the system lets a process have.

Most systems begin with 1,024 and let a process ask for more. Connections and files of the log share
them, so without asking a crowd of connections would keep a node from its own files.
"""

from __future__ import annotations

import resource
from typing import Final

WANTED: Final = 65_536
"""Far above every bound on connections, and not so much that tables of that size would matter."""


def allow_descriptors(wanted: int = WANTED) -> int:
    """Let this process have `wanted` descriptors, or as many as it may; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft >= allowed:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
