"""A broker whose access to records is recorded: where `[audit] record` is `data`.

A call costs a look into a table of what was noted in this window; a record costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from angarium.service.access.permitted import PermittedBroker
from angarium.service.access.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api import (
        Ack,
        ConsumeRequest,
        Consumption,
        FetchRequest,
        FetchResult,
        Interest,
        Producer,
        PublishRequest,
        Subscription,
    )
    from angarium.service.access.rules import Rule
    from angarium.service.groups.consumption import LocalConsumption
    from angarium.service.publishing import Answer


class RecordedBroker(PermittedBroker):
    """The contract for one principal, with every access to records noted."""

    def note_call(self, method: str, rule: Rule, given: Mapping[str, Any]) -> None:
        """Have a call recorded that is about records."""
        self._note_access(method, rule, given)

    def _let_through(self, method: str, given: Mapping[str, Any]) -> None:
        """Ask for a call, and have it recorded; who carries it out asks again, from memory."""
        self.check_call(RULES[method], given, method=method)
        self.note_call(method, RULES[method], given)

    # What `PermittedBroker` writes out by itself.

    def begin_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Publish without a task where nobody else has to be asked; else False."""
        has_begun = super().begin_publish(request, answer)
        if has_begun:  # else `publish` is called
            self.note_call("publish", RULES["publish"], {"request": request})
        return has_begun

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store or hand over batches."""
        self._let_through("publish", {"request": request})
        return await super().publish(request)

    def take_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Do the same for a door that makes its client wait afterwards."""
        has_begun = super().take_publish(request, answer)
        if has_begun:  # else `publish_taken` is called
            self.note_call("publish", RULES["publish"], {"request": request})
        return has_begun

    async def publish_taken(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Publish what was counted, and could not be published without a task."""
        self._let_through("publish", {"request": request})
        return await super().publish_taken(request)

    async def open_producer(self, name: str | None = None) -> Producer:
        """Return a new identity, or with a name the same one in a new epoch."""
        self._let_through("open_producer", {"name": name})
        return await super().open_producer(name)

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches."""
        self._let_through("fetch", {"request": request})
        return await super().fetch(request)

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Begin to deliver partitions."""
        self._let_through("subscribe", {"interests": interests})
        return await super().subscribe(interests)

    async def subscribe_passing(self, topic: str, partitions: Sequence[int]) -> Subscription:
        """Deliver what passes in PERFORMANCE mode, and nothing that is stored."""
        self._let_through("subscribe_passing", {"topic": topic})
        return await super().subscribe_passing(topic, partitions)

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group."""
        self._let_through("consume", {"request": request})
        return await super().consume(request)

    async def begin_consume(self, request: ConsumeRequest) -> LocalConsumption:
        """Take part in a group, for a door that settles without a task for each."""
        self._let_through("consume", {"request": request})
        return await super().begin_consume(request)
