"""Bugs planted in what keeps keys in order when a topic is given partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import Variant

from angarium.machine import partition_state
from angarium.machine.catalog import Fenced
from angarium.machine.commands import Stage
from angarium.machine.keys import Keys
from angarium.machine.numbering import Numbering
from angarium.replica.acks import Dealt
from angarium.testing.sim import growing, keyed_clients, lending, repeating
from angarium.testing.sim.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.api import TopicInfo

_SMALL: Final = {"producers": 1, "readers": 0, "groups": 4, "growing": True, "faults_min": 4}

grown: Final = Variant("grown", Settings(**_SMALL))  # type: ignore[arg-type]
"""A topic is given partitions; few others publish."""

grown_with_groups: Final = Variant("grown-with-groups", Settings(**_SMALL, members=1))  # type: ignore[arg-type]
"""The same, and groups of each kind consume all of it."""


grown_with_transactions: Final = Variant(
    "grown-with-transactions",
    Settings(**_SMALL, transactors=3),  # type: ignore[arg-type]
)
"""The same, and transactions publish by key over its partitions."""


grown_with_repetitions: Final = Variant(
    "grown-with-repetitions",
    Settings(**_SMALL, repeating=True),  # type: ignore[arg-type]
)
"""The same, and requests under idempotency keys come again, by this layout or that."""


@bug(seeds_max=6, run=grown_with_repetitions)
def earlier_layouts_not_asked() -> Iterator[Replaced]:
    """A door publishes a request that may come again without asking where it went before."""

    def former_layouts(_: TopicInfo) -> tuple[()]:
        return ()

    yield Replaced(repeating, "former_layouts", former_layouts)


@bug(seeds_max=6, run=grown_with_repetitions)
def key_unknown_behind_the_fence() -> Iterator[Replaced]:
    """A partition that is fenced no longer recognises the keys of the layouts before."""

    def repeated(*_: object, **__: object) -> None:
        return None

    yield Replaced(Keys, "repeated", repeated)


@bug(seeds_max=12, run=grown)
def fence_not_checked() -> Iterator[Replaced]:
    """A leader takes records behind a fence that were dealt by an older layout."""

    def fault(_: Dealt, fenced: int) -> None:
        return None

    yield Replaced(Dealt, "fault", fault)


@bug(seeds_max=3, run=grown_with_groups)
def gate_opened_too_early() -> Iterator[Replaced]:
    """A group is lent what lies behind fences although older partitions are not drained."""

    def is_drained(*_: object) -> bool:
        return True

    yield Replaced(lending, "is_drained", is_drained)


@bug(seeds_max=12, run=grown)
def reader_passes_a_closed_gate() -> Iterator[Replaced]:
    """A reader goes on behind fences before it has read what comes before them elsewhere."""

    def gates_open(info: TopicInfo, *_: object) -> int:
        return max(len(info.layouts) - 1, 0)

    yield Replaced(keyed_clients, "gates_open", gates_open)


@bug(seeds_max=20, run=grown)
def fence_lost_at_snapshot() -> Iterator[Replaced]:
    """A replica that comes back from a snapshot has forgotten its fences."""
    read = partition_state._read_header

    def read_header(machine: Any, header: Any) -> None:
        read(machine, header)
        machine.numbering.fences = ()

    yield Replaced(partition_state, "_read_header", read_header)


@bug(seeds_max=4, run=grown)
def fence_told_before_it_is_committed() -> Iterator[Replaced]:
    """The catalog hears that a fence stands which is not even in the log."""
    right = growing.next_step  # type: ignore[attr-defined]

    def next_step(topic: Any, partition: Any, *, fenced: int) -> Any:
        step = right(topic, partition, fenced=fenced)
        return step and Fenced(group=partition.group, layout=len(topic.layouts) - 1)

    yield Replaced(growing, "next_step", next_step)


@bug(seeds_max=16, run=grown_with_transactions)
def stage_of_an_older_layout_taken() -> Iterator[Replaced]:
    """A partition takes what was staged by an older layout than its fence is of."""
    right = Numbering._transact

    def transact(numbering: Any, command: Any, *rest: Any) -> Any:
        if isinstance(command, Stage):
            command = replace(command, layout=None)
        return right(numbering, command, *rest)

    yield Replaced(Numbering, "_transact", transact)
