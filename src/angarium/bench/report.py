"""What came out, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.bench.latency import Latency
from angarium.bench.verify import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

SYNC_POLICIES = {
    "consistent": "acknowledged when a majority of replicas has fsynced it",
    "eventual": "acknowledged when the leader has appended it; fsynced by a majority soon after",
    "performance": "acknowledged when handed to the subscribers connected; stored nowhere",
}


class NodeUsage(msgspec.Struct, frozen=True):
    """One node over the window."""

    cpu_s: float
    """Processor time used in the window."""
    wakeups: int
    """How often one of its threads was woken in the window."""
    memory_mb: float
    """Resident at the end of the window."""
    disk_mb: float | None
    """What its files take at the end; None where they cannot be seen."""


class GroupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a consumer group did, and where it stood in the end."""

    consumers: int
    consumed_per_s: float
    """Records that came, from the first to the last."""
    drain_s: float
    """From the end of the publishing until everything was settled."""
    unsettled: int
    """Records that were not settled in the end; there should be none."""
    in_hand_at_crash: int
    """So many may have come twice."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one measurement."""

    scenario: str
    protocol: str
    mode: str
    sync: str
    """What an acknowledgement meant."""
    nodes: int
    replicas: int
    topics: int
    partitions: int
    """In all topics together."""
    workers: int
    connections: int
    batch: int
    size: int
    rate: float | None
    """What was asked for; None: as fast as it goes."""
    seconds: float
    """The length of the window."""
    records: int
    """Acknowledged in the window; in the scenario catch-up, read in it."""
    records_per_s: float
    mb_per_s: float
    """Of values, in 10^6 bytes."""
    committed_per_s: float | None
    """In EVENTUAL mode: what was committed in the window, whatever was acknowledged."""
    received_per_s: float | None
    """What the subscriber received in the window."""
    as_records_per_s: float | None
    """In the scenario catch-up: the same reading, with a Python object made of each record."""
    publish: Latency | None
    end_to_end: Latency | None
    client_cpu_s: float
    client_wakeups: int
    usage: tuple[NodeUsage, ...]
    """Empty where the nodes run on another machine."""
    failures: dict[str, int]
    """Calls that failed, by the code of the error."""
    verdict: Verdict
    is_right: bool
    """Nothing was invented, repeated, reordered, or lost where the mode forbids it."""
    group: GroupFigures | None = None
    """In the scenarios with a consumer group."""


def lines(report: Report) -> list[str]:
    """Return the report as a page."""
    cluster = (
        f"{report.nodes} nodes, {report.replicas} replicas, {report.topics} topics,"
        f" {report.partitions} partitions"
    )
    how = "as fast as it goes" if report.rate is None else f"{report.rate:,.0f} records/s"
    load = (
        f"{report.workers} workers on {report.connections} connections,"
        f" {report.batch} x {report.size} bytes a call, {how}"
    )
    page = [
        f"scenario      {report.scenario}, {report.protocol}, {report.mode}",
        f"cluster       {cluster}",
        f"sync          {report.sync}",
        f"load          {load}",
        f"throughput    {report.records_per_s:,.0f} records/s, {report.mb_per_s:,.1f} MB/s"
        f" ({report.records:,} records in {report.seconds:g} s)",
    ]
    if report.committed_per_s is not None:
        page.append(f"committed     {report.committed_per_s:,.0f} records/s")
    if report.received_per_s is not None:
        page.append(f"received      {report.received_per_s:,.0f} records/s")
    if report.as_records_per_s is not None:
        page.append(f"as records    {report.as_records_per_s:,.0f} records/s")
    if report.group is not None:
        page += _group_lines(report.group)
    page += [
        f"publish       {_shown(report.publish)}",
        f"end to end    {_shown(report.end_to_end)}",
        f"client        {report.client_cpu_s:.2f} s of processor time,"
        f" {report.client_wakeups:,} wake-ups",
    ]
    for number, node in enumerate(report.usage, 1):
        disk = "" if node.disk_mb is None else f", {node.disk_mb:,.0f} MB on disk"
        page.append(
            f"node {number}        {node.cpu_s:.2f} s of processor time,"
            f" {node.wakeups:,} wake-ups, {node.memory_mb:,.0f} MB of memory{disk}"
        )
    for code, count in sorted(report.failures.items()):
        page.append(f"failed        {count} calls with {code}")
    page.append(f"checked       {_judged(report)}")
    return page


def _group_lines(group: GroupFigures) -> list[str]:
    page = [
        f"consumed      {group.consumed_per_s:,.0f} records/s by {group.consumers} consumers",
        f"settled       {group.drain_s:.2f} s after the last publish"
        + (f", but for {group.unsettled:,} records" if group.unsettled else ""),
    ]
    if group.in_hand_at_crash:
        page.append(f"crash         {group.in_hand_at_crash:,} records were in hand")
    return page


def _shown(latency: Latency | None) -> str:
    if latency is None:
        return "not measured"
    return (
        f"p50 {latency.p50_ms:.2f} ms, p99 {latency.p99_ms:.2f} ms,"
        f" p99.9 {latency.p999_ms:.2f} ms, max {latency.max_ms:.2f} ms"
    )


def _judged(report: Report) -> str:
    found = report.verdict
    counts = (
        f"{found.acknowledged:,} acknowledged, {found.delivered:,} delivered;"
        f" lost {found.lost:,}, invented {found.invented:,}, repeated {found.repeated:,}"
    )
    if report.group is None:  # a queue has no order
        counts += f", reordered {found.reordered:,}"
    return f"{counts} - {'right' if report.is_right else 'WRONG'}"


# --- several, side by side -----------------------------------------------------------------------


def side_by_side(reports: Sequence[Report]) -> list[str]:
    """Return reports of the same load over several protocols as one table."""
    first = reports[0]
    how = "as fast as it goes" if first.rate is None else f"{first.rate:,.0f} records/s"
    page = [
        f"scenario      {first.scenario}, {first.mode}: {first.sync}",
        f"cluster       {first.nodes} nodes, {first.replicas} replicas",
        f"load          {first.workers} workers on {first.connections} connections,"
        f" {first.batch} x {first.size} bytes a call, {how}",
        "",
    ]
    rows = [COLUMNS, *map(_row, reports)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(COLUMNS))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        page.append("  ".join(cells).rstrip())
    return page


COLUMNS: Final = (
    "protocol",
    "records/s",
    "publish p50",
    "p99",
    "end to end p50",
    "p99",
    "nodes, us/record",
    "lost",
    "checked",
)
"""Of the table; latencies in ms, processor time of all nodes together per record."""


def _row(report: Report) -> tuple[str, ...]:
    used = sum(node.cpu_s for node in report.usage)
    return (
        report.protocol,
        f"{report.records_per_s:,.0f}",
        *_quantiles(report.publish),
        *_quantiles(report.end_to_end),
        f"{used / report.records * 1e6:,.1f}" if report.usage and report.records else "-",
        f"{report.verdict.lost:,}",
        "right" if report.is_right else "WRONG",
    )


def _quantiles(latency: Latency | None) -> tuple[str, str]:
    if latency is None:
        return "-", "-"
    return f"{latency.p50_ms:.2f}", f"{latency.p99_ms:.2f}"
