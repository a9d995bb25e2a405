"""What a soak says about its samples."""

from __future__ import annotations

from dataclasses import replace

from angarium.testing.cluster.soak import Sample, curve, growth, report

FLAT = Sample(
    seconds=10.0,
    memory_mb=100.0,
    open_files=30,
    disk_mb=200.0,
    processor_percent=40.0,
    records_per_second=10_000.0,
    p50_ms=1.0,
    p99_ms=5.0,
    delivered_p99_ms=6.0,
    behind=0,
)


def growing(per_sample: float, count: int = 50) -> list[Sample]:
    return [replace(FLAT, memory_mb=100.0 * (1 + per_sample * n)) for n in range(count)]


def test_what_stays_as_it_is_is_well() -> None:
    text, is_well = report([FLAT] * 50, [])
    assert is_well
    assert "| memory_mb | 100.0 | 100.0 | 100.0 | 1.00 |" in text


def test_a_leak_is_found_though_it_is_slow() -> None:
    samples = growing(0.02)
    assert growth(samples, "memory_mb") > 1.15
    text, is_well = report(samples, [])
    assert not is_well
    assert "more than 1.15" in text


def test_growth_during_the_warm_up_does_not_count() -> None:
    samples = growing(0.1, 20) + [replace(FLAT, memory_mb=300.0)] * 30
    assert growth(samples, "memory_mb") == 1.0
    assert report(samples, [])[1]


def test_a_missing_record_is_never_well() -> None:
    text, is_well = report([FLAT] * 50, ["3 records never came"])
    assert not is_well
    assert "3 records never came" in text


def test_a_curve_has_at_most_its_columns_and_ends_at_the_top_where_it_grew() -> None:
    line = curve(growing(0.1, 500), "memory_mb")
    assert len(line) <= 60
    assert line[-1] == "█"
    assert line[0] != "█"
