"""Where brokers come from: each is made for a principal, and every decision is made here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api.access import ANONYMOUS, Decision, Principal, Proof
from angarium.service.access.permitted import PermittedBroker

if TYPE_CHECKING:
    from angarium.api.access import Action, ResourceKind
    from angarium.service.metering import MeteredService

BROKERS_MAX: Final = 1_024
"""Principals whose brokers are kept. At the bound the oldest is made again when it comes again."""

NODES: Final = Principal(name="node", proof=Proof.NODE)
"""Other nodes, when they pass on what they have allowed themselves."""


class Access:
    """Says who may do what on one node, and makes the brokers that keep to it."""

    def __init__(self, service: MeteredService) -> None:
        self.service = service
        self._brokers: dict[Principal, PermittedBroker] = {}

    @property
    def anonymous(self) -> Principal | None:
        """Who somebody is without a proof; None: nobody, authentication is required."""
        return ANONYMOUS

    def broker_for(self, principal: Principal) -> PermittedBroker:
        """Return the broker that asks in the name of `principal`."""
        broker = self._brokers.get(principal)
        if broker is None:
            if len(self._brokers) >= BROKERS_MAX:
                del self._brokers[next(iter(self._brokers))]
            # Its methods are made from the rules, which a type checker does not see.
            broker = self._brokers[principal] = PermittedBroker(self, principal)  # type: ignore[abstract]
        return broker

    def for_nodes(self) -> PermittedBroker:
        """Return the broker of other nodes of this cluster: they have asked already."""
        return self.broker_for(NODES)

    def decide(
        self,
        principal: Principal,
        action: Action,
        kind: ResourceKind,  # noqa: ARG002 - the table will ask
        name: str,  # noqa: ARG002
    ) -> Decision:
        """Tell whether a principal may do something, and why."""
        return Decision(is_allowed=True, why=f"{principal.name} may {action}")
