"""What is looked after about people and nodes, as one part of the contract."""

from __future__ import annotations

from typing import Protocol

from angarium.api.access import AccessBroker, JoinTokenBroker
from angarium.api.quotas import QuotaBroker


class AdministrationBroker(AccessBroker, QuotaBroker, JoinTokenBroker, Protocol):
    """Who may do what, how much of it, and which nodes may come in."""
