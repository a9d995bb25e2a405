"""A broker that is elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Ack, FetchResult
from angarium.batch import split
from angarium.client.administration import Administration
from angarium.client.contract.consuming import RemoteConsumption
from angarium.client.contract.subscribing import RemoteSubscription
from angarium.client.groups.administration import GroupAdministration
from angarium.wire.operations import (
    FetchAnswer,
    FetchHeader,
    FindOffsetAnswer,
    FindOffsetHeader,
    Operation,
    PublishAnswer,
    PublishHeader,
)
from angarium.wire.operations.transactions import PublishSequencedHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import (
        ConsumeRequest,
        Consumption,
        FetchRequest,
        Interest,
        PublishRequest,
        Start,
        Subscription,
    )
    from angarium.api.transactions import SequencedPublish
    from angarium.client.client import Client
    from angarium.client.reach import Reach
    from angarium.ids import Offset


class RemoteBroker(Administration, GroupAdministration):
    """Implements `api.Broker` and `api.GroupBroker` for a cluster that is reached over the wire.

    Topics, groups and nodes are looked after just as a client does it; records travel in batches.
    """

    def __init__(self, client: Client) -> None:
        """Use the connections of `client`, which stays open as long as the broker is used."""
        self._client = client

    @property
    def _reach(self) -> Reach:
        return self._client._reach

    @property
    def region(self) -> str:
        """Where the client is; empty if it has no region."""
        return self._reach.region.name

    # --- records ----------------------------------------------------------------------------

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Have batches stored by the partition's leader; repeated only if nothing had happened."""
        frame = await self._reach.calls.ask(
            Operation.PUBLISH,
            PublishHeader(
                request.topic,
                request.partition,
                request.mode,
                request.layout,
                self.region if request.region is None else request.region,
            ),
            request.batches,
            partition=(request.topic, request.partition),
            may_repeat=False,
        )
        return frame.read(PublishAnswer).acks

    async def publish_sequenced(self, request: SequencedPublish) -> Ack:
        """Have batches stored unless that sequence, or a higher one, has been."""
        header = PublishSequencedHeader(
            request.producer,
            request.epoch,
            request.sequence,
            request.topic,
            request.partition,
            request.layout,
            request.former,
        )
        frame = await self._reach.calls.ask(
            Operation.PUBLISH_SEQUENCED,
            header,
            request.batches,
            partition=(request.topic, request.partition),
            may_repeat=False,
        )
        return frame.read(Ack)

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches."""
        frame = await self._reach.calls.ask(
            Operation.FETCH,
            FetchHeader.of(request),
            partition=(request.topic, request.partition),
            is_read=not request.fresh,
            wait_s=request.wait_ms / 1_000,
        )
        return frame.read(FetchAnswer).result(tuple(split(frame.payload)))

    async def find_offset(self, topic: str, partition: int, start: Start) -> Offset:
        """Return the offset that `start` stands for."""
        frame = await self._reach.calls.ask(
            Operation.FIND_OFFSET,
            FindOffsetHeader(topic, partition, start),
            partition=(topic, partition),
        )
        return frame.read(FindOffsetAnswer).offset

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Begin to deliver partitions, from one of the nodes; it does not resume by itself."""
        reach = self._reach
        return await RemoteSubscription.begun(
            await reach.routes.any_connection(),
            self,
            interests,
            timeout_s=reach.settings.attempt_timeout_s,
        )

    # --- groups -----------------------------------------------------------------------------

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group, through one of the nodes."""
        connection = await self._reach.routes.any_connection()
        return await RemoteConsumption.begun(connection, request)
