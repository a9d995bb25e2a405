"""Audit records and reports as people read them."""

from __future__ import annotations

import argparse
import time

import pytest

from angarium.api.audit import AuditEvent, AuditOutcome, AuditRecord, Seen
from angarium.cli.audit_lines import audit_line, print_report
from angarium.cli.grammar import grammar
from angarium.cli.grammar.audit import since
from angarium.security.audit import Finding, Report, Trouble
from angarium.security.audit.findings import WriterSummary


def test_a_denial_is_one_line_with_who_where_what_and_why() -> None:
    record = AuditRecord(
        time="2026-11-03T12:00:00.123456Z",
        node=1,
        event=AuditEvent.DENIAL,
        outcome=AuditOutcome.DENIED,
        who="alice",
        proof="token",
        token="ci",
        address="10.0.0.7",
        door="http",
        what="publish",
        kind="topic",
        resource="orders",
        rule="no grant allows it",
        count=41,
    )
    words = audit_line(record).split()
    assert words[:5] == ["2026-11-03", "12:00:00.123", "denied", "alice", "(ci)"]
    assert words[5:10] == ["http", "10.0.0.7", "publish", "topic", "orders"]
    assert audit_line(record).endswith("orders (41 times)  [no grant allows it]")


def test_nothing_in_a_record_steers_the_terminal() -> None:
    record = AuditRecord(
        time="2026-11-03T12:00:00.123456Z",
        node=1,
        event=AuditEvent.LOGIN,
        outcome=AuditOutcome.DENIED,
        who="\x1b[2J\n",
    )
    assert audit_line(record).isprintable()


def test_a_report_says_what_is_wrong_and_what_is_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_report(
        Report(
            records=7,
            first_offset=0,
            findings=(Finding(trouble=Trouble.CUT_OFF, sentence="the end is gone", offset=7),),
            notes=("something has expired",),
            writers=(
                WriterSummary(
                    writer="1-a",
                    records=7,
                    first_number=0,
                    last_number=6,
                    has_ended=False,
                    lost=3,
                ),
            ),
            unvouched=2,
            head=Seen(offset=6, hash="aa", digest="bb"),
        )
    )
    assert capsys.readouterr().out.splitlines() == [
        "CUT OFF: the end is gone",
        "7 audit records of 1 writers: 1 findings.",
        "Writer 1-a had to drop 3 records.",
        "Note: something has expired.",
        "Nobody vouches yet for the newest 2 records: what else was there could be taken away"
        " without a trace.",
        "Head: offset 6, digest bb",
    ]


def test_since_is_a_time_or_an_age() -> None:
    hour_ago = (time.time() - 3_600) * 1e6
    for text in ("1h", "-1h"):
        assert abs(since(text).value - hour_ago) < 5e6
    assert since("2026-11-03T12:00Z").value == 1_793_707_200_000_000
    for text in ("latest", "17", "soon"):
        with pytest.raises(argparse.ArgumentTypeError):
            since(text)


def test_the_words_are_understood() -> None:
    found = grammar().parse_args(
        ["audit", "list", "--who", "a", "--what", "user.*", "--since", "2h"]
    )
    assert (found.run, found.who, found.what, found.follow) == (
        "audit:list_some",
        "a",
        "user.*",
        False,
    )
    found = grammar().parse_args(["audit", "verify", "--anchor", "f", "--write-anchor", "g"])
    assert (found.run, found.anchor, found.write_anchor) == ("audit:verify", "f", "g")


def test_a_name_with_blanks_does_not_pass_for_something_else_in_the_line() -> None:
    forged = "orders  [allow topic.* on topic:* (of the role 'admin')]"
    record = AuditRecord(
        time="2026-11-17T12:00:00.000000Z",
        node=1,
        event=AuditEvent.DENIAL,
        outcome=AuditOutcome.DENIED,
        who="jwt:eve  wire 10.0.0.1",
        proof="jwt",
        what="fetch",
        kind="topic",
        resource=forged,
        rule="no grant allows it",
    )
    line = audit_line(record)
    assert f'topic "{forged}"  [no grant allows it]' in line
    assert '"jwt:eve  wire 10.0.0.1" (jwt)' in line
