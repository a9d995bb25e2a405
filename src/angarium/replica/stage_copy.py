"""Copying the open stages of a partition from a peer, part by part.

A stage has the same number on every replica, its number is never used again, and its parts come in
the order of the log. So what is copied goes straight to the stages that are here: whatever was here
already is not asked for, and what the log brings by itself meanwhile is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.log.stages import StageStore
    from angarium.replica.peers import PartReply

PART_BYTES_MAX: Final = 64 << 20
"""No part is larger, because an entry brought it. A larger one is refused."""


class StageCopy:
    """What is still missing of the stages that a snapshot lists."""

    __slots__ = ("_piece", "_piece_of", "_stages", "_wanted")

    def __init__(self, stages: StageStore, wanted: Mapping[int, int]) -> None:
        """Copy into `stages` until each slot has as many parts as `wanted` says."""
        self._stages = stages
        self._wanted = wanted
        self._piece = bytearray()
        """The beginning of the part that is missing first, which is this part of this slot:"""
        self._piece_of = (0, 0)

    def missing(self) -> tuple[int, int, int] | None:
        """Return slot, part and position to ask for next; None when everything is here."""
        for slot, parts in self._wanted.items():
            there = self._stages.parts(slot)
            if there < parts:
                if self._piece_of != (slot, there):
                    self._piece_of, self._piece = (slot, there), bytearray()
                return slot, there, len(self._piece)
        return None

    def take(self, reply: PartReply) -> bool:
        """Take bytes, if they are those that are missing first; tell whether they were."""
        wanted = self.missing()
        size = len(self._piece) + len(reply.data)
        if (
            (reply.slot, reply.part, reply.position) != wanted
            # A part may be empty, when it holds nothing but acknowledgements.
            or (reply.size and not reply.data)
            or not size <= reply.size <= PART_BYTES_MAX
        ):
            return False
        self._piece += reply.data
        if size == reply.size:
            whole, self._piece = bytes(self._piece), bytearray()
            # Compared as a whole: the leader's checksum is over the part as it was staged.
            if crc32c(whole) != reply.crc:
                return False  # asked for again from its beginning
            self._stages.append(reply.slot, reply.part, whole)
        return True
