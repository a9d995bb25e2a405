"""What saving where the others' logs end, once a second, costs the syncs of a log.

    python -m benchmarks.micro.saving_marks [--rounds 10] [--window 2] [--folder DIR]

A file is written and synced all the time, as a log is. Windows alternate: nothing is saved, it is
saved as a node does it (in place), or as releases before did (by a new file that takes the old
one's place, every ten seconds then). In each window it is saved once a second, half a second in.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from angarium.cli.output import print_table
from angarium.ids import Incarnation, NodeId, replica_id
from angarium.log.disk import replace_file
from angarium.log.os_disk import OsDisk
from angarium.log.peer_ends import PeerEnds

if TYPE_CHECKING:
    from collections.abc import Callable

WRITTEN_BYTES = 4_096
LOG_BYTES = 16 << 20
NODES = 5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--window", type=float, default=2.0, help="seconds, whole ones")
    parser.add_argument("--folder", help="a folder on a disk, not tmpfs, or syncs cost nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as root:
        disk = OsDisk(Path(root))
        saved = PeerEnds(disk)
        ends = {replica_id(NodeId(node), Incarnation(node)): 0 for node in range(1, NODES + 1)}

        def in_place() -> None:
            for replica in ends:
                ends[replica] += 1
            saved.save(ends)

        ways: dict[str, Callable[[], None] | None] = {
            "nothing": None,
            "in place": in_place,
            "by a new file": lambda: replace_file(disk, "peers", b"x" * 200),
        }
        in_place()
        took: dict[str, list[float]] = {way: [] for way in ways}
        spent: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(options.rounds):
            # In another order each time, so that what the disk remembers of one hits all.
            names = list(ways)
            for way in names[number % 3 :] + names[: number % 3]:
                measure(disk, ways[way], options.window, took[way], spent[way])
        saved.close()
    rows = []
    for way, some in took.items():
        figures = map(_ms, (_at(some, 0.5), _at(some, 0.99), max(some)))
        saving = _ms(_at(spent[way], 0.5)) if spent[way] else ""
        rows.append((way, str(len(some)), *figures, saving))
    heads = ("saved", "syncs", "p50, ms", "p99, ms", "longest, ms", "one saving, ms")
    print_table(heads, rows, none="no rounds")


def measure(
    disk: OsDisk,
    save: Callable[[], None] | None,
    seconds: float,
    took: list[float],
    spent: list[float],
) -> None:
    """Sync a log for a while, and save beside it."""
    is_over = threading.Event()

    def beside() -> None:
        while save is not None and not is_over.wait(0.5):
            began = time.perf_counter()
            save()
            spent.append(time.perf_counter() - began)
            is_over.wait(0.5)

    disk.remove("log")
    log = disk.create("log")
    log.pwrite([bytes(LOG_BYTES)], 0)
    log.datasync()
    saver = threading.Thread(target=beside)
    saver.start()
    position = 0
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        log.pwrite([bytes(WRITTEN_BYTES)], position % LOG_BYTES)
        log.datasync()
        took.append(time.perf_counter() - began)
        position += WRITTEN_BYTES
    is_over.set()
    saver.join()
    log.close()


def _at(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def _ms(seconds: float) -> str:
    return f"{1_000 * seconds:.2f}"


if __name__ == "__main__":
    main()
