"""What can be chosen about audit records: the section `[audit]` of node.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from angarium.service.audit import AuditChoices

RETENTION_DAYS_LARGEST: Final = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """`[audit]`: what is recorded of who did what, in the topic `angarium.audit`. It needs
    authentication (`[security]`), and is the same on every node."""

    record: Literal["auto", "off", "changes", "data"] = "auto"
    """"changes": administrative actions, denials and failed logins. "data": also who reads and
    publishes, per call and not per record. "off": nothing. "auto": changes, where authentication is
    required."""

    unwritable: Literal["refuse", "continue"] = "refuse"
    """What becomes of an administrative action whose record cannot be written within 5 s: it is
    refused, or goes on with its record in the log of the node alone."""

    retention_days: int = 365
    """How long audit records are kept; 0: for ever."""

    def __post_init__(self) -> None:
        if not 0 <= self.retention_days <= RETENTION_DAYS_LARGEST:
            raise ValueError(f"retention_days: from 0 to {RETENTION_DAYS_LARGEST}")

    def choices(self, *, is_required: bool) -> AuditChoices | None:
        """Return what to record; None: nothing. `is_required`: whether authentication is."""
        if self.record == "off" or not is_required:
            return None
        return AuditChoices(
            is_data_recorded=self.record == "data",
            is_refused_unwritten=self.unwritable == "refuse",
            retention_days=self.retention_days,
        )


NOBODY_TO_NAME: Final = (
    "records who did what, and without authentication nobody is anybody; set [security]"
    ' authentication = "required", or take it away'
)
