"""The service, counting what goes through it. A batch costs a few additions, a record nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.service.broker import Service
from angarium.telemetry.metering import (
    CountedConsumption,
    CountedSubscription,
    count_published,
    count_settled,
)
from angarium.telemetry.meters import Meters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import (
        Ack,
        ConsumeRequest,
        Consumption,
        Interest,
        PublishRequest,
        Settled,
        Settlement,
        Subscription,
    )
    from angarium.node.node import Node
    from angarium.service.publishing import Answer


class MeteredService(Service):
    """Implements `api.Broker` and `api.GroupBroker` on a node, and counts.

    A publish is counted by the node that a client sent it to and, if that passed it on, also by the
    one that leads the partition: what each had to do with it.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.meters = Meters()
        self.transactions.count = self.meters.decided

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Publish, and count."""
        try:
            acks = await super().publish(request)
        except AngariumError:
            self.meters.failed(request.topic)
            raise
        count_published(self.meters, request, acks)
        return acks

    def begin_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Publish without a task, and count."""

        def counted(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                self.meters.failed(request.topic)
            else:
                count_published(self.meters, request, outcome)
            answer(outcome)

        return super().begin_publish(request, counted)

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Subscribe, and count."""
        topics = {one.topic for one in interests}
        return CountedSubscription(await super().subscribe(interests), self.meters, topics)

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group, and count."""
        consumption = await super().consume(request)
        return CountedConsumption(consumption, self.meters, set(request.topics))

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        """Settle for a member, and count."""
        settled = await super().settle(group, member, settlements)
        count_settled(self.meters, settlements, settled)
        return settled
