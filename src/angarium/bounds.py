"""Bounds: what every set of limits is, and what several of them say alike."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

CONNECTIONS_MAX: Final = 4_096
"""Clients connected through one door at a time, unless a node is set otherwise."""

REQUEST_BYTES_MAX: Final = (4 << 20) + (64 << 10)
"""The largest request of a client, unless a node is set otherwise: a batch of a topic's default
limit and its envelope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of something: each is above 0."""

    def __post_init__(self) -> None:
        for one in fields(self):
            assert getattr(self, one.name) > 0, f"{one.name} is a bound, so it is above 0"
