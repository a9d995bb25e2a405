"""A process that must not outlive the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2): the signal this process gets when its parent ends."""


def die_with(parent: int) -> bool:
    """Be killed when `parent` ends; False if it already has, or is not our parent.

    SIGKILL, because it also ends a process that is paused or hangs. The data survive it: that is
    what they are made for.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        return False
    # The parent may have ended before the request was made; then nobody would tell us any more.
    return os.getppid() == parent
