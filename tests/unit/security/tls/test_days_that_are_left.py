"""Warnings and metrics about certificates that expire."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from angarium.security.tls import Certificate, TlsWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 100 * DAY

    def __call__(self) -> float:
        return self.now


def watch(clock: Clock, *, days_left: float) -> TlsWatch:
    certificate = Certificate(begins_at=0, expires_at=clock.now + days_left * DAY)

    def certificates() -> Iterator[tuple[str, Certificate]]:
        yield "wire", certificate
        yield "nodes", certificate

    return TlsWatch([], certificates, clock=clock)


def test_a_certificate_with_few_days_left_is_told_once_a_day(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    watching = watch(clock, days_left=14.5)
    watching.warn()
    assert caplog.records == []
    clock.now += DAY
    for _ in range(5):
        watching.warn()
    assert [one.__dict__["of"] for one in caplog.records] == ["wire", "nodes"]
    assert caplog.records[0].__dict__["days_left"] == 13.5
    clock.now += DAY
    watching.warn()
    assert len(caplog.records) == 4


def test_the_metric_has_the_days_for_each_use() -> None:
    days, reloads = watch(Clock(), days_left=3.25).families()
    assert days.name == "angarium_tls_certificate_days_left"
    assert {one.labels: one.value for one in days.samples} == {
        (("use", "wire"),): 3.25,
        (("use", "nodes"),): 3.25,
    }
    assert {one.labels for one in reloads.samples} == {
        (("outcome", "taken"),),
        (("outcome", "refused"),),
    }


def test_new_files_are_told_of_once_each() -> None:
    counts = SimpleNamespace(reloads=0, refusals=0)
    watching = TlsWatch([counts], lambda: iter(()))  # type: ignore[list-item]
    told: list[str] = []
    watching.on_change = told.append
    watching._tell()
    counts.reloads = 2
    watching._tell()
    watching._tell()
    counts.refusals = 1
    watching._tell()
    assert told == ["taken", "refused"]
