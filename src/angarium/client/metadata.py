"""Keeping the map of the cluster up to date: asked for when needed, once for all who need it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api import ClusterStatus, TopicInfo
from angarium.client.shared import heard, shared
from angarium.errors import InvalidArgument, NotFound
from angarium.wire.operations import Operation, PublishHeader, TopicHeader, TopicsAnswer

if TYPE_CHECKING:
    from angarium.client.calls import Calls
    from angarium.client.pool import Pool
    from angarium.client.routes import Routes


class Metadata:
    """Topics and nodes, as the cluster describes them."""

    def __init__(self, routes: Routes, calls: Calls, pool: Pool) -> None:
        self._routes = routes
        self._calls = calls
        self._pool = pool
        self._asking: dict[str, asyncio.Task[TopicInfo]] = {}

    async def status(self, *, timeout_s: float | None = None) -> ClusterStatus:
        """Ask some node about the cluster, and note where the nodes are."""
        frame = await self._calls.ask(Operation.CLUSTER_STATUS, timeout_s=timeout_s)
        status = frame.read(ClusterStatus)
        self._routes.learn_status(status)
        await self._routes.nearby.region.settle(self._pool, status)
        return status

    async def topics(self) -> tuple[TopicInfo, ...]:
        """Return all topics."""
        answer = (await self._calls.ask(Operation.LIST_TOPICS)).read_large(TopicsAnswer)
        return answer.topics

    async def topic(self, name: str) -> TopicInfo:
        """Return what is known about a topic, asking if nothing is; raises `NotFound`."""
        info = self._routes.topics.get(name)
        return await self.refresh(name) if info is None else info

    async def topic_or_new(self, name: str) -> TopicInfo:
        """Return the same; a topic that is not there is made, if the cluster is set to do so."""
        try:
            return await self.topic(name)
        except NotFound:
            # A cluster may be set to make a topic when somebody first publishes to it. Asking with
            # nothing in hand has it made, before a key has to be dealt to one of its partitions.
            refused: InvalidArgument | None = None
            try:
                await self._calls.ask(Operation.PUBLISH, PublishHeader(name, 0, None))
            except InvalidArgument as error:
                refused = error
        try:
            return await self.refresh(name)
        except NotFound:
            if refused is None:
                raise
            # It was not for the empty hands, then: this cannot be the name of a topic.
            raise refused from None

    async def refresh(self, name: str) -> TopicInfo:
        """Ask about a topic; calls at the same time share one request."""
        asking = self._asking.get(name)
        if asking is None:
            asking = asyncio.get_running_loop().create_task(self._describe(name))
            self._asking[name] = asking
            asking.add_done_callback(lambda done: self._asked(name, done))
        return await shared(asking)

    async def close(self) -> None:
        """Stop asking."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    def _asked(self, name: str, done: asyncio.Task[TopicInfo]) -> None:
        del self._asking[name]
        heard(done)

    async def _describe(self, name: str) -> TopicInfo:
        try:
            frame = await self._calls.ask(Operation.DESCRIBE_TOPIC, TopicHeader(name))
        except NotFound:
            self._routes.forget_topic(name)
            raise
        info = frame.read_large(TopicInfo)
        await self.learn(info)
        return info

    async def learn(self, info: TopicInfo) -> None:
        """Take over a topic's description, and ask where its leaders are if that is not known."""
        self._routes.learn_topic(info)
        leaders = {partition.leader for partition in info.partitions}
        is_known = leaders <= self._routes.nodes.keys() | {None}
        if not is_known or not self._routes.nearby.is_known:
            await self.status()
