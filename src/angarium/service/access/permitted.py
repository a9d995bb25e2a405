"""A broker that asks before each call whether its principal may.

A call costs a look into a set of what was allowed before, which is forgotten when the policy
changes; a record costs nothing. Most methods are made from `rules`; written out here is what is
hot, or hands out something that stays open.
"""

from __future__ import annotations

import inspect
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from angarium.api import ClusterStatus, NodeInfo
from angarium.api.access import Action, Caller, Principal, Proof, ResourceKind
from angarium.errors import InvalidArgument, NotFound, PermissionDenied, Unauthenticated
from angarium.ids import Index
from angarium.security.permissions import DESCRIBING
from angarium.service.access.letters import PermittedLetters
from angarium.service.access.open_streams import (
    PermittedConsumption,
    PermittedSubscription,
    reading,
)
from angarium.service.access.rules import ACCESS_RULES, RULES, TRANSACTION_RULES
from angarium.service.access.user_calls import UserCalls
from angarium.service.broker import Service
from angarium.service.transactions.transaction_calls import TransactionCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from angarium.api import (
        Ack,
        Broker,
        ConsumeRequest,
        Consumption,
        FetchRequest,
        FetchResult,
        Interest,
        OffsetBroker,
        PassingBroker,
        PublishRequest,
        Subscription,
    )
    from angarium.api.access import AccessBroker, Decision
    from angarium.api.transactions import TransactionBroker
    from angarium.errors import AngariumError
    from angarium.service.access.access import Access
    from angarium.service.access.attending import Question
    from angarium.service.access.rules import Rule
    from angarium.service.groups.consumption import LocalConsumption
    from angarium.service.publishing import Answer

    class _Contract(Broker, TransactionBroker, OffsetBroker, PassingBroker, AccessBroker, Protocol):
        """What the rules make methods for."""

else:
    _Contract = object

ALLOWED_MAX: Final = 4_096
"""Answers that one broker remembers. At the bound it forgets them all and asks again."""

_MAKING: Final = frozenset(
    {Action.TOPIC_CREATE, Action.GROUP_CONSUME, Action.USER_CREATE, Action.ROLE_CREATE}
)
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
        """Raise `PermissionDenied`, or `NotFound` where even to know of it is not allowed.

        `Unauthenticated` if the principal is nobody any more.
        """
        if self.may(action, kind, name):
            return
        absence = self._access.absence_of(self.principal)
        if absence:
            raise Unauthenticated(absence)
        hiding = DESCRIBING.get(kind)
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
                is_free = rule.own and not asks.of_everybody
                if not (is_free and self._is_oneself(asks.kind, name)):
                    self.check(asks.action, asks.kind, name)

    def _is_oneself(self, kind: ResourceKind, name: str) -> bool:
        return (
            kind is ResourceKind.USER
            and name == self.principal.name
            and self.principal.proof in {Proof.PASSWORD, Proof.CERTIFICATE}
            and not self._access.absence_of(self.principal)
        )

    def _check_present(self) -> None:
        """Raise `Unauthenticated` if the principal is nobody any more, where nothing is asked."""
        absence = self._access.absence_of(self.principal) if self._access.is_required else ""
        if absence:
            raise Unauthenticated(absence)

    def attend(
        self, end: Callable[[AngariumError], None], asked: Iterable[Question]
    ) -> Callable[[], None]:
        """Have `end` called once when the principal is nobody any more, or may not do this."""
        return self._access.attend(self.principal, end, asked)

    def _shown(self, rule: Rule, found: Iterable[Any]) -> tuple[Any, ...]:
        """Return of what was found what the principal may know of."""
        shows = rule.shows
        assert shows is not None
        return tuple(
            one
            for one in found
            if (rule.own and self._is_oneself(shows.kind, shows.name(one)))
            or self.may(shows.action, shows.kind, shows.name(one))
        )

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

    # --- reading ------------------------------------------------------------------------------

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches; what came while it waited is shown to who may still see it."""
        self.check(Action.TOPIC_READ, ResourceKind.TOPIC, request.topic)
        result = await self._service.fetch(request)
        if request.wait_ms:
            self.check(Action.TOPIC_READ, ResourceKind.TOPIC, request.topic)
        return result

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Begin to deliver partitions."""
        self.check_call(RULES["subscribe"], {"interests": interests})
        inner = await self._service.subscribe(interests)
        return self._watched(inner, [(one.topic, one.partition) for one in interests])

    async def subscribe_passing(self, topic: str, partitions: Sequence[int]) -> Subscription:
        """Deliver what passes in PERFORMANCE mode, and nothing that is stored."""
        self.check(Action.TOPIC_READ, ResourceKind.TOPIC, topic)
        inner = await self._service.subscribe_passing(topic, partitions)
        return self._watched(inner, [(topic, number) for number in partitions])

    def _watched(self, inner: Subscription, partitions: Sequence[tuple[str, int]]) -> Subscription:
        return PermittedSubscription(inner, self, partitions) if self._access.is_required else inner

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group."""
        self.check_call(RULES["consume"], {"request": request})
        inner = await self._service.consume(request)
        if not self._access.is_required:
            return inner
        return PermittedConsumption(inner, self, _consuming(request))

    async def begin_consume(self, request: ConsumeRequest) -> LocalConsumption:
        """Take part in a group, for a door that settles without a task for each."""
        self.check_call(RULES["consume"], {"request": request})
        consumption = await self._service.groups.consume(request)
        if self._access.is_required:
            consumption.on_closed = self.attend(consumption.break_off, _consuming(request))
        return consumption

    def dead_letters(self, topic: str) -> PermittedLetters:
        """Return the records that groups gave up into `topic`, to look at and to send back."""
        return PermittedLetters(self, self._service.dead_letters(topic))

    # --- the cluster --------------------------------------------------------------------------

    async def cluster_status(self) -> ClusterStatus:
        """Return the cluster; to who may not see how it does, only where its nodes are.

        Without that no client would find the leaders of the topics that it may use.
        """
        status = await self._service.cluster_status()
        if self.may(Action.CLUSTER_DESCRIBE, ResourceKind.CLUSTER, ""):
            return status
        self._check_present()
        return ClusterStatus(
            cluster_id=status.cluster_id,
            node=status.node,
            catalog_leader=None,
            catalog_index=Index(0),
            nodes=tuple(
                NodeInfo(id=one.id, addresses=one.addresses, alive=one.alive)
                for one in status.nodes
            ),
            topics=0,
            partitions=0,
            feature_level=status.feature_level,
            version=status.version,
        )

    # --- who asks -----------------------------------------------------------------------------

    async def whoami(self) -> Caller:
        """Return who asks."""
        self._check_present()
        roles = self._access.permissions.roles_of(self.principal)
        authentication = "required" if self._access.is_required else "off"
        return Caller(principal=self.principal, roles=roles, authentication=authentication)

    async def can(self, user: str, action: str, *, kind: ResourceKind, name: str = "") -> Decision:
        """Tell whether a user may do something, and why."""
        self.check_call(RULES["can"], {"user": user})
        if action not in set(Action):
            raise InvalidArgument(f"{action!r} is no action; docs/reference/permissions.md has all")
        asked = Principal(name=user, proof=Proof.PASSWORD)
        return self._access.permissions.decide(asked, action, kind, name)


def _consuming(request: ConsumeRequest) -> list[Question]:
    """Return what a member has to be allowed as long as it takes part."""
    group = (Action.GROUP_CONSUME, ResourceKind.GROUP, request.group)
    return [group, *reading(request.topics)]


_MAKES_TOPICS: Final = frozenset({"reserve", "stage", "publish_sequenced"})
"""Besides publishing: what makes the topic on first use."""


def _behind(name: str) -> tuple[type, str]:
    """Return which class carries out a method, and where an `Access` has it."""
    if name in ACCESS_RULES:
        return UserCalls, "calls"
    if name in TRANSACTION_RULES:
        return TransactionCalls, "service.transactions"
    return Service, "service"


def _asking(name: str, rule: Rule) -> Callable[..., Any]:
    """Return a method that asks what `rule` says, then has the call carried out."""
    kind, where = _behind(name)
    find = attrgetter(f"{where}.{name}")
    call = getattr(kind, name)
    makes_topics = name in _MAKES_TOPICS
    parameters = list(inspect.signature(call).parameters)[1:]

    @wraps(call)
    async def permitted(self: PermittedBroker, *arguments: Any, **named: Any) -> Any:
        given = {**dict(zip(parameters, arguments, strict=False)), **named}
        self.check_call(rule, given)
        if makes_topics:
            await self._check_making(given["topic"] if "topic" in given else given["request"].topic)
        found = await find(self._access)(*arguments, **named)
        return found if rule.shows is None else self._shown(rule, found)

    return permitted


for _name, _rule in RULES.items():
    if _name not in vars(PermittedBroker):
        setattr(PermittedBroker, _name, _asking(_name, _rule))
