"""The lanes of one topic, and which of them a record takes.

Of a homed topic a client writes to the partitions of its region. If that region has lost them, the
lanes of another one stand in, or what waits is refused, as the topic says. A batch of which nobody
knows whether it is stored is never sent elsewhere: its lane repeats it where it was sent, or says
that its outcome is unknown. Records of a key that come while earlier ones of it wait to be sent
elsewhere join those, so that they are not overtaken.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from angarium.api.homes import home_lost
from angarium.client.publishing.lane import Lane
from angarium.client.publishing.numbers import Numbers
from angarium.client.publishing.turning import come_to_rest, deal_anew
from angarium.errors import AngariumError, NotFound, no_partition
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import TopicInfo
    from angarium.api.layout import Layout
    from angarium.client.publishing.outgoing import Outgoing
    from angarium.client.publishing.sending import Sending
    from angarium.errors import HomeLost
    from angarium.ids import Buffer

AGAIN_S: Final = 0.05
"""How soon it is asked again whether a layout is in force."""


class TopicLanes:
    """Lanes by partition, made when they are first needed."""

    def __init__(self, sending: Sending, info: TopicInfo, *, may_share: bool) -> None:
        """Begin without lanes; `may_share`: nothing was published to this topic before."""
        self._sending = sending
        self._may_share = may_share
        # At random: programs that publish one record each would all meet in one partition.
        self._turn = random.randrange(max(1, len(info.partitions)))
        self._slots: dict[int, int] = {}
        """By partition: which one of the layout's it is, or was when it stood in for one."""
        self._stored: dict[int, Lane] = {}
        self._passing: dict[int, Lane] = {}
        self._is_turning = False
        self._left: Layout | None = None
        """Where records went before, by the same layout: to another region."""
        self._note(info)
        self.layout = self._newest_known()
        self._follow(self.layout)

    def learn(self, info: TopicInfo) -> None:
        """Take over a newer description of the same topic."""
        self._note(info)
        layout = self._newest_known()
        if layout.number > self.layout.number:
            self._turn_soon()
        elif layout.number == self.layout.number:
            self._follow(layout)

    def _note(self, info: TopicInfo) -> None:
        self.info = info
        self.partitions = len(info.partitions)
        """How many partitions the topic has, as far as is known."""

    def _newest_known(self) -> Layout:
        """Return where this client would write to, as far as is known."""
        return self._sending.routes.layout(self.info)

    def _lay_out(self) -> None:
        """Look again which regions can be written to, by the layout that is followed."""
        layout = self._newest_known()
        if layout.number == self.layout.number:
            self._follow(layout)

    def _follow(self, layout: Layout) -> None:
        if (layout.number, layout.count) != (self.layout.number, self.layout.count):
            self._left = None
        elif layout.region != self.layout.region:
            self._left = self.layout
        self.layout = layout
        lost = self._sending.routes.lost_regions(self.info.name)
        self.is_away = bool(lost)
        """Whether this client may write to another region than its own, or be refused."""
        self.refusal: HomeLost | None = None
        if layout.region in lost and self.info.config.home_lost == "refuse":
            self.refusal = home_lost(self.info.name, layout.region)
        for slot, number in enumerate(layout.partitions):
            self._slots.setdefault(number, slot)
        self._keyless = self.layout.in_turn(self._turn)

    def named(self, layout: int | None, mode: DeliveryMode) -> int | None:
        """Return the layout that a publish names: what is stored nowhere follows none."""
        return None if mode is DeliveryMode.PERFORMANCE else layout

    @property
    def lanes(self) -> list[Lane]:
        """All lanes there are."""
        return [*self._stored.values(), *self._passing.values()]

    def lane(self, partition: int, mode: DeliveryMode) -> Lane:
        """Return the lane of a partition.

        PERFORMANCE records are stored nowhere and so are never numbered.
        """
        is_passing = mode is DeliveryMode.PERFORMANCE
        lanes = self._lanes(mode)
        lane = lanes.get(partition)
        if lane is None:
            to = (self._sending, self.info.name, partition)
            is_numbered = self._sending.settings.idempotent and not is_passing
            numbers = Numbers(*to, is_numbered=is_numbered, may_share=self._may_share)
            lane = lanes[partition] = Lane(
                *to,
                numbers,
                bytes_max=self.info.config.batch_bytes_max,
                on_outdated=self._turn_soon,
                stand_in=lambda: self._stand_in(partition, mode),
            )
            lane.is_frozen = self._is_turning and not is_passing
        return lane

    def _stand_in(self, partition: int, mode: DeliveryMode) -> Lane | HomeLost | None:
        """Return what becomes of what waits for a partition that cannot be written to.

        None: it waits on. That may change from one moment to the next.
        """
        info = self._sending.routes.topics.get(self.info.name)
        if info is not None and info is not self.info and info.id == self.info.id:
            self.learn(info)
        if not self._sending.routes.is_doubtful(self.info.name):
            return None
        self._sending.refresh_soon(self.info.name)
        self._lay_out()
        slot = self._slots.get(partition)
        if slot is None:
            return None  # nobody but who named it writes to it
        if self.refusal is not None:
            return self.refusal if partition in self.layout.partitions else None
        number = self.layout.partitions[slot % len(self.layout.partitions)]
        return None if number == partition else self.lane(number, mode)

    # --- from one layout to the next -------------------------------------------------------------

    def _turn_soon(self) -> None:
        """Follow another layout, as soon as nothing is on its way that was dealt by this one."""
        if self._is_turning:
            return
        if all(lane.is_idle for lane in self._stored.values()):
            layout = self._newest_known()
            if layout.number > self.layout.number:
                self._follow(layout)
            return
        self._is_turning = True
        for lane in self._stored.values():
            lane.is_frozen = True
        self._sending.start(self._turn_over())

    async def _turn_over(self) -> None:
        try:
            await come_to_rest(lambda: list(self._stored.values()))
            layout = await self._newest()
            # From here on without a pause: nothing may be added in between.
            self._follow(layout)
            deal_anew(
                self._sending,
                list(self._stored.values()),
                lambda key, pack: self.lane(self.layout.of_key(key), pack.mode),
                layout.number,
            )
        finally:
            self._is_turning = False
            for lane in self._stored.values():
                lane.thaw()

    async def _newest(self) -> Layout:
        """Return the layout in force; while another one is about to be, wait for it.

        Of a topic that is gone there is none to come: whoever waits is told when it is sent again.
        """
        while True:
            try:
                info = await self._sending.metadata.refresh(self.info.name)
                if info.id != self.info.id:
                    return self.layout
                self._note(info)
            except NotFound:
                return self.layout
            except AngariumError:
                pass  # nobody could be asked just now
            layout = self._newest_known()
            for lane in self._stored.values():
                lane.expire()
            if layout.number > self.layout.number:
                return layout
            await asyncio.sleep(AGAIN_S)
            # Who refused may have heard less than who answered: then it is sent there again.
            if len(self.info.layouts) <= self.layout.number + 1:
                return self.layout

    def lane_for(self, key: Buffer | None, *, partition: int | None, mode: DeliveryMode) -> Lane:
        """Return the lane of one record: the partition asked for, the key's, or the next one."""
        if partition is not None:
            self.check(partition)
            return self.lane(partition, mode)
        if self.is_away:
            # Home again as soon as somebody leads there.
            self._sending.refresh_soon(self.info.name)
            if key is not None and self._left is not None:
                earlier = self._lanes(mode).get(self._left.of_key(key))
                if earlier is not None and earlier.holds_back:
                    return earlier
        if key is not None:
            return self.lane(self.layout.of_key(key), mode)
        # Records without a key stay together: the turn goes on when a batch has left.
        lane = self.lane(self._keyless, mode)
        return lane if lane.is_gathering else self.next_lane(mode)

    def lane_of_keys(self, partition: int, mode: DeliveryMode) -> Lane:
        """Return the lane of records that their keys send to one partition of the layout."""
        if self.is_away and self._left is not None:
            # Of one that stands in for several others nobody knows here for which: at once, then.
            slots = [at for at, one in enumerate(self.layout.keyed) if one == partition]
            only = self._left.keyed[slots[0]] if len(slots) == 1 else partition
            earlier = self._lanes(mode).get(only)
            if earlier is not None and earlier.holds_back:
                return earlier
        return self.lane(partition, mode)

    def _lanes(self, mode: DeliveryMode) -> dict[int, Lane]:
        return self._passing if mode is DeliveryMode.PERFORMANCE else self._stored

    def pins(self, record: Outgoing) -> bool:
        """Tell whether a record belongs to its partition, whatever becomes of its region."""
        is_keyed = record.key is not None and self.layout.pins_keys
        return is_keyed or record.partition is not None

    def next_lane(self, mode: DeliveryMode) -> Lane:
        """Return the lane whose turn it is."""
        self._turn += 1
        self._keyless = self.layout.in_turn(self._turn)
        return self.lane(self._keyless, mode)

    def may_have(self, partition: int | None) -> bool:
        """Tell whether that partition is known; if not, the topic may have grown since."""
        return partition is None or partition < self.partitions

    def check(self, partition: int) -> None:
        """Raise unless the topic has this partition."""
        if not 0 <= partition < self.partitions:
            raise no_partition(self.info.name, self.partitions, partition)
