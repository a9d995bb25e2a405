"""Audit records, and what a check of them found, for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from angarium.telemetry.logs import escaped

if TYPE_CHECKING:
    from angarium.api.audit import AuditRecord
    from angarium.security.audit import Report


def audit_line(record: AuditRecord) -> str:
    """Return a record as one line."""
    when = record.time[:23].replace("T", " ")
    who = _name(record.who) or "-"
    if record.proof and record.who:
        who += f" ({_name(record.token) or record.proof})"
    where = " ".join(one for one in (record.door, record.address) if one) or f"node {record.node}"
    what = " ".join(one for one in (record.what, record.kind, _name(record.resource)) if one)
    many = f" ({record.count} times)" if record.count > 1 else ""
    why = "; ".join(one for one in (record.rule, record.details) if one)
    line = f"{when}  {record.outcome:<7}  {who:<20}  {where:<20}  {what}{many}"
    return escaped(f"{line}  [{why}]" if why else line)


def _name(text: str) -> str:
    """Return a name that a caller chose; in quotes where it could pass for more than a name."""
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text else text


def print_report(report: Report) -> None:
    """Print what a check found."""
    for one in report.findings:
        print(escaped(f"{one.trouble.value.upper()}: {one.sentence}"))
    writers = len(report.writers)
    found = len(report.findings)
    verdict = "all is sound" if report.is_sound else f"{found} findings"
    print(f"{report.records} audit records of {writers} writers: {verdict}.")
    for writer in report.writers:
        if writer.lost:
            print(escaped(f"Writer {writer.writer} had to drop {writer.lost} records."))
    for note in report.notes:
        print(escaped(f"Note: {note}."))
    if report.unvouched:
        newest = "record" if report.unvouched == 1 else f"{report.unvouched} records"
        print(
            f"Nobody vouches yet for the newest {newest}: what else was there could be taken away"
            " without a trace."
        )
    if report.head is not None:
        print(f"Head: offset {report.head.offset}, digest {report.head.digest}")
