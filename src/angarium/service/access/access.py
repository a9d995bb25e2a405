"""Where brokers come from: each is made for a principal, and every decision is made here.

A change of the policy counts from the next question on, and ends within a second what is open and
would not be allowed any more.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from angarium.api.access import ANONYMOUS, Decision, Principal, Proof
from angarium.errors import NotLeader
from angarium.ids import Index
from angarium.security.permissions import Permissions, Rows
from angarium.service.access.attending import Attendances
from angarium.service.access.permitted import PermittedBroker
from angarium.service.access.user_calls import UserCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.api.access import Action, ResourceKind
    from angarium.errors import AngariumError
    from angarium.service.access.attending import Question
    from angarium.service.metering import MeteredService

BROKERS_MAX: Final = 1_024
"""Principals whose brokers are kept. At the bound the oldest is made again when it comes again."""

LOOK_S: Final = 0.5
"""How often to look for another version of the policy, and for proofs that have expired."""

NODES: Final = Principal(name="node", proof=Proof.NODE)
"""Other nodes, when they pass on what they have allowed themselves."""


class Access:
    """Says who may do what on one node, and makes the brokers that keep to it."""

    def __init__(self, service: MeteredService, *, is_required: bool = False) -> None:
        """Prepare; `is_required`: nobody is let in without a proof of who it is."""
        self.service = service
        self.is_required = is_required
        self.calls = UserCalls(service.node, self.refresh)
        self._node = service.node
        self._brokers: dict[Principal, PermittedBroker] = {}
        self._all_brokers: WeakSet[PermittedBroker] = WeakSet()
        self._open = Attendances()
        self._permissions = Permissions(Rows(version=Index(0)))
        if is_required:
            self._node.background.append(self._look)

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
            broker = PermittedBroker(self, principal)  # type: ignore[abstract]
            self._brokers[principal] = broker
            self._all_brokers.add(broker)
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
        for broker in self._all_brokers:
            broker.forget()
        self._open.ask_again(self._permissions)

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
        return self._open.add(principal, end, asked, self._permissions)

    async def _look(self) -> None:
        """Notice changes that came with the catalog, and proofs that expire."""
        while True:
            await asyncio.sleep(LOOK_S)
            # Without a catalog at the moment what this node knew still counts; proofs expire.
            with suppress(NotLeader):
                self.refresh()
            self.expire()

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
