"""Each checker is shown a history that breaks just its promise, and one that keeps it."""

from __future__ import annotations

import pytest

from angarium.ids import NodeId, RaftGroupId
from angarium.modes import DeliveryMode
from angarium.testing.checkers import violations
from angarium.testing.history import (
    Fetch,
    FinalLog,
    HighWater,
    History,
    LogRecord,
    Publish,
    Result,
    Transaction,
    Trim,
)

GROUP = RaftGroupId(1)
NODE = NodeId(1)


def published(
    sequence: int,
    *,
    at: int,
    offset: int,
    mode: DeliveryMode = DeliveryMode.CONSISTENT,
    result: Result = Result.OK,
    took: int = 5,
    provisional: bool = False,
) -> Publish:
    return Publish(
        group=GROUP,
        producer=7,
        epoch=0,
        sequence=sequence,
        values=(b"%d" % sequence,),
        mode=mode,
        invoked=at,
        completed=at + took,
        result=result,
        base_offset=offset,
        node=NODE,
        term=1,
        provisional=provisional,
    )


def log_of(*sequences: int, start: int = 0, node: int = 1) -> FinalLog:
    records = tuple(
        LogRecord(offset, b"%d" % sequence, 7, 0, sequence)
        for offset, sequence in enumerate(sequences, start)
    )
    return FinalLog(NodeId(node), GROUP, start, start + len(records), records)


def broken(history: History) -> set[str]:
    return {violation.check for violation in violations(history)}


def test_a_history_that_keeps_its_promises_has_no_violation() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        fetches=[Fetch(GROUP, NODE, 20, 22, 0, ((0, b"0"), (1, b"1")))],
        high_waters=[HighWater(GROUP, NODE, 30, 31, 2)],
        final=[log_of(0, 1), log_of(0, 1, node=2)],
    )
    assert violations(history) == []


def test_an_acknowledged_record_that_is_gone_is_lost() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        final=[log_of(0)],
    )
    assert broken(history) == {"C1"}


def test_a_trimmed_record_is_not_lost() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        trims=[Trim(GROUP, start=1, invoked=12)],
        final=[log_of(1, start=1)],
    )
    assert broken(history) == set()


def test_a_log_that_begins_where_nobody_wanted_it_to_is_found() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        trims=[Trim(GROUP, start=0, invoked=12)],
        final=[log_of(1, start=1)],
    )
    assert broken(history) == {"C1"}


def test_an_acknowledged_trim_that_is_forgotten_is_found() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        trims=[Trim(GROUP, start=1, invoked=12, result=Result.OK)],
        final=[log_of(0, 1)],
    )
    assert broken(history) == {"C1"}


def test_what_was_said_to_be_a_duplicate_must_be_there() -> None:
    answered = published(1, at=10, offset=-1, result=Result.INFO)
    answered.stored = True
    history = History(publishes=[published(0, at=0, offset=0), answered], final=[log_of(0)])
    assert broken(history) == {"C1"}


def transaction(*, committed: bool | None, at: int | None = None) -> Transaction:
    return Transaction(
        name="t",
        epoch=0,
        sequence=1,
        home=None,
        values={GROUP: (b"x", b"y")},
        dropped={GROUP: (b"z",)},
        invoked=0,
        committed=committed,
        placed={} if at is None else {GROUP: (at, at + 2, 9)},
    )


def staged_log(*values: bytes, start: int = 0) -> FinalLog:
    records = tuple(LogRecord(offset, value, 0, 0, 0) for offset, value in enumerate(values, start))
    return FinalLog(NODE, GROUP, start, start + len(records), records)


@pytest.mark.parametrize(
    ("one", "log", "checks"),
    [
        (transaction(committed=True, at=0), staged_log(b"x", b"y"), set()),
        (transaction(committed=True, at=0), staged_log(), {"C1"}),
        (transaction(committed=True, at=0), staged_log(b"x"), {"C1"}),
        (transaction(committed=True, at=1), staged_log(b"x", b"y"), {"C1"}),
        (transaction(committed=None), staged_log(), set()),
        (transaction(committed=None), staged_log(b"y"), {"C1"}),
        (transaction(committed=None), staged_log(b"x", b"z", b"y"), {"C1"}),
        (transaction(committed=False), staged_log(), set()),
        (transaction(committed=False), staged_log(b"x", b"y"), {"C1"}),
        (transaction(committed=True, at=0), staged_log(b"x", b"y", b"x"), {"C1", "C6"}),
    ],
)
def test_a_transaction_is_whole_or_absent(
    one: Transaction, log: FinalLog, checks: set[str]
) -> None:
    history = History(transactions=[one], final=[log])
    assert broken(history) - {"C1"} == checks - {"C1"}
    assert ("C1" in broken(history)) == ("C1" in checks)


def test_a_transaction_of_which_a_trim_took_the_beginning_is_whole() -> None:
    history = History(
        transactions=[transaction(committed=True, at=4)],
        trims=[Trim(GROUP, start=5, invoked=12)],
        final=[staged_log(b"y", start=5)],
    )
    assert broken(history) == set()


def test_what_the_run_noticed_is_reported_under_its_check() -> None:
    history = History(incidents=["C10: nobody answered", "two leaders"])
    assert broken(history) == {"C9", "C10"}


def test_a_record_nobody_sent_is_invented() -> None:
    history = History(publishes=[published(0, at=0, offset=0)], final=[log_of(0, 5)])
    assert "C1" in broken(history)


def test_two_replicas_that_differ_at_an_offset_are_found() -> None:
    attempts = [
        published(0, at=0, offset=-1, result=Result.INFO),
        published(1, at=0, offset=-1, result=Result.INFO),
    ]
    history = History(publishes=attempts, final=[log_of(0), log_of(1, node=2)])
    assert broken(history) == {"C2"}


def test_an_offset_below_one_already_known_is_found() -> None:
    history = History(
        publishes=[published(0, at=0, offset=1), published(1, at=10, offset=0)],
        final=[log_of(1, 0)],
    )
    assert "C3" in broken(history)


def test_a_producer_whose_records_changed_places_is_found() -> None:
    attempts = [
        published(0, at=0, offset=-1, result=Result.INFO),
        published(1, at=0, offset=-1, result=Result.INFO),
    ]
    assert broken(History(publishes=attempts, final=[log_of(1, 0)])) == {"C3"}


def test_a_read_with_a_hole_is_found() -> None:
    history = History(
        publishes=[published(n, at=0, offset=n) for n in range(3)],
        fetches=[Fetch(GROUP, NODE, 20, 22, 0, ((0, b"0"), (2, b"2")))],
        final=[log_of(0, 1, 2)],
    )
    assert broken(history) == {"C3"}


def test_a_declared_gap_is_no_hole() -> None:
    records = (LogRecord(0, b"0", 7, 0, 0), LogRecord(3, b"1", 7, 0, 1))
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=3)],
        final=[FinalLog(NODE, GROUP, 0, 4, records, gaps=((1, 3),))],
    )
    assert broken(history) == set()


def test_a_stale_high_water_is_found() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0)],
        high_waters=[HighWater(GROUP, NODE, 30, 31, 0)],
        final=[log_of(0)],
    )
    assert broken(history) == {"C4"}


def test_a_high_water_that_overlaps_the_ack_may_miss_it() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0)],
        high_waters=[HighWater(GROUP, NODE, 3, 31, 0)],
        final=[log_of(0)],
    )
    assert broken(history) == set()


def fetched(
    *records: tuple[int, bytes], at: int, end: int, from_offset: int = 0, node: int = 1
) -> Fetch:
    return Fetch(
        GROUP, NodeId(node), at, at + 2, from_offset, records, end=end, is_empty=not records
    )


def test_a_node_that_has_forgotten_what_it_acknowledged_is_found() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        fetches=[fetched((0, b"0"), at=20, end=1)],
        final=[log_of(0, 1)],
    )
    assert broken(history) == {"C4"}
    # Another node may not have heard of it yet, nor this one when it was asked.
    history.fetches = [fetched((0, b"0"), at=20, end=1, node=2), fetched((0, b"0"), at=14, end=1)]
    assert broken(history) == set()


def test_a_node_that_shows_less_than_before_is_found() -> None:
    whole = fetched((0, b"0"), (1, b"1"), at=20, end=2, node=2)
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        fetches=[whole, fetched((0, b"0"), at=30, end=1, node=2)],
        final=[log_of(0, 1)],
    )
    assert broken(history) == {"C4"}
    history.fetches = [whole, fetched((0, b"0"), at=21, end=1, node=2)]
    assert broken(history) == set(), "they were under way at the same time"


def test_a_fetch_that_finds_nothing_where_something_is_is_found() -> None:
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1)],
        fetches=[fetched(at=20, end=2, from_offset=1)],
        final=[log_of(0, 1)],
    )
    assert broken(history) == {"C4"}
    history.fetches = [fetched(at=20, end=2, from_offset=2)]
    assert broken(history) == set(), "there is the end"
    history.fetches = [fetched(at=2, end=1, from_offset=1)]
    assert broken(history) == set(), "it was not committed then"


def test_a_refused_record_that_is_stored_is_found() -> None:
    history = History(
        publishes=[published(0, at=0, offset=-1, result=Result.FAIL)], final=[log_of(0)]
    )
    assert broken(history) == {"C5"}


def test_a_sequence_stored_twice_is_found() -> None:
    history = History(publishes=[published(0, at=0, offset=0)], final=[log_of(0, 0)])
    assert "C6" in broken(history)


def test_an_eventual_record_may_go_only_with_its_leader() -> None:
    early = published(0, at=0, offset=0, mode=DeliveryMode.EVENTUAL, provisional=True)
    kept_leading = History(publishes=[early], final=[log_of()])
    assert broken(kept_leading) == {"C8"}
    deposed = History(publishes=[early], final=[log_of()], ended_tenures={(GROUP, NODE, 1)})
    assert broken(deposed) == set()


def test_what_the_run_noticed_itself_counts() -> None:
    assert broken(History(incidents=["two leaders in a term"])) == {"C9"}


def test_a_provisional_offset_of_a_leader_that_was_replaced_may_be_anothers() -> None:
    late = published(7, at=50, offset=0, mode=DeliveryMode.EVENTUAL, provisional=True)
    history = History(
        publishes=[published(0, at=0, offset=0), published(1, at=10, offset=1), late],
        final=[log_of(0, 1)],
        ended_tenures={(GROUP, NODE, 1)},
    )
    assert violations(history) == []


def test_a_provisional_offset_that_holds_grows_with_time_like_any_other() -> None:
    late = published(0, at=50, offset=0, mode=DeliveryMode.EVENTUAL, provisional=True)
    history = History(publishes=[published(1, at=10, offset=1), late], final=[log_of(0, 1)])
    assert broken(history) == {"C3"}


def sent_back(name: str, *, committed: bool | None) -> Transaction:
    value = f"sent-back.7.{name}".encode()
    return Transaction(
        name=name,
        epoch=0,
        sequence=1,
        home=None,
        values={GROUP: (value,)},
        dropped={},
        invoked=0,
        committed=committed,
    )


def test_a_dead_letter_that_was_sent_back_twice_is_found() -> None:
    first, second = sent_back("one", committed=True), sent_back("other", committed=None)
    history = History(transactions=[first, second])
    history.final = [staged_log(b"sent-back.7.one")]
    assert broken(history) == set()
    history.final = [staged_log(b"sent-back.7.one", b"sent-back.7.other")]
    assert broken(history) == {"C6"}
