"""A broker that asks before each call whether its principal may.

A call costs a look into a set of what was allowed before, which is forgotten when the policy
changes; a record costs nothing. Most methods are made from `rules`; written out here is what is
hot, or hands out something that stays open.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Protocol

from angarium.api.access import Action, ResourceKind
from angarium.errors import NotFound, PermissionDenied
from angarium.service.access.letters import PermittedLetters
from angarium.service.access.rules import RULES, TRANSACTION_RULES
from angarium.service.broker import Service
from angarium.service.transactions.transaction_calls import TransactionCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.api import (
        Ack,
        Broker,
        ConsumeRequest,
        OffsetBroker,
        PassingBroker,
        PublishRequest,
    )
    from angarium.api.access import Decision, Principal
    from angarium.api.transactions import TransactionBroker
    from angarium.service.access.access import Access
    from angarium.service.access.rules import Rule
    from angarium.service.groups.consumption import LocalConsumption
    from angarium.service.publishing import Answer

    class _Contract(Broker, TransactionBroker, OffsetBroker, PassingBroker, Protocol):
        """What the rules make methods for."""

else:
    _Contract = object

ALLOWED_MAX: Final = 4_096
"""Answers that one broker remembers. At the bound it forgets them all and asks again."""

_HIDING: Final = {
    ResourceKind.TOPIC: Action.TOPIC_DESCRIBE,
    ResourceKind.GROUP: Action.GROUP_DESCRIBE,
}
"""Who may not do this to a thing is told that there is no such thing."""

_MAKING: Final = frozenset({Action.TOPIC_CREATE, Action.GROUP_CONSUME})
"""Actions that need nothing to be there: refusing them says nothing about what is."""


class PermittedBroker(_Contract):
    """The contract, for one principal; `Access.broker_for` makes it."""

    def __init__(self, access: Access, principal: Principal) -> None:
        self.principal = principal
        self._access = access
        self._service = access.service
        self._may_publish: set[str] = set()
        self._allowed: set[tuple[Action, ResourceKind, str]] = set()

    # --- asking -------------------------------------------------------------------------------

    def decide(self, action: Action, kind: ResourceKind, name: str) -> Decision:
        """Tell whether the principal may do something, and why."""
        return self._access.decide(self.principal, action, kind, name)

    def may(self, action: Action, kind: ResourceKind, name: str) -> bool:
        """Tell whether the principal may do something."""
        asked = (action, kind, name)
        if asked in self._allowed:
            return True
        if not self.decide(action, kind, name).is_allowed:
            return False
        if len(self._allowed) >= ALLOWED_MAX:
            self.forget()
        self._allowed.add(asked)
        return True

    def check(self, action: Action, kind: ResourceKind, name: str = "") -> None:
        """Raise `PermissionDenied`, or `NotFound` where even to know of it is not allowed."""
        if self.may(action, kind, name):
            return
        hiding = _HIDING.get(kind)
        if hiding is not None and action not in _MAKING and not self.may(hiding, kind, name):
            raise NotFound(f"there is no {kind} {name!r}")
        what = kind if kind is ResourceKind.CLUSTER else f"{kind} {name!r}"
        raise PermissionDenied(f"{self.principal.name!r} may not {action} on {what}")

    def forget(self) -> None:
        """Ask anew from here on: the policy has changed."""
        self._allowed.clear()
        self._may_publish.clear()

    def check_call(self, rule: Rule, given: Mapping[str, Any]) -> None:
        """Ask everything that a call with these arguments needs; raises the first refusal."""
        for asks in rule.asks:
            for name in asks.names(given):
                self.check(asks.action, asks.kind, name)

    # --- publishing ---------------------------------------------------------------------------

    def begin_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Publish without a task where nobody else has to be asked; else False."""
        if request.topic not in self._may_publish:
            self._check_publish(request.topic)
        return self._service.begin_publish(request, answer)

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store or hand over batches."""
        if request.topic not in self._may_publish:
            self._check_publish(request.topic)
        await self._check_making(request.topic)
        return await self._service.publish(request)

    def _check_publish(self, topic: str) -> None:
        self.check(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, topic)
        self._may_publish.add(topic)

    async def _check_making(self, topic: str) -> None:
        """See to it that a publish makes a topic only for who may make one."""
        if not self._service.partition_count(topic) and not self.may(
            Action.TOPIC_CREATE, ResourceKind.TOPIC, topic
        ):
            await self._service.topics.find(topic)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, as an answer to who publishes there."""
        return self._service.partition_count(topic)

    # --- what stays open ----------------------------------------------------------------------

    async def begin_consume(self, request: ConsumeRequest) -> LocalConsumption:
        """Take part in a group, for a door that settles without a task for each."""
        self.check_call(RULES["consume"], {"request": request})
        return await self._service.groups.consume(request)

    def dead_letters(self, topic: str) -> PermittedLetters:
        """Return the records that groups gave up into `topic`, to look at and to send back."""
        return PermittedLetters(self, self._service.dead_letters(topic))


_MAKES_TOPICS: Final = frozenset({"reserve", "stage", "publish_sequenced"})
"""Besides publishing: what makes the topic on first use."""


def _asking(name: str, rule: Rule) -> Callable[..., Any]:
    """Return a method that asks what `rule` says, then has the call carried out."""
    is_transactional = name in TRANSACTION_RULES
    call = getattr(TransactionCalls if is_transactional else Service, name)
    makes_topics = name in _MAKES_TOPICS
    parameters = list(inspect.signature(call).parameters)[1:]

    @wraps(call)
    async def permitted(self: PermittedBroker, *arguments: Any, **named: Any) -> Any:
        given = {**dict(zip(parameters, arguments, strict=False)), **named}
        self.check_call(rule, given)
        if makes_topics:
            await self._check_making(given["topic"] if "topic" in given else given["request"].topic)
        service = self._service
        behind = getattr(service.transactions if is_transactional else service, name)
        found = await behind(*arguments, **named)
        shows = rule.shows
        if shows is None:
            return found
        return tuple(one for one in found if self.may(shows.action, shows.kind, shows.name(one)))

    return permitted


for _name, _rule in RULES.items():
    if _name not in vars(PermittedBroker):
        setattr(PermittedBroker, _name, _asking(_name, _rule))
