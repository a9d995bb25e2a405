"""Two machines that apply the same entries are the same, in whichever process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
from angarium.ids import Micros, NodeId, Offset, Index
from angarium.machine.catalog import *
from angarium.machine.catalog.commands import encode
from angarium.kinds import GroupKind
from angarium.machine.changes import Ack, Open
from tests.unit.machine.leader import Leader, batch

leader = Leader()
for number in range(40):
    leader.publish(batch(3, producer=number % 7 + 1, sequence=3 * (number // 7)))
    leader.change(
        Open(f"group {number}", GroupKind.QUEUE, Offset(0)),
        Ack("group 0", Index(2), (number, number + 1)),
    )
catalog, time = CatalogMachine(), 0
work = [Form(cluster="c")]
work += [
    NodeRegister(incarnation=n, addresses=(), labels=Labels(region=f"r{n % 2}", zone=f"z{n % 3}"))
    for n in range(7)
]
work += [TopicCreate(name=f"topic{n}", partitions=9) for n in range(5)]
work += [NodeDrain(node=NodeId(3)), Reassign(group=4), Reassign(group=5, leaving=(1, 2))]
for command in work:
    time += 1
    catalog.apply(time, 1, encode(__import__("msgspec").structs.replace(command, time=time)))
print(leader.machine.running_hash, catalog.running_hash, leader.machine.snapshot().hex(),
      catalog.snapshot().hex())
"""


def test_nothing_depends_on_the_seed_of_pythons_hashes() -> None:
    root = Path(__file__).parents[3]
    results = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}/src:{root}"}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        results.add(done.stdout)
    assert len(results) == 1
