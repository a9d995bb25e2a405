"""A folder that the other nodes have refused says so itself."""

from __future__ import annotations

import random

from angarium.log import rolled_back
from angarium.testing.disk import SimulatedDisk


def test_a_folder_that_was_never_refused_says_nothing() -> None:
    assert rolled_back.noted(SimulatedDisk(random.Random(1))) is None


def test_what_was_noted_outlives_the_power() -> None:
    disk = SimulatedDisk(random.Random(1))
    rolled_back.note(disk, "the log of node 2 ended at 7")
    disk.power_loss()
    assert rolled_back.noted(disk) == "the log of node 2 ended at 7"
