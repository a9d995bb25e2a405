"""Audit records as a chain: how each hangs on those before it, and how that is checked. Pure."""

from angarium.security.audit.chain import NOTHING_SEEN, Chain, Progress, hash_of
from angarium.security.audit.findings import Finding, Report, Trouble
from angarium.security.audit.tallies import Tallies
from angarium.security.audit.verifying import Verifier

__all__ = [
    "NOTHING_SEEN",
    "Chain",
    "Finding",
    "Progress",
    "Report",
    "Tallies",
    "Trouble",
    "Verifier",
    "hash_of",
]
