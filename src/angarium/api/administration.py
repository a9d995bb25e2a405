"""What is looked after about people, nodes and the whole cluster, as one part of the contract."""

from __future__ import annotations

from typing import Protocol

from angarium.api.access import AccessBroker, JoinTokenBroker
from angarium.api.balance import BalanceBroker
from angarium.api.quotas import QuotaBroker
from angarium.api.recovery import RecoveryBroker
from angarium.api.upgrades import UpgradeBroker


class AdministrationBroker(
    AccessBroker,
    QuotaBroker,
    JoinTokenBroker,
    BalanceBroker,
    UpgradeBroker,
    RecoveryBroker,
    Protocol,
):
    """Who may do what, how much of it, which nodes may come in, and what operators do with those
    that are there: even them out, take them down, go on without them."""
