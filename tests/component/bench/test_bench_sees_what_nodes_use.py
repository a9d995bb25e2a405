"""Processor, memory, disk, and finding the processes behind ports."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from angarium.bench.cluster import free_ports
from angarium.bench.latency import Latency
from angarium.bench.report import NodeUsage, Report, lines
from angarium.bench.resources import Watched, disk_bytes, listeners, usage
from angarium.bench.verify import Verdict

if TYPE_CHECKING:
    from pathlib import Path


def test_this_process_uses_something(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"x" * 10_000)
    used = usage(Watched(os.getpid(), tmp_path))
    assert used is not None
    assert used.cpu_s > 0
    assert used.wakeups > 0
    assert used.memory_bytes > 1 << 20
    assert used.disk_bytes == disk_bytes(tmp_path) >= 10_000


def test_a_process_that_is_gone_uses_nothing() -> None:
    assert usage(Watched(1 << 30)) is None


def test_who_listens_on_a_port_is_found_with_the_folder_it_writes_to(tmp_path: Path) -> None:
    (tmp_path / "wal").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server, (tmp_path / "wal" / "1").open("w"):
        port = server.getsockname()[1]
        assert listeners([port]) == [Watched(os.getpid(), tmp_path)]
    assert listeners([port]) == []


def test_free_ports_are_all_different() -> None:
    assert len(set(free_ports(10))) == 10


def report(**changes: object) -> Report:
    latency = Latency(count=1, p50_ms=1.0, p99_ms=2.0, p999_ms=3.0, max_ms=4.0)
    told: dict[str, object] = {
        "scenario": "live",
        "protocol": "wire",
        "mode": "consistent",
        "sync": "always",
        "nodes": 3,
        "replicas": 3,
        "topics": 1,
        "partitions": 1,
        "workers": 8,
        "connections": 1,
        "batch": 1,
        "size": 100,
        "rate": None,
        "seconds": 2.0,
        "records": 10,
        "records_per_s": 5.0,
        "mb_per_s": 0.0,
        "committed_per_s": None,
        "received_per_s": 5.0,
        "as_records_per_s": None,
        "publish": latency,
        "end_to_end": None,
        "client_cpu_s": 0.1,
        "client_wakeups": 20,
        "usage": (NodeUsage(cpu_s=1.0, wakeups=30, memory_mb=50.0, disk_mb=None),),
        "failures": {"NOT_LEADER": 2},
        "verdict": Verdict(acknowledged=10, delivered=9, lost=1),
        "is_right": False,
    }
    return Report(**(told | changes))  # type: ignore[arg-type]


def test_the_page_says_what_was_wrong() -> None:
    page = "\n".join(lines(report()))
    assert "lost 1" in page
    assert "WRONG" in page
    assert "2 calls with NOT_LEADER" in page
    assert "p99.9 3.00 ms" in page
    assert "end to end    not measured" in page
