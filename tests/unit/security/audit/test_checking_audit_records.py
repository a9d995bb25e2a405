"""Audit records hang together: what is taken out, changed, moved or added is found and named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.security.audit.written_topic import Stored, WrittenTopic, checked, renumbered

from angarium.api.audit import AuditEvent, Seen
from angarium.security.audit import Finding, Report, Trouble, entries

A, B, C = "1-a", "2-b", "3-c"


def a_topic(rounds: int = 4) -> WrittenTopic:
    """Return a topic that three writers have written in turn, each having read what is there."""
    topic = WrittenTopic()
    for _ in range(rounds):
        for writer in (A, B, C):
            topic.write(writer, what="create_topic", resource=f"t{len(topic.stored)}")
    return topic


def only(report: Report) -> Finding:
    assert len(report.findings) == 1, [one.sentence for one in report.findings]
    return report.findings[0]


def test_records_that_nobody_touched_are_sound() -> None:
    topic = a_topic()
    report = checked(topic.stored)
    assert report.is_sound, report.findings
    assert (report.records, report.first_offset, report.notes) == (12, 0, ())
    assert [(one.writer, one.records, one.last_number) for one in report.writers] == [
        (A, 4, 3),
        (B, 4, 3),
        (C, 4, 3),
    ]
    assert report.head is not None
    assert report.head.offset == 11
    assert report.unvouched == 1, "nobody has seen the newest one yet"


def test_an_empty_topic_is_sound() -> None:
    report = checked([])
    assert (report.is_sound, report.records, report.head) == (True, 0, None)


@pytest.mark.parametrize("is_copy", [False, True])
@pytest.mark.parametrize("at", range(11))
def test_a_removed_record_is_named(at: int, is_copy: bool) -> None:
    topic = a_topic()
    gone = topic.stored.pop(at)
    report = checked(renumbered(topic.stored) if is_copy else topic.stored)
    trouble = {one.trouble for one in report.findings}
    assert trouble & {Trouble.REMOVED, Trouble.ALTERED}, report.findings
    if at < 9:  # the writer has written again since, so its own chain has the gap
        found = only(report)
        assert found.trouble is Trouble.REMOVED
        assert (found.writer, found.number) == (gone.record.writer, gone.record.number)
        assert found.until_number == gone.record.number
        assert f"number {gone.record.number} of writer {gone.record.writer}" in found.sentence


def test_several_removed_records_are_one_finding() -> None:
    topic = a_topic()
    kept = [
        one for one in topic.stored if one.record.writer != B or one.record.number not in {1, 2}
    ]
    found = only(checked(kept))
    assert found.trouble is Trouble.REMOVED
    assert (found.writer, found.number, found.until_number) == (B, 1, 2)


def test_the_newest_record_may_go_without_a_trace_but_not_past_an_anchor() -> None:
    topic = a_topic()
    anchor = topic.anchor()
    topic.stored.pop()
    assert checked(topic.stored).is_sound
    found = only(checked(topic.stored, anchors=(anchor,)))
    assert (found.trouble, found.offset, found.until_offset) == (Trouble.CUT_OFF, 11, 11)
    assert "at least 1 records were removed" in found.sentence


def test_a_removed_beginning_is_named() -> None:
    topic = a_topic()
    report = checked(renumbered(topic.stored[4:]))
    removed = {(one.writer, one.number, one.until_number) for one in report.findings}
    assert {(A, 0, 1), (B, 0, 0), (C, 0, 0)} <= removed


def test_what_has_expired_is_no_finding_and_is_said() -> None:
    topic = a_topic()
    report = checked(topic.stored[4:], start_offset=4)
    assert report.is_sound, report.findings
    assert "cannot be shown" in report.notes[0]
    # Between the records that are left everything is found as before.
    del topic.stored[8]
    assert only(checked(topic.stored[4:], start_offset=4)).trouble is Trouble.REMOVED


@pytest.mark.parametrize("at", range(12))
def test_a_changed_record_is_named_by_its_own_hash(at: int) -> None:
    topic = a_topic()
    one = topic.stored[at]
    topic.stored[at] = one._replace(value=one.value.replace(b"create", b"delete"))
    found = only(checked(topic.stored))
    assert (found.trouble, found.offset) == (Trouble.CHANGED, at)
    assert (found.writer, found.number) == (one.record.writer, one.record.number)


@pytest.mark.parametrize("at", range(11))
def test_a_changed_record_whose_hash_was_made_anew_is_named_by_others(at: int) -> None:
    topic = a_topic()
    topic.stored[at] = topic.stored[at].rewritten(who="eve")
    found = only(checked(topic.stored))
    assert found.offset == at
    assert found.trouble is (Trouble.CHANGED if at < 9 else Trouble.ALTERED)


def test_a_chain_that_was_made_anew_is_found_by_what_others_have_seen() -> None:
    topic, forged = a_topic(), WrittenTopic()
    for one in topic.stored:
        # The same records, but for one, all of whose writer's hashes were computed again.
        who = "eve" if one.offset == 3 else one.record.who
        forged.write(one.record.writer, what=one.record.what, resource=one.record.resource, who=who)
    mixed = [
        ours if ours.record.writer == A else theirs
        for ours, theirs in zip(forged.stored, topic.stored, strict=True)
    ]
    report = checked(mixed)
    assert {one.trouble for one in report.findings} == {Trouble.ALTERED}
    assert min(one.offset for one in report.findings) == 3
    # All of them at once cannot be told from the truth, except by who has kept an anchor.
    assert checked(forged.stored).is_sound
    assert not checked(forged.stored, anchors=(topic.anchor(),)).is_sound


@pytest.mark.parametrize("at", range(10))
def test_two_swapped_records_of_different_writers_are_named(at: int) -> None:
    topic = a_topic()
    stored = topic.stored
    stored[at], stored[at + 1] = stored[at + 1], stored[at]
    found = only(checked(renumbered(stored)))
    assert found.trouble is Trouble.REORDERED
    assert found.offset in {at, at + 1}


def test_two_swapped_records_of_one_writer_are_named() -> None:
    topic = WrittenTopic()
    for _ in range(6):
        topic.write(A)
    stored = topic.stored
    stored[2], stored[3] = stored[3], stored[2]
    found = checked(renumbered(stored)).findings
    assert {one.trouble for one in found} == {Trouble.REORDERED}
    assert found[0].number in {2, 3}


def test_a_record_that_was_moved_far_is_found() -> None:
    topic = a_topic()
    topic.stored.insert(9, topic.stored.pop(2))
    found = checked(renumbered(topic.stored)).findings
    assert Trouble.REORDERED in {one.trouble for one in found}
    assert C in {one.writer for one in found}


def test_a_repeated_record_is_named() -> None:
    topic = a_topic()
    topic.stored.insert(7, topic.stored[2])
    found = [one for one in checked(renumbered(topic.stored)).findings if one.number == 0]
    assert {one.trouble for one in found} == {Trouble.REPEATED}
    assert found[0].offset == 7


def test_a_record_that_was_put_in_is_named() -> None:
    topic = a_topic()
    alone = WrittenTopic()
    alone.write("9-z", who="eve")
    topic.stored.insert(5, alone.stored[0])
    found = only(checked(renumbered(topic.stored)))
    assert (found.trouble, found.offset, found.writer) == (Trouble.PUT_IN, 5, "9-z")


def test_what_is_no_audit_record_is_named() -> None:
    topic = a_topic()
    topic.stored[4] = Stored(4, b"\xff not JSON", "")
    report = checked(topic.stored)
    assert Trouble.UNREADABLE in {one.trouble for one in report.findings}
    assert {one.offset for one in report.findings if one.trouble is Trouble.UNREADABLE} == {4}


def test_a_writer_that_ended_writes_nothing_more() -> None:
    topic = WrittenTopic()
    topic.write(A)
    topic.write(A, event=AuditEvent.AUDIT, what="end")
    assert checked(topic.stored).writers[0].has_ended
    topic.write(A)
    assert only(checked(topic.stored)).trouble is Trouble.PUT_IN


def test_dropped_records_are_counted() -> None:
    topic = WrittenTopic()
    topic.write(A)
    topic.write(A, event=AuditEvent.AUDIT, what="drop", count=7)
    report = checked(topic.stored)
    assert report.is_sound
    assert report.writers[0].lost == 7


def test_an_anchor_that_has_expired_or_makes_no_sense_is_noted() -> None:
    topic = a_topic()
    anchor = WrittenTopic()
    anchor.write(A)
    report = checked(topic.stored[4:], start_offset=4, anchors=(anchor.anchor(),))
    assert report.is_sound
    assert any("has expired: nothing can be held against it" in one for one in report.notes)
    silly = Seen(offset=3, hash="no hex", digest="")
    assert any("make sense" in one for one in checked(topic.stored, anchors=(silly,)).notes)


def test_an_anchor_in_the_middle_is_held_against_what_came_before() -> None:
    topic = a_topic()
    anchor = topic.anchor()
    topic.write(B)
    assert checked(topic.stored, anchors=(anchor,)).is_sound
    topic.stored[11] = topic.stored[11].rewritten(who="eve")
    found = checked(topic.stored, anchors=(anchor,)).findings
    assert any("the anchor" in one.sentence for one in found)


steps = st.lists(st.tuples(st.sampled_from([A, B, C]), st.booleans()), min_size=1, max_size=24)


@given(steps)
def test_writers_that_read_late_are_sound(order: list[tuple[str, bool]]) -> None:
    topic = WrittenTopic()
    for writer, looks in order:
        topic.write(writer, looks=looks)
    report = checked(topic.stored)
    assert report.is_sound, report.findings
    for start in range(len(order)):
        rest = checked(topic.stored[start:], start_offset=start)
        assert rest.is_sound, (start, rest.findings)


@given(steps, st.data())
def test_whatever_one_record_suffers_is_found_unless_nobody_has_seen_it(
    order: list[tuple[str, bool]], data: st.DataObject
) -> None:
    topic = WrittenTopic()
    for writer, looks in order:
        topic.write(writer, looks=looks)
    # Somebody who has read everything vouches for it.
    topic.write("4-d")
    stored, last = list(topic.stored), len(order)
    at = data.draw(st.integers(0, last - 1))
    match data.draw(st.sampled_from(["remove", "change", "swap", "repeat"])):
        case "remove":
            del stored[at]
        case "change":
            stored[at] = stored[at].rewritten(who="eve")
        case "swap":
            to = data.draw(st.integers(0, last - 1).filter(lambda one: one != at))
            stored[at], stored[to] = stored[to], stored[at]
        case _:
            stored.insert(data.draw(st.integers(0, last)), stored[at])
    assert not checked(stored).is_sound
    assert not checked(renumbered(stored)).is_sound
    assert not checked(renumbered(stored), anchors=(topic.anchor(),)).is_sound


def test_what_is_too_far_back_is_not_checked_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries.Entries.__init__, "__kwdefaults__", {"kept_max": 4})
    topic = WrittenTopic()
    topic.write(A)
    topic.write(B)
    for _ in range(10):
        topic.write(A)
    topic.write(B, looks=False)
    report = checked(topic.stored)
    assert report.is_sound
    assert report.notes == ("1 records saw only what has expired, or is too far back to check",)


def test_many_records_are_checked_in_linear_time() -> None:
    topic = WrittenTopic()
    writers = itertools.cycle([A, B, C])
    for _ in range(3_000):
        topic.write(next(writers), looks=False)
    assert checked(topic.stored).is_sound
