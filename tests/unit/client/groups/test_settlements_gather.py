"""Settlements gather in any thread, travel in bounded flights, and none is lost on the way."""

from __future__ import annotations

import threading
import time

from angarium.api import Verb
from angarium.client.groups.lent_partition import (
    ACKS_PER_SETTLEMENT,
    FRAME_BYTES,
    LentPartition,
    Said,
)
from angarium.client.groups.loans import Loan
from angarium.client.groups.spans import offsets_in, spans_of
from angarium.errors import GroupFenced, NotLeader


def lent_partition(*, is_ordered: bool = False) -> LentPartition:
    return LentPartition(
        "t", 0, group="g", is_ordered=is_ordered, call=lambda: None, now=time.monotonic
    )


def a_loan(partition: LentPartition, serial: int, *ranges: int) -> Loan:
    loan = Loan(
        partition, serial, ranges=ranges, attempt=1, generation=0, renew_at=0.0, keep_until=0.0
    )
    partition.loans[serial] = loan
    return loan


def landed(partition: LentPartition) -> list[Said]:
    """Send and answer what has gathered; return it."""
    flight = partition.board(1.0)
    if flight is None:
        return []
    said = list(flight.said)
    assert partition.answer([None] * len(said))
    assert partition.land() == []
    return said


def test_no_acknowledgement_is_lost_between_threads() -> None:
    partition = lent_partition()
    loans = [
        a_loan(partition, serial, serial * 1_000, serial * 1_000 + 1_000) for serial in range(40)
    ]
    sent: list[int] = []

    def acknowledge(share: int) -> None:
        for offset in range(share, 1_000, 4):
            for loan in loans:
                loan.ack(loan.ranges[0] + offset)
                loan.ack(loan.ranges[0] + offset)  # saying it twice changes nothing

    threads = [threading.Thread(target=acknowledge, args=(share,)) for share in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for said in landed(partition):
            sent += offsets_in(said.ranges)
    while found := landed(partition):
        for said in found:
            sent += offsets_in(said.ranges)
    assert sorted(sent) == list(range(40_000))
    assert not partition.loans
    assert partition.is_quiet


def test_flights_are_bounded() -> None:
    partition = lent_partition()
    scattered = a_loan(partition, 1, *spans_of(range(0, 40_000, 2)))
    scattered.open(range(0, 40_000, 2))
    for offset in range(0, 40_000, 2):
        scattered.ack(offset)
    sent = []
    while found := landed(partition):
        assert len(found[0].ranges) <= 2 * ACKS_PER_SETTLEMENT
        assert sum(said.size for said in found) <= FRAME_BYTES + found[-1].size
        sent += [offset for said in found for offset in offsets_in(said.ranges)]
    assert sent == list(range(0, 40_000, 2))


def test_what_is_refused_is_told_from_what_is_not() -> None:
    partition = lent_partition()
    loan = a_loan(partition, 1, 0, 64)
    loan.partition.say(Said(loan, Verb.ACK, loan.take_out(None)))
    flight = partition.board(1.0)
    assert flight is not None
    rounds = 0
    while True:
        rounds += 1
        errors = [
            GroupFenced("another's") if 41 in set(offsets_in(said.ranges)) else None
            for said in flight.said
        ]
        if partition.answer(errors):
            break
    assert rounds == 7  # halved six times
    ((said, error),) = partition.land()
    assert said.ranges == (41, 42)
    assert isinstance(error, GroupFenced)


def test_what_passes_is_sent_again_and_the_rest_is_not() -> None:
    partition = lent_partition()
    first, second = a_loan(partition, 1, 0, 5), a_loan(partition, 2, 5, 9)
    for loan in (first, second):
        partition.say(Said(loan, Verb.ACK, loan.take_out(None)))
    flight = partition.board(1.0)
    assert flight is not None
    assert not partition.answer([None, NotLeader("a moment")])
    assert [said.loan for said in flight.said] == [second]
    assert partition.unsettled(second) == (5, 9)
    assert partition.answer([None])
    assert partition.land() == []


def test_what_a_member_holds_includes_what_was_said_and_not_answered() -> None:
    partition = lent_partition()
    loan = a_loan(partition, 1, 0, 10)
    loan.ack(3)
    partition.board(1.0)
    loan.ack(4)
    partition.say(Said(loan, Verb.NACK, loan.take_out([5])))
    assert partition.unsettled(loan) == (0, 10)


def test_deliveries_from_before_the_broker_went_back_are_known() -> None:
    partition = lent_partition(is_ordered=True)
    first, second = a_loan(partition, 1, 0, 10), a_loan(partition, 2, 10, 20)
    partition.say(Said(first, Verb.NACK, first.take_out([4])))
    assert first.left == {0, 1, 2, 3}
    assert not second.remaining()
    assert partition.is_stale(20)
    assert not partition.is_stale(4)
    landed(partition)
    assert not partition.is_stale(20)
