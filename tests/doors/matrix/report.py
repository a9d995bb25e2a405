"""What was found, as the page shows it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.doors.matrix.exemptions import EXEMPT, STREAMING
from tests.doors.matrix.expected import Outcome
from tests.doors.matrix.trying import DOORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.doors.matrix.trying import Cell, Tried

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "trust" / "security.md"
BEGIN: Final = "<!-- The matrix: `make matrix` writes what follows. -->"
END: Final = "<!-- Here it ends. -->"


def report(tried: Tried) -> str:
    """Return the tables."""
    return "\n".join(
        (
            *_table("door", [one.name for one in DOORS], tried, lambda cell: cell.door),
            "",
            *_table("caller", _callers(tried), tried, lambda cell: cell.caller.name),
            "",
            f"{tried.compared:,} refusals were compared with those for things that there are not.",
            "",
            *_exemptions(),
        )
    )


def written(page: str, tried: Tried) -> str:
    """Return the page with the tables in their place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{report(tried)}\n\n{END}{after}"


def _callers(tried: Tried) -> list[str]:
    return list(dict.fromkeys(cell.caller.name for cell in tried.outcomes))


def _table(what: str, names: list[str], tried: Tried, of: Key) -> Iterator[str]:
    counts = Counter((of(cell), outcome) for cell, outcome in tried.outcomes.items())
    yield f"| {what} | cells | {' | '.join(Outcome)} |"
    yield "|---|---:" + "|---:" * len(Outcome) + "|"
    for name in names:
        row = [counts[name, outcome] for outcome in Outcome]
        yield f"| {name} | {sum(row):,} | {' | '.join(f'{one:,}' for one in row)} |"
    whole = [sum(counts[name, outcome] for name in names) for outcome in Outcome]
    shown = " | ".join(f"**{one:,}**" for one in whole)
    yield f"| **all** | **{sum(whole):,}** | {shown} |"


def _exemptions() -> Iterator[str]:
    yield "| door | does not have | because |"
    yield "|---|---|---|"
    for door, exempt in EXEMPT.items():
        for reason in dict.fromkeys(exempt.values()):
            methods = [f"`{name}`" for name, one in exempt.items() if one == reason]
            yield f"| {door} | {', '.join(methods)} | {reason} |"
    for door, has in STREAMING.items():
        only = ", ".join(f"`{one}`" for one in sorted(has))
        yield f"| {door} | all but {only} | a stream, and what belongs to it |"


if TYPE_CHECKING:
    from collections.abc import Callable

    Key = Callable[[Cell], str]
