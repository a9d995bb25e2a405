"""Who may do what: a broker is made for a principal, and asks before each call."""

from angarium.service.access.access import Access
from angarium.service.access.permitted import PermittedBroker

__all__ = ["Access", "PermittedBroker"]
