"""What `[audit]` means: off without authentication, changes with it, and a complaint in between."""

from __future__ import annotations

import pytest

from angarium.app.audit_settings import AuditSettings
from angarium.app.security_settings import SecuritySettings
from angarium.app.settings import Settings
from angarium.app.settings_problems import problems
from angarium.service.audit import AuditChoices

REQUIRED = SecuritySettings(authentication="required")


def test_nothing_is_recorded_without_authentication_and_changes_with_it() -> None:
    assert AuditSettings().choices(is_required=False) is None
    choices = AuditSettings().choices(is_required=True)
    assert choices == AuditChoices(
        is_data_recorded=False, is_refused_unwritten=True, retention_days=365
    )
    assert AuditSettings(record="off").choices(is_required=True) is None


def test_data_and_going_on_are_chosen() -> None:
    chosen = AuditSettings(record="data", unwritable="continue", retention_days=0)
    assert chosen.choices(is_required=True) == AuditChoices(
        is_data_recorded=True, is_refused_unwritten=False, retention_days=0
    )


@pytest.mark.parametrize("record", ["changes", "data"])
def test_to_record_nobody_is_a_mistake(record: str) -> None:
    audit = AuditSettings(record=record)  # type: ignore[arg-type]
    (problem,) = problems(Settings(audit=audit))
    assert problem.setting == "audit.record"
    assert "authentication" in problem.what
    assert problems(Settings(audit=audit, security=REQUIRED)) == []
    assert problems(Settings(audit=AuditSettings(record="off"))) == []


def test_a_retention_has_bounds() -> None:
    with pytest.raises(ValueError, match="retention_days"):
        AuditSettings(retention_days=-1)
