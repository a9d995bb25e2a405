"""What a soak says about its samples."""

from __future__ import annotations

from dataclasses import replace

from angarium.testing.cluster.soak_report import Sample, by_minute, curve, growth, report

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
    assert curve([replace(FLAT, behind=-900), FLAT, replace(FLAT, behind=3)], "behind") == "▁▁█"


def test_the_table_by_the_minute_has_the_median_of_each() -> None:
    samples = [
        replace(FLAT, seconds=10.0 * (n + 1), memory_mb=float(n), p99_ms=9_000.0 if n == 3 else 5.0)
        for n in range(12)
    ]
    lines = by_minute(samples).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("| minute | memory_mb | open_files | disk_mb |")
    assert lines[2].startswith("| 1 | 2.5 | 30 | 200 |")
    assert lines[3].startswith("| 2 | 8.5 | 30 | 200 |")
    assert "9,000" not in lines[2]


def test_the_verdict_is_a_sentence() -> None:
    assert "nothing has grown" in report([FLAT] * 50, [])[0]
    assert "memory_mb grew" in report(growing(0.02), [])[0]
    assert "1 things that must not happen did" in report([FLAT] * 50, ["lost"])[0]


def test_what_a_run_does_not_have_is_not_shown() -> None:
    assert "handed_p99_ms" not in report([FLAT] * 50, [])[0]
    assert "handed_p99_ms" in report([replace(FLAT, handed_p99_ms=7.0)] * 50, [])[0]
