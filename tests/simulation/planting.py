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

    from angarium.testing.sim.world import Report


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
    """Within so many seeds, counted from 1, a search has to find it."""
    known_seed: int
    """A seed that does; the tests begin here, the full search does not."""
    run: Callable[[int], Report]
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


BUGS: dict[str, PlantedBug] = {}


def bug(
    *, seeds_max: int, known_seed: int, run: Callable[[int], Report]
) -> Callable[[Callable[[], Iterator[Replaced]]], Callable[[], Iterator[Replaced]]]:
    """Register a planted bug."""

    def register(replacements: Callable[[], Iterator[Replaced]]) -> Callable[[], Iterator[Replaced]]:
        name = replacements.__name__.replace("_", "-")
        assert replacements.__doc__, f"{name} says in a sentence what is wrong"
        BUGS[name] = PlantedBug(
            name=name,
            sentence=" ".join(replacements.__doc__.split()),
            seeds_max=seeds_max,
            known_seed=known_seed,
            run=run,
            replacements=replacements,
        )
        return replacements

    return register
