"""How a bug is planted: methods of the production classes are replaced for the time of a run.

A planted bug is a function whose name is the bug's, whose docstring says in a sentence what is
wrong, and which yields what to replace by what. Nothing of this is known to the production code.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tests.simulation.variants import Variant


class Replaced(NamedTuple):
    """One attribute of a class or module, and what stands in its place while the bug is there."""

    owner: Any
    name: str
    by: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """A bug that the simulator must find."""

    name: str
    sentence: str
    seeds_max: int
    """Within so many seeds, from wherever one begins, a search has to find it."""
    run: Variant
    """What is run with each seed."""
    replacements: Callable[[], Iterator[Replaced]]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Put the bug in, and take it out again."""
        originals: list[Replaced] = []
        try:
            for owner, name, by in self.replacements():
                # Not by getattr, which would turn a static method into a plain function.
                originals.append(Replaced(owner, name, vars(owner)[name]))
                setattr(owner, name, by)
            yield
        finally:
            for owner, name, original in reversed(originals):
                setattr(owner, name, original)

    def found_by(self, seed: int) -> list[str]:
        """Run one seed with the bug in; return what the checkers say, if anything."""
        with self.planted():
            report = self.run(seed)
        return [str(violation) for violation in report.violations]


def bug(
    *, seeds_max: int, run: Variant
) -> Callable[[Callable[[], Iterator[Replaced]]], PlantedBug]:
    """Make a planted bug of a function that yields what to replace."""

    def make(replacements: Callable[[], Iterator[Replaced]]) -> PlantedBug:
        name = replacements.__name__.replace("_", "-")
        assert replacements.__doc__, f"{name} says in a sentence what is wrong"
        return PlantedBug(
            name=name,
            sentence=" ".join(replacements.__doc__.split()),
            seeds_max=seeds_max,
            run=run,
            replacements=replacements,
        )

    return make


def bugs_of(room: ModuleType) -> list[PlantedBug]:
    """Return the bugs that a module plants, in the order in which they are written there."""
    return [one for one in vars(room).values() if isinstance(one, PlantedBug)]
