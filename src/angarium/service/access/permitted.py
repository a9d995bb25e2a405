"""A broker that asks before each call whether its principal may.

A call costs a look into a set of what was allowed before, which is forgotten when the policy
changes; a record costs nothing. Most methods are made from `rules`; written out here is what is
hot, or hands out something that stays open.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager, nullcontext
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from angarium.api import ClusterStatus, NodeInfo, Producer, PublishRequest
from angarium.api.access import Action, Caller, Decision, Principal, Proof, ResourceKind
from angarium.api.audit import AuditEvent
from angarium.api.quotas import QuotaKind
from angarium.errors import (
    InvalidArgument,
    NotFound,
    PermissionDenied,
    TopicQuotaExceeded,
    Unauthenticated,
    UnknownProducer,
)
from angarium.ids import Index
from angarium.modes import DeliveryMode
from angarium.node.release import QUOTA_LEVEL
from angarium.security.permissions import DESCRIBING
from angarium.security.principals import shown
from angarium.service.access.charging import Charge
from angarium.service.access.join_tokens import JoinTokenCalls
from angarium.service.access.letters import PermittedLetters
from angarium.service.access.open_streams import (
    PermittedConsumption,
    PermittedSubscription,
    reading,
    while_permitted,
)
from angarium.service.access.producers import OwnProducers
from angarium.service.access.quota_calls import QuotaCalls
from angarium.service.access.rules import (
    ACCESS_RULES,
    ALWAYS_NOTED,
    BACKUP_RULES,
    BALANCE_RULES,
    JOIN_TOKEN_RULES,
    QUOTA_RULES,
    RECOVERY_RULES,
    RULES,
    TRANSACTION_RULES,
    UPGRADE_RULES,
    recorded,
)
from angarium.service.access.user_calls import UserCalls
from angarium.service.backups import BackupCalls
from angarium.service.balancing import Balancing
from angarium.service.broker import Service
from angarium.service.makers import counting_for
from angarium.service.producer_ids import tagged
from angarium.service.recovering import Recovering
from angarium.service.transactions.transaction_calls import TransactionCalls
from angarium.service.upgrading import Upgrading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

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
        Subscription,
    )
    from angarium.api.access import AccessBroker, JoinTokenBroker
    from angarium.api.backups import BackupBroker
    from angarium.api.balance import BalanceBroker
    from angarium.api.quotas import QuotaBroker
    from angarium.api.recovery import RecoveryBroker
    from angarium.api.transactions import SequencedPublish, StageRequest, TransactionBroker
    from angarium.api.upgrades import UpgradeBroker
    from angarium.errors import AngariumError
    from angarium.ids import Buffer, ProducerId
    from angarium.machine.catalog import Maker
    from angarium.service.access.access import Access
    from angarium.service.access.attending import Question
    from angarium.service.access.rules import Rule
    from angarium.service.access.stored import StoredQuotas
    from angarium.service.access.tolls import Toll
    from angarium.service.groups.consumption import LocalConsumption
    from angarium.service.publishing import Answer

    class _Contract(
        Broker,
        TransactionBroker,
        OffsetBroker,
        PassingBroker,
        AccessBroker,
        JoinTokenBroker,
        BackupBroker,
        QuotaBroker,
        BalanceBroker,
        RecoveryBroker,
        UpgradeBroker,
        Protocol,
    ):
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
        self.toll: Toll | None = None
        """What the principal uses of its quota; None if it may use as much as there is."""
        self._stored: StoredQuotas | None = None
        self._is_counted = False
        is_node = principal.proof is Proof.NODE
        self._producers = OwnProducers(self) if access.is_required and not is_node else None
        """Whose producers are is looked at where it is known who asks, and by the first node."""
        self._may_publish: set[str] = set()
        self._allowed: set[tuple[Action, ResourceKind, str]] = set()

    @property
    def region(self) -> str:
        """Where the node is that serves this: doors publish to the partitions that live there."""
        return self._service.node.config.region

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

    def check(
        self, action: Action, kind: ResourceKind, name: str = "", *, method: str = ""
    ) -> None:
        """Raise `PermissionDenied`, or `NotFound` where even to know of it is not allowed.

        `Unauthenticated` if the principal is nobody any more. `method` is what the audit record
        of a refusal calls it.
        """
        if self.may(action, kind, name):
            return
        if self._access.audit is not None:
            self._access.audit.denied(self, method or str(action), (action, kind, name))
        absence = self._access.absence_of(self.principal)
        if absence:
            raise Unauthenticated(absence)
        if action not in _MAKING and not self._may_know(kind, name):
            raise NotFound(f"there is no {kind} {name!r}")
        what = kind if kind is ResourceKind.CLUSTER else f"{kind} {name!r}"
        raise PermissionDenied(f"{self.principal.name!r} may not {action} on {what}")

    def _may_know(self, kind: ResourceKind, name: str) -> bool:
        """Tell whether the principal may know that there is such a thing; of itself it does."""
        hiding = DESCRIBING.get(kind)
        is_oneself = kind is ResourceKind.USER and name == self.principal.name
        return hiding is None or is_oneself or self.may(hiding, kind, name)

    def forget(self) -> None:
        """Ask anew from here on: the policy has changed."""
        self._allowed.clear()
        self._may_publish.clear()
        if self._producers is not None:
            self._producers.forget()

    def check_call(self, rule: Rule, given: Mapping[str, Any], *, method: str = "") -> None:
        """Ask everything that a call with these arguments needs; raises the first refusal."""
        for asks in rule.asks:
            for name in asks.names(given):
                is_free = rule.own and not asks.of_everybody
                if not (is_free and self._is_oneself(asks.kind, name)):
                    self.check(asks.action, asks.kind, name, method=method)

    def recording(
        self, method: str, rule: Rule, given: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[None]:
        """Return what an administrative call runs in, once it was let through: its audit record is
        written before."""
        audit = self._access.audit
        if audit is None or self.principal.proof is Proof.NODE:
            return nullcontext()
        asks = rule.asks[0]
        name = next(iter(asks.names(given)), "")
        why = "about oneself"
        if not (rule.own and self._is_oneself(asks.kind, name)):
            why = self.decide(asks.action, asks.kind, name).why
        asked = (asks.action, asks.kind, name)
        return audit.action(self.principal, method, asked, rule=why, given=given)

    def note_call(self, method: str, rule: Rule, given: Mapping[str, Any]) -> None:
        """Hear that a call is about records; a `RecordedBroker` has all of them recorded."""
        if method in ALWAYS_NOTED:
            self._note_access(method, rule, given)

    def _note_access(self, method: str, rule: Rule, given: Mapping[str, Any]) -> None:
        """Have a call recorded that is about records, once for everything that it touches."""
        audit = self._access.audit
        if audit is None or self.principal.proof is Proof.NODE:
            return
        for asks in rule.asks:
            for name in asks.names(given):
                audit.accessed(self, method, (asks.action, asks.kind, name))

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

    def _may_know_topic(self, topic: str) -> bool:
        return self.may(Action.TOPIC_DESCRIBE, ResourceKind.TOPIC, topic)

    # --- publishing ---------------------------------------------------------------------------

    def begin_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Publish without a task where nobody else has to be asked, and nobody has to wait; else
        False."""
        if request.topic not in self._may_publish:
            self._check_publish(request.topic)
        if self._producers is not None:
            if not self._producers.are_known(request.batches):
                return False
            request = self._producers.with_own_keys(request)
        if not self._is_counted:
            return self._service.begin_publish(request, answer)
        if self.toll is not None and self.toll.must_wait():
            return False
        charge = self._charge(request)
        charge.check()
        if not self._service.begin_publish(request, charge.heard_by(answer)):
            return False
        charge.take()
        return True

    def take_publish(self, request: PublishRequest, answer: Answer) -> bool:
        """Do the same for a door that makes its client wait afterwards; nobody waits here.

        After a False `publish_taken` has to follow.
        """
        if request.topic not in self._may_publish:
            self._check_publish(request.topic)
        if self._is_counted:
            charge = self._charge(request)
            charge.check()
            charge.take()
            answer = charge.heard_by(answer)
        if self._producers is not None:
            if not self._producers.are_known(request.batches):
                return False
            request = self._producers.with_own_keys(request)
        return self._service.begin_publish(request, answer)

    async def publish(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Store or hand over batches."""
        if request.topic not in self._may_publish:
            self._check_publish(request.topic)
        await self._check_making(request.topic)
        request = await self._with_own_producers(request)
        if not self._is_counted:
            with self._creating():
                return await self._service.publish(request)
        charge = self._charge(request)
        charge.check()
        await charge.pay()
        with charge.taken_back(), self._creating():
            return await self._service.publish(request)

    async def publish_taken(self, request: PublishRequest) -> tuple[Ack, ...]:
        """Publish what `take_publish` has counted, and could not publish without a task."""
        if request.topic not in self._may_publish:
            self._check_publish(request.topic)
        await self._check_making(request.topic)
        request = await self._with_own_producers(request)
        if not self._is_counted:
            with self._creating():
                return await self._service.publish(request)
        with self._charge(request).taken_back(), self._creating():
            return await self._service.publish(request)

    def _check_publish(self, topic: str) -> None:
        self.check(Action.TOPIC_PUBLISH, ResourceKind.TOPIC, topic, method="publish")
        self._may_publish.add(topic)

    async def _with_own_producers(self, request: PublishRequest) -> PublishRequest:
        """Return a request that speaks for nobody else; raises if it wants to."""
        await self._check_producers(request.batches)
        return request if self._producers is None else self._producers.with_own_keys(request)

    async def _check_producers(self, batches: Sequence[Buffer]) -> None:
        """See to it that nobody publishes as a producer that is somebody else's."""
        if self._producers is None or self._producers.are_known(batches):
            return
        # Opened a moment ago, at another node; or never.
        await self._access.service.node.catalog.catch_up()
        if not self._producers.are_known(batches):
            raise UnknownProducer("there is no producer of that id; open one")

    async def open_producer(self, name: str | None = None) -> Producer:
        """Return a new identity, which nobody else can use; or with a name the same one in a new
        epoch."""
        self.check_call(RULES["open_producer"], {"name": name}, method="open_producer")
        opened = await self._service.open_producer(name)
        is_tagged = self.level >= QUOTA_LEVEL
        if name is not None or self._producers is None or not is_tagged:
            return opened
        return Producer(id=tagged(opened.id, self._producers.tag), epoch=opened.epoch)

    @property
    def owner(self) -> str:
        """Whose the producers are that the principal opens: who it is among all there ever were."""
        return self._access.permissions.identity_of(self.principal)

    @property
    def level(self) -> int:
        """The feature level that the cluster works at."""
        return self._access.service.node.catalog.level

    @contextmanager
    def _creating(self) -> Iterator[None]:
        """Let topics, partitions and join tokens that are created inside be the principal's."""
        try:
            with counting_for(self._maker):
                yield
        except TopicQuotaExceeded as error:
            kind = str(error).partition(":")[0]
            if kind in set(QuotaKind):
                error.limit = kind  # the catalog's refusal has a code and a message alone
                self._access.throttled.refuses(QuotaKind(kind))
            raise

    def _maker(self) -> Maker | None:
        return self._access.maker_of(self.principal)

    def producer_name(self, producer: ProducerId) -> str | None:
        """Return the name of a producer, as far as this node knows."""
        return self._access.service.node.catalog.producer_name(producer)

    def _charge(self, request: PublishRequest | StageRequest | SequencedPublish) -> Charge:
        mode = request.mode if isinstance(request, PublishRequest) else DeliveryMode.CONSISTENT
        return Charge(request.topic, request.batches, mode, self.toll, self._stored)

    @property
    def counted(self) -> PermittedBroker:
        """Who counts what is asked, for whoever has this broker behind another one."""
        return self

    def enter(self) -> Callable[[], None]:
        """Take a place for something that stays open, until the returned callable is called;
        raises `QuotaExceeded`."""
        return self._access.presences.enter(self.principal)

    def count_by(self, toll: Toll | None, stored: StoredQuotas | None) -> None:
        """Count publishes by these from now on, and what is read by the first; None: do not."""
        self.toll, self._stored = toll, stored
        self._is_counted = toll is not None or stored is not None

    async def _check_making(self, topic: str) -> None:
        """See to it that a publish makes a topic only for who may make one."""
        if self._service.partition_count(topic):
            return
        is_node = self.principal.proof is Proof.NODE
        if is_node or not self.may(Action.TOPIC_CREATE, ResourceKind.TOPIC, topic):
            # A node that passes on a publish has created the topic for its own client before.
            await self._service.topics.find(topic)
        elif self._access.audit is not None and self._service.node.config.auto_create_topics:
            try:
                await self._service.topics.find(topic)
            except NotFound:
                async with self.recording("create_topic", RULES["create_topic"], {"name": topic}):
                    pass  # who publishes makes it

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, as an answer to who publishes there."""
        return self._service.partition_count(topic)

    # --- reading ------------------------------------------------------------------------------

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Return committed batches; one that waits for some ends when it is not allowed any more.

        What came while it waited is shown to who may still see it.
        """
        self.check(Action.TOPIC_READ, ResourceKind.TOPIC, request.topic, method="fetch")
        if self.toll is not None:
            await self.toll.before_reading()
        if not request.wait_ms or not self._access.is_required:
            result = await self._service.fetch(request)
        else:
            result = await while_permitted(self, self._service.fetch(request), request.topic)
            self.check(Action.TOPIC_READ, ResourceKind.TOPIC, request.topic, method="fetch")
        if self.toll is not None:
            self.toll.read(sum(map(len, result.batches)))
        return result

    async def subscribe(self, interests: Sequence[Interest]) -> Subscription:
        """Begin to deliver partitions."""
        self.check_call(RULES["subscribe"], {"interests": interests}, method="subscribe")
        inner = await self._service.subscribe(interests)
        return self._watched(inner, [(one.topic, one.partition) for one in interests])

    async def subscribe_passing(self, topic: str, partitions: Sequence[int]) -> Subscription:
        """Deliver what passes in PERFORMANCE mode, and nothing that is stored."""
        self.check(Action.TOPIC_READ, ResourceKind.TOPIC, topic, method="subscribe_passing")
        inner = await self._service.subscribe_passing(topic, partitions)
        return self._watched(inner, [(topic, number) for number in partitions])

    def _watched(self, inner: Subscription, partitions: Sequence[tuple[str, int]]) -> Subscription:
        return PermittedSubscription(inner, self, partitions) if self._access.is_required else inner

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group."""
        self.check_call(RULES["consume"], {"request": request}, method="consume")
        with self._creating():
            inner = await self._service.consume(request)
        if not self._access.is_required:
            return inner
        return PermittedConsumption(inner, self, _consuming(request))

    async def begin_consume(self, request: ConsumeRequest) -> LocalConsumption:
        """Take part in a group, for a door that settles without a task for each."""
        self.check_call(RULES["consume"], {"request": request}, method="consume")
        with self._creating():
            consumption = await self._service.groups.consume(request)
        if self._access.is_required:
            consumption.on_closed = self.attend(consumption.break_off, _consuming(request))
            consumption.paced = self
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
        principal = shown(self.principal)
        return Caller(principal=principal, roles=roles, authentication=authentication)

    async def can(self, user: str, action: str, *, kind: ResourceKind, name: str = "") -> Decision:
        """Tell whether a user may do something, and why."""
        self.check_call(RULES["can"], {"user": user}, method="can")
        if action not in set(Action):
            raise InvalidArgument(f"{action!r} is no action; docs/reference/permissions.md has all")
        permissions = self._access.permissions
        if not permissions.has_user(user):
            # Not that there is none any more: nobody knows whether there ever was.
            return Decision(is_allowed=False, why=f"there is no user {user!r}")
        asked = Principal(name=user, proof=Proof.PASSWORD)
        return permissions.decide(asked, action, kind, name)


def _consuming(request: ConsumeRequest) -> list[Question]:
    """Return what a member has to be allowed as long as it takes part."""
    group = (Action.GROUP_CONSUME, ResourceKind.GROUP, request.group)
    return [group, *reading(request.topics)]


_MAKES_TOPICS: Final = frozenset({"reserve", "stage", "publish_sequenced"})
"""Besides publishing: what makes the topic on first use."""

_CREATES: Final = frozenset({"create_topic", "alter_topic", "alter_group", "create_join_token"})
"""What creates what the catalog keeps with its creator because it was asked to: topics, partitions,
the dead-letter topic of a group, join tokens."""

_BRINGS_BATCHES: Final = frozenset({"stage", "publish_sequenced"})
"""Besides publishing: what brings records."""


_BEHIND: Final = (
    (ACCESS_RULES, UserCalls, "calls"),
    (QUOTA_RULES, QuotaCalls, "quota_calls"),
    (JOIN_TOKEN_RULES, JoinTokenCalls, "join_tokens"),
    (BALANCE_RULES, Balancing, "service.balancing"),
    (RECOVERY_RULES, Recovering, "service.recovering"),
    (UPGRADE_RULES, Upgrading, "service.upgrading"),
    (BACKUP_RULES, BackupCalls, "service.backups"),
    (TRANSACTION_RULES, TransactionCalls, "service.transactions"),
    (RULES, Service, "service"),
)
"""Which class carries out what some rules are for, and where an `Access` has it; first come."""


def _behind(name: str) -> tuple[type, str]:
    """Return which class carries out a method, and where an `Access` has it."""
    return next((kind, where) for rules, kind, where in _BEHIND if name in rules)


def _asking(name: str, rule: Rule) -> Callable[..., Any]:
    """Return a method that asks what `rule` says, then has the call carried out."""
    kind, where = _behind(name)
    find = attrgetter(f"{where}.{name}")
    call = getattr(kind, name)
    makes_topics = name in _MAKES_TOPICS
    creates = makes_topics or name in _CREATES
    topics_shown = rule.topics_shown
    brings_batches = name in _BRINGS_BATCHES
    is_action = recorded(name) is AuditEvent.ACTION
    is_access = recorded(name) is AuditEvent.ACCESS
    parameters = list(inspect.signature(call).parameters)[1:]

    @wraps(call)
    async def permitted(self: PermittedBroker, *arguments: Any, **named: Any) -> Any:
        given = {**dict(zip(parameters, arguments, strict=False)), **named}
        self.check_call(rule, given, method=name)
        if makes_topics:
            await self._check_making(given["topic"] if "topic" in given else given["request"].topic)
        if brings_batches:
            await self._check_producers(given["request"].batches)
        if brings_batches and self._is_counted and given["request"].batches:
            charge = self._charge(given["request"])
            charge.check()
            await charge.pay()
        if is_action and self._access.audit is not None:
            async with self.recording(name, rule, given):
                self.check_call(rule, given, method=name)  # it may have waited for its record
                with self._creating() if creates else nullcontext():
                    found = await find(self._access)(*arguments, **named)
        else:
            if is_access and self._access.audit is not None:
                self.note_call(name, rule, given)
            with self._creating() if creates else nullcontext():
                found = await find(self._access)(*arguments, **named)
        if rule.shows is not None:
            found = self._shown(rule, found)
        return found if topics_shown is None else topics_shown(found, self._may_know_topic)

    return permitted


for _name, _rule in RULES.items():
    if _name not in vars(PermittedBroker):
        setattr(PermittedBroker, _name, _asking(_name, _rule))
