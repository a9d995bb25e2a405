"""Where brokers come from: each is made for a principal, and every decision is made here.

A change of the policy counts from the next question on. What is open and would not be allowed any
more is ended as soon as this node's catalog has the change: nobody waits for a look at it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from angarium.api.access import ANONYMOUS, Decision, Principal, Proof
from angarium.api.quotas import QuotaKind
from angarium.errors import NotLeader
from angarium.ids import Index
from angarium.machine.catalog import Maker
from angarium.node.release import CREATION_QUOTA_LEVEL
from angarium.security.permissions import Permissions, Rows
from angarium.security.quotas import Quotas, creation_limits, stored_limits
from angarium.service.access.attending import Attendances, withdrawn
from angarium.service.access.join_tokens import JoinTokenCalls
from angarium.service.access.permitted import PermittedBroker
from angarium.service.access.presences import Presences
from angarium.service.access.quota_calls import QuotaCalls
from angarium.service.access.recorded_broker import RecordedBroker
from angarium.service.access.sharing import Sharing
from angarium.service.access.stored import StoredQuotas
from angarium.service.access.tolls import Tolls
from angarium.service.access.user_calls import UserCalls
from angarium.telemetry.throttling import ThrottleMeters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.api.access import Action, ResourceKind
    from angarium.errors import AngariumError
    from angarium.security.quotas import Limit
    from angarium.service.access.attending import Question
    from angarium.service.audit import Audit
    from angarium.service.metering import MeteredService

BROKERS_MAX: Final = 1_024
"""Principals whose brokers are kept. At the bound the oldest is made again when it comes again."""

LOOK_S: Final = 0.5
"""How often to look for proofs that have expired, and whether a change was missed."""

SEE_OFF_S: Final = 0.3
"""How long a connection outlives the streams on it whose principal is nobody any more: they are to
be told why before it goes."""

NODES: Final = Principal(name="node", proof=Proof.NODE)
"""Other nodes, when they pass on what they have allowed themselves."""


class Access:
    """Says who may do what on one node, and makes the brokers that keep to it."""

    def __init__(
        self,
        service: MeteredService,
        *,
        is_required: bool = False,
        audit: Audit | None = None,
        published: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """Prepare; `is_required`: nobody is let in without a proof of who it is. `audit` records
        what is decided; None: nobody does. `published` are the prints of the keys by which issuers
        of JWTs sign, as of now."""
        self.service = service
        self.is_required = is_required
        self.audit = audit
        records_data = audit is not None and audit.choices.is_data_recorded
        self._made = RecordedBroker if records_data else PermittedBroker
        self.calls = UserCalls(service.node, self.refresh)
        self.quota_calls = QuotaCalls(self)
        self.throttled = ThrottleMeters()
        self.stored = StoredQuotas(service.node, service.topics.partitions, self.throttled)
        self.tolls = Tolls(self.throttled)
        self.presences = Presences(self.tolls)
        self.sharing = Sharing(service.node, self.tolls, self.presences.by_key)
        self.join_tokens = JoinTokenCalls(service.node)
        self._node = service.node
        self._brokers: dict[Principal, PermittedBroker] = {}
        self._all_brokers: WeakSet[PermittedBroker] = WeakSet()
        self._open = Attendances()
        self._permissions = Permissions(Rows(version=Index(0)))
        self._news = asyncio.Event()
        """Set when the policy has changed, or may have."""
        self._published = published
        self._keys: frozenset[str] = frozenset()
        self._quotas = Quotas()
        self._node.catalog.watch_policy(self._news.set)
        self._node.background += [self._look, self.stored.run]
        if is_required:
            self._node.background.append(self.sharing.run)

    @property
    def anonymous(self) -> Principal | None:
        """Who somebody is without a proof; None: nobody, authentication is required."""
        return None if self.is_required else ANONYMOUS

    def broker_for(self, principal: Principal) -> PermittedBroker:
        """Return the broker that asks in the name of `principal`."""
        broker = self._brokers.get(principal)
        if broker is None:
            if len(self._brokers) >= BROKERS_MAX:
                del self._brokers[next(iter(self._brokers))]
            # Its methods are made from the rules, which a type checker does not see.
            broker = self._made(self, principal)  # type: ignore[abstract]
            self._brokers[principal] = broker
            self._all_brokers.add(broker)
            self._count(broker)
        return broker

    def for_nodes(self) -> PermittedBroker:
        """Return the broker of other nodes of this cluster: they have asked already."""
        return self.broker_for(NODES)

    # --- deciding -------------------------------------------------------------------------------

    def decide(
        self, principal: Principal, action: Action, kind: ResourceKind, name: str
    ) -> Decision:
        """Tell whether a principal may do something, and why."""
        # Those two are not looked up, so that they need no catalog, as before there were users.
        if principal.proof is not Proof.NODE and principal is not ANONYMOUS:
            absence = self.absence_of(principal)
            if absence:
                return Decision(is_allowed=False, why=absence)
        return self._permissions.decide(principal, action, kind, name)

    def absence_of(self, principal: Principal) -> str:
        """Return why a principal is nobody any more; empty if it still is somebody."""
        if principal.until is not None and principal.until <= self._node.now():
            return f"the proof of {principal.name!r} has expired; come again with a new one"
        if principal.key is not None and principal.key not in self._published():
            return withdrawn(principal)
        return self.permissions.absence_of(principal)

    @property
    def permissions(self) -> Permissions:
        """The table, as of the newest version that this node knows."""
        self.refresh()
        return self._permissions

    def refresh(self) -> None:
        """See whether the policy has changed; if so, what was allowed before is asked anew."""
        catalog = self._node.catalog
        version = catalog.access_version
        if version == self._permissions.version:
            return
        self._permissions = Permissions(
            Rows(version, catalog.users(), catalog.grants(), catalog.tokens())
        )
        rows = tuple(catalog.quotas())
        self._quotas = Quotas(rows)
        self.stored.set_limits(stored_limits(rows))
        for broker in self._all_brokers:
            broker.forget()
            self._count(broker)
        self._open.ask_again(self._permissions)
        self._see_off_soon()

    def _see_off_soon(self) -> None:
        if self._open.is_somebody_going:
            asyncio.get_running_loop().call_later(SEE_OFF_S, self._open.see_off)

    # --- how much -------------------------------------------------------------------------------

    def limits_of(self, principal: Principal) -> dict[QuotaKind, Limit]:
        """Return what limits a principal; nothing where everybody is the same."""
        if not self.is_required or principal.proof is Proof.NODE:
            return {}
        return self._quotas.limits_of(principal, self._permissions.roles_of(principal))

    def maker_of(self, principal: Principal) -> Maker | None:
        """Return a principal as the catalog counts what it creates; None: it counts for none.

        Without authentication all principals are the same one, and nodes have counted already.
        """
        is_told_apart = self.is_required and principal.proof is not Proof.NODE
        if not is_told_apart or self._node.catalog.level < CREATION_QUOTA_LEVEL:
            return None
        user = "" if principal.proof is Proof.JWT else principal.name
        creator = self.permissions.identity_of(principal)
        return Maker(creator=creator, user=user, roles=principal.roles)

    def creation_limits_of(self, principal: Principal) -> dict[QuotaKind, Limit]:
        """Return what limits how much a principal may create."""
        maker = self.maker_of(principal)
        return {} if maker is None else creation_limits(self._node.catalog.limits_of(maker))

    def created_by(self, principal: Principal) -> dict[QuotaKind, float]:
        """Return what a principal has created that still exists, where that is counted."""
        maker = self.maker_of(principal)
        if maker is None:
            return {}
        made = self._node.catalog.created_by(maker)
        return {QuotaKind.TOPICS: made.topics, QuotaKind.PARTITIONS: made.partitions}

    def used_by(self, principal: Principal) -> dict[QuotaKind, float]:
        """Return what a principal uses, of what is limited, as far as this node knows."""
        return self.sharing.used_by(principal)

    def _count(self, broker: PermittedBroker) -> None:
        """Have a broker count what its principal's quotas are about, and those of topics."""
        principal = broker.principal
        if principal.proof is Proof.NODE:
            return  # counted by the node that it came to
        toll = self.tolls.of(principal, self.limits_of(principal))
        broker.count_by(toll, None if self.stored.is_empty else self.stored)

    # --- what is open ---------------------------------------------------------------------------

    def attend(
        self,
        principal: Principal,
        end: Callable[[AngariumError], None],
        asked: Iterable[Question] = (),
    ) -> Callable[[], None]:
        """Have `end` called once when a principal is nobody any more, or may not do what it was
        `asked` any more; the returned callable takes that back."""
        if not self.is_required:
            return _leave_nothing
        with suppress(NotLeader):
            self.refresh()
        if self.audit is not None:
            asked = tuple(asked)
            end = self.audit.watching(principal, asked, end)
        leave = self._open.add(principal, end, asked, self._permissions)
        self._see_off_soon()
        return leave

    async def _look(self) -> None:
        """Notice changes that came with the catalog, at once, and proofs that expire, soon."""
        loop = asyncio.get_running_loop()
        look_at = loop.time() + LOOK_S
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(look_at):
                    await self._news.wait()
            self._news.clear()
            # Without a catalog at the moment what this node knew still counts; proofs expire.
            with suppress(NotLeader):
                self.refresh()
            if self.is_required and loop.time() >= look_at:
                self.see_keys()
                self.expire()
            if loop.time() >= look_at:
                look_at = loop.time() + LOOK_S

    def see_keys(self) -> None:
        """End what was opened with a proof whose key is published no more."""
        keys = self._published()
        gone, self._keys = self._keys - keys, keys
        if not gone:
            return
        self._open.withdraw(gone, self._permissions)
        for broker in list(self._all_brokers):
            if broker.principal.key in gone:
                broker.forget()
                self._brokers.pop(broker.principal, None)

    def expire(self) -> None:
        """End what was opened with a proof that has expired, and answer nobody from memory who
        brought one: not everything that goes on is attended, a stream of publishes is not."""
        now = self._node.now()
        self._open.expire(now)
        for broker in list(self._all_brokers):
            principal = broker.principal
            if principal.until is not None and principal.until <= now:
                broker.forget()
                self._brokers.pop(principal, None)


def _leave_nothing() -> None:
    pass
