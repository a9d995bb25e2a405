"""Where the call comes from that is being served: by which door, from which host.

A broker is shared by everybody who is the same principal, whatever connection they come by, so it
cannot know. The doors set this for each call, where somebody wants to know it; whatever a call
starts inherits it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, NamedTuple


class Origin(NamedTuple):
    """A door, and the host on the other side."""

    door: str = ""
    address: str = ""


NOWHERE: Final = Origin()
"""Of what the node does by itself."""

ORIGIN: Final[ContextVar[Origin]] = ContextVar("angarium_origin", default=NOWHERE)
