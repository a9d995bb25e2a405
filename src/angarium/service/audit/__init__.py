"""Writing down who did what: into the topic `angarium.audit`, beside the calls."""

from angarium.service.audit.audit import Audit, AuditChoices
from angarium.service.audit.writing import AuditWriter

__all__ = ["Audit", "AuditChoices", "AuditWriter"]
