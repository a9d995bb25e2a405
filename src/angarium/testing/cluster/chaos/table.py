"""Every kind of fault by its name, and what to run for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from angarium.kinds import GroupKind
from angarium.modes import DeliveryMode
from angarium.testing.cluster.chaos.addresses import every_address_changed
from angarium.testing.cluster.chaos.clocks import clock_ahead
from angarium.testing.cluster.chaos.groups import groups
from angarium.testing.cluster.chaos.leaders import (
    kills,
    live_kills,
    parts,
    pauses,
    silent_cuts,
)
from angarium.testing.cluster.chaos.membership import joins_and_removals
from angarium.testing.cluster.chaos.nodes import (
    many_partitions,
    replaced_when_idle,
    rolled_back,
    rolling,
    throughput_with_one_dead,
    wipes,
)
from angarium.testing.cluster.chaos.strangers import forged_peer, same_folder_twice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from angarium.testing.cluster.chaos.ground import Ground
    from angarium.testing.cluster.chaos.line import Line

_CONSISTENT, _EVENTUAL = DeliveryMode.CONSISTENT, DeliveryMode.EVENTUAL

FAULTS: Final[Mapping[str, Sequence[Callable[[Ground], Awaitable[Line]]]]] = {
    "kill": [partial(kills, mode=_CONSISTENT), partial(kills, mode=_EVENTUAL), live_kills],
    "pause": [partial(pauses, mode=_CONSISTENT), partial(pauses, mode=_EVENTUAL)],
    "part": [partial(parts, mode=_CONSISTENT), partial(parts, mode=_EVENTUAL)],
    "silent": [silent_cuts],
    "rolling": [rolling],
    "wipe": [wipes],
    "replaced": [replaced_when_idle],
    "clock": [clock_ahead],
    "forged": [forged_peer],
    "twice": [same_folder_twice],
    "rolled-back": [rolled_back],
    "moved": [every_address_changed],
    "joins": [joins_and_removals],
    "many": [many_partitions],
    "dead": [throughput_with_one_dead],
    "groups": [partial(groups, kind=GroupKind.QUEUE), partial(groups, kind=GroupKind.STREAM)],
}
