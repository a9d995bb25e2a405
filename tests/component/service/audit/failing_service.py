"""A real service whose publishes can be made to fail: before they happen, after, or for good."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from angarium.errors import NotLeader, OutcomeUnknown

if TYPE_CHECKING:
    from angarium.api import Ack, PublishRequest
    from angarium.service.broker import Service


class FailingService:
    """Passes everything on; each of `faults` is what becomes of one publish."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.faults: deque[str] = deque()
        """`before`: refused; `after`: stored, and the answer is lost; `hang`: no answer at all;
        `forgotten`: the partition does not know the producer any more."""
        self.is_down = False
        self.batches: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        self.batches.append(bytes(request.batches[0]))
        fault = self.faults.popleft() if self.faults else ""
        if self.is_down or fault == "before":
            raise NotLeader("an election")
        if fault == "hang":
            await asyncio.Event().wait()
        acks = await self._service.publish(request)
        if fault == "after":
            raise OutcomeUnknown("the connection ended")
        if fault == "forgotten":
            return (replace(acks[0], code="UNKNOWN_PRODUCER", message="forgotten"),)
        return acks
