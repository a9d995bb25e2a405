"""What can go wrong at a fake node, request by request; planned with `Cluster.plan`.

A fault is told which node got which request. It returns True if nobody else is to answer it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.batch import split
from angarium.modes import DeliveryMode
from angarium.wire.operations import PublishHeader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.component.client.fake_broker import Node

    from angarium.errors import AngariumError
    from angarium.wire import Request

    Fault = Callable[[Node, Request], Awaitable[bool]]


async def drop_before(node: Node, request: Request) -> bool:
    """Lose the connection before anything happened."""
    request.connection._abort()
    return True


async def drop_after(node: Node, request: Request) -> bool:
    """Do what was asked, and lose the connection before the answer."""
    header = request.read(PublishHeader)
    batches = [bytes(one) for one in split(request.payload)]
    topic = node.cluster.topic(header.topic)
    await node.cluster.store(topic, header, batches, header.mode or DeliveryMode.CONSISTENT)
    request.connection._abort()
    return True


async def never_answer(node: Node, request: Request) -> bool:
    """Leave the caller waiting."""
    await asyncio.sleep(3600)
    return True


def refuse(error: AngariumError) -> Fault:
    """Answer with an error."""

    async def fault(node: Node, request: Request) -> bool:
        raise error

    return fault


def delay(seconds: float) -> Fault:
    """Answer late."""

    async def fault(node: Node, request: Request) -> bool:
        await asyncio.sleep(seconds)
        return False

    return fault
