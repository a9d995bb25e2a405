"""The service, counting what goes through it. A batch costs a few additions, a record nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.service.broker import Service
from angarium.telemetry.metering import CountedSubscription, Counting, count_published
from angarium.telemetry.meters import Meters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Ack, PublishRequest, Subscription
    from angarium.service.own_node import ServedNode
    from angarium.service.publishing import Answer


class MeteredService(Counting, Service):
    """Implements `api.Broker` and `api.GroupBroker` on a node, and counts.

    A publish is counted by the node that a client sent it to and, if that passed it on, also by the
    one that leads the partition: what each had to do with it.
    """

    def __init__(self, node: ServedNode) -> None:
        super().__init__(node)
        self.meters = Meters()
        self.transactions.count = self.meters.decided

    async def subscribe_passing(self, topic: str, partitions: Sequence[int]) -> Subscription:
        """Deliver what passes, and count it; its caller is counted elsewhere already."""
        inner = await super().subscribe_passing(topic, partitions)
        return CountedSubscription(inner, self.meters, set())

    def begin_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Publish without a task where nobody else has to be asked, and count; else False."""

        def counted(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                self.meters.failed(request.topic)
            else:
                count_published(self.meters, request, outcome)
            answer(outcome)

        try:
            return self.publishing.begin(request, counted)
        except AngariumError:
            self.meters.failed(request.topic)
            raise
