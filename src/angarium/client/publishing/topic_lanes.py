"""The lanes of one topic, and which of them a record takes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from angarium.batch import key_hash
from angarium.client.publishing.lane import Lane
from angarium.client.publishing.numbers import Numbers
from angarium.errors import no_partition
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import TopicInfo
    from angarium.client.publishing.sending import Sending
    from angarium.ids import Buffer


class TopicLanes:
    """Lanes by partition, made when they are first needed."""

    def __init__(self, sending: Sending, info: TopicInfo, *, may_share: bool) -> None:
        """Begin without lanes; `may_share`: nothing was published to this topic before."""
        self._sending = sending
        self._may_share = may_share
        self.learn(info)
        self._stored: dict[int, Lane] = {}
        self._passing: dict[int, Lane] = {}
        # At random: programs that publish one record each would all meet in one partition.
        self._turn = random.randrange(self.partitions)

    def learn(self, info: TopicInfo) -> None:
        """Take over a newer description of the same topic."""
        self.info = info
        self.partitions = len(info.partitions)
        """How many partitions the topic has, as far as is known."""

    @property
    def lanes(self) -> list[Lane]:
        """All lanes there are."""
        return [*self._stored.values(), *self._passing.values()]

    def lane(self, partition: int, mode: DeliveryMode) -> Lane:
        """Return the lane of a partition.

        PERFORMANCE records are stored nowhere and so are never numbered.
        """
        is_passing = mode is DeliveryMode.PERFORMANCE
        lanes = self._passing if is_passing else self._stored
        lane = lanes.get(partition)
        if lane is None:
            to = (self._sending, self.info.name, partition)
            is_numbered = self._sending.settings.idempotent and not is_passing
            numbers = Numbers(*to, is_numbered=is_numbered, may_share=self._may_share)
            lane = lanes[partition] = Lane(*to, numbers, bytes_max=self.info.config.batch_bytes_max)
        return lane

    def lane_for(self, key: Buffer | None, *, partition: int | None, mode: DeliveryMode) -> Lane:
        """Return the lane of one record: the partition asked for, the key's, or the next one."""
        if partition is not None:
            self.check(partition)
            return self.lane(partition, mode)
        if key is not None:
            return self.lane(key_hash(key) % self.partitions, mode)
        # Records without a key stay together: the turn goes on when a batch has left.
        lane = self.lane(self._turn % self.partitions, mode)
        return lane if lane.is_gathering else self.next_lane(mode)

    def next_lane(self, mode: DeliveryMode) -> Lane:
        """Return the lane whose turn it is."""
        self._turn = (self._turn + 1) % self.partitions
        return self.lane(self._turn, mode)

    def may_have(self, partition: int | None) -> bool:
        """Tell whether that partition is known; if not, the topic may have grown since."""
        return partition is None or partition < self.partitions

    def check(self, partition: int) -> None:
        """Raise unless the topic has this partition."""
        if not 0 <= partition < self.partitions:
            raise no_partition(self.info.name, self.partitions, partition)
