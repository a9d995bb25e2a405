"""What comes in floods is told in few records, whose counts are right."""

from __future__ import annotations

from collections import Counter

from angarium.api.audit import AuditEvent, AuditOutcome, AuditRecord
from angarium.ids import Micros
from angarium.security.audit import Tallies
from angarium.security.audit.tallies import (
    CALLERS_MAX,
    KINDS_MAX,
    KINDS_OF_A_CALLER_MAX,
    RECORDS_MAX,
    SEVERAL_CALLERS,
    SEVERAL_RESOURCES,
    WINDOW_MICROS,
)
from angarium.security.audit.times import time_text
from angarium.security.audit.wording import named, said


class Flood:
    """Denials, as somebody would note them, and a clock."""

    def __init__(self) -> None:
        self.now = Micros(1_700_000_000_000_000)
        self.tallies = Tallies(lambda: self.now)
        self.written: list[AuditRecord] = []

    def deny(self, who: str, resource: str, *, address: str = "10.0.0.1") -> None:
        def make() -> AuditRecord:
            return AuditRecord(
                time=time_text(self.now),
                node=1,
                event=AuditEvent.DENIAL,
                outcome=AuditOutcome.DENIED,
                who=who,
                address=address,
                door="http",
                resource=resource,
            )

        found = self.tallies.noted((who, resource, address), make)
        if found is not None:
            self.written.append(found)

    def pass_windows(self, count: int = 1) -> None:
        for _ in range(count):
            self.now = Micros(self.now + WINDOW_MICROS)
            self.written += self.tallies.due()

    @property
    def counted(self) -> int:
        return sum(one.count for one in self.written)


def test_the_first_is_told_at_once_and_the_rest_as_a_count() -> None:
    flood = Flood()
    flood.deny("eve", "secret")
    assert [one.count for one in flood.written] == [1]
    for _ in range(41):
        flood.now = Micros(flood.now + 1_000)
        flood.deny("eve", "secret")
    assert flood.tallies.due() == []
    flood.pass_windows()
    first, rest = flood.written
    assert (first.count, first.since, rest.count, rest.resource) == (1, "", 41, "secret")
    assert (rest.since, rest.time) == ("2023-11-14T22:13:20.001000Z", "2023-11-14T22:13:20.041000Z")
    assert flood.tallies.coalesced == 41


def test_what_goes_on_is_one_record_for_each_window_and_what_stops_is_forgotten() -> None:
    flood = Flood()
    for _ in range(5):
        for _ in range(10):
            flood.deny("eve", "secret")
        flood.pass_windows()
    assert [one.count for one in flood.written] == [1, 9, 10, 10, 10, 10]
    flood.pass_windows(2)
    flood.deny("eve", "secret")
    assert [one.count for one in flood.written[6:]] == [1], "told at once again"


def test_ten_thousand_names_of_one_caller_are_few_records() -> None:
    flood = Flood()
    for number in range(10_000):
        flood.deny("eve", f"topic-{number}")
    flood.pass_windows()
    assert len(flood.written) == KINDS_OF_A_CALLER_MAX + 1 <= RECORDS_MAX
    assert flood.counted == 10_000
    rest = flood.written[-1]
    assert (rest.who, rest.resource, rest.details) == ("eve", "", SEVERAL_RESOURCES)
    assert rest.count == 10_000 - KINDS_OF_A_CALLER_MAX


def test_who_asks_for_many_names_does_not_hide_what_somebody_else_asks_for() -> None:
    flood = Flood()
    for window in range(3):
        for number in range(1_000):
            flood.deny("eve", f"topic-{window}-{number}")
        flood.deny("mallory", f"salaries-{window}")
        assert flood.written[-1].resource == f"salaries-{window}"
        flood.pass_windows(2)  # what eve had is forgotten, and she begins anew
    assert flood.counted == 3_003


def test_ten_thousand_callers_are_few_records() -> None:
    flood = Flood()
    for number in range(10_000):
        flood.deny(f"eve-{number}", "secret", address=f"10.0.{number % 256}.1")
    flood.pass_windows()
    assert len(flood.written) == KINDS_MAX + CALLERS_MAX + 1 <= RECORDS_MAX
    assert flood.counted == 10_000
    together = [one for one in flood.written if one.details == SEVERAL_CALLERS]
    assert [(one.who, one.address, one.door) for one in together] == [("", "", "")]
    assert Counter(one.details for one in flood.written)[SEVERAL_RESOURCES] == CALLERS_MAX


def test_the_last_look_tells_everything_that_was_counted() -> None:
    flood = Flood()
    for _ in range(3):
        flood.deny("eve", "secret")
    flood.written += flood.tallies.due(is_last=True)
    assert flood.counted == 3


def test_names_are_bounded_and_cannot_steer_a_terminal() -> None:
    assert named("orders") == "orders"
    assert named("a\nb\x1b[2J\u202e\ud800") == "a\\nb\\x1b[2J\\u202e\\ud800"
    long = named("x" * 1_000_000)
    assert long == "x" * 256 + "… (1000000 characters)"
    assert len(said("\U000e0001" * 1_000_000)) < 11_000
