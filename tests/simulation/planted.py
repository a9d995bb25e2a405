"""Every planted bug there is, in one table; `python -m tests.simulation.planted` searches for all.

The tester tested: a checker is only worth its name while it finds what was hidden for it.
"""

from __future__ import annotations

from tests.simulation import bugs_in_machine_and_replica as _machine
from tests.simulation import bugs_in_raft as _raft
from tests.simulation import bugs_in_the_log as _log
from tests.simulation.planting import BUGS, PlantedBug

__all__ = ["BUGS", "PlantedBug"]

assert _machine and _raft and _log
