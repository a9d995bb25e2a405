"""What a publisher is told: about a record, and about records that turned out to be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.api import Ack
from angarium.client.times import moment
from angarium.ids import Micros, Offset

if TYPE_CHECKING:
    from datetime import datetime

    from angarium.modes import DeliveryMode


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The acknowledgement of one record: that of its batch, and its number in it."""

    ack: Ack
    position: int

    @property
    def offset(self) -> Offset | None:
        """Where the record is; None in PERFORMANCE mode, which stores nothing, and for a duplicate
        so old that its offset is no longer remembered."""
        base = self.ack.base_offset
        return None if base is None else Offset(base + self.position)

    @property
    def topic(self) -> str:
        """The topic published to."""
        return self.ack.topic

    @property
    def partition(self) -> int:
        """The partition the record went to."""
        return self.ack.partition

    @property
    def mode(self) -> DeliveryMode:
        """What this acknowledgement means."""
        return self.ack.mode

    @property
    def append_time(self) -> Micros | None:
        """When the leader appended it."""
        return self.ack.append_time

    @property
    def append_datetime(self) -> datetime | None:
        """The same as a datetime, in UTC."""
        return moment(self.append_time or 0)

    @property
    def is_provisional(self) -> bool:
        """Whether the offset holds only as long as this leader's log does (EVENTUAL)."""
        return self.ack.provisional


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Records acknowledged in EVENTUAL mode whose leader was lost before others had them."""

    topic: str
    partition: int
    records: int
    first_offset: Offset
    """The provisional offset of the first one; somebody else's record may be there now."""
