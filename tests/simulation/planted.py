"""Every planted bug there is, in one table.

The tester tested: a checker is only worth its name while it finds what was hidden for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation import (
    bugs_at_the_edge,
    bugs_in_delivery,
    bugs_in_layouts,
    bugs_in_machine_and_replica,
    bugs_in_nearby_reading,
    bugs_in_placement,
    bugs_in_raft,
    bugs_in_reading,
    bugs_in_regions,
    bugs_in_the_log,
    bugs_in_timekeeping,
    bugs_in_witnesses,
)
from tests.simulation.planting import bugs_of

if TYPE_CHECKING:
    from tests.simulation.planting import PlantedBug

BUGS: dict[str, PlantedBug] = {
    one.name: one
    for room in (
        bugs_at_the_edge,
        bugs_in_raft,
        bugs_in_the_log,
        bugs_in_machine_and_replica,
        bugs_in_placement,
        bugs_in_reading,
        bugs_in_nearby_reading,
        bugs_in_regions,
        bugs_in_delivery,
        bugs_in_layouts,
        bugs_in_timekeeping,
        bugs_in_witnesses,
    )
    for one in bugs_of(room)
}
