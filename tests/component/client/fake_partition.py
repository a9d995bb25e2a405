"""A partition of the fake cluster: its log, and who leads it and listens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.memory_log import MemoryLog

from angarium.api import TopicConfig

if TYPE_CHECKING:
    from angarium.wire import Stream


class Partition(MemoryLog):
    """The log of one partition, and who leads it."""

    def __init__(self, leader: int) -> None:
        super().__init__()
        self.leader: int | None = leader
        self.trouble = ""
        """Why nobody leads it, if that will stay so."""
        self.listeners: list[tuple[Stream, int]] = []
        self.fenced = 0
        """The newest layout that has its fence here: what was dealt by an older one is refused."""


@dataclass
class Topic:
    id: int
    name: str
    partitions: list[Partition]
    config: TopicConfig = field(default_factory=TopicConfig)
    layouts: tuple[int, ...] = ()
    layout: int = 0
