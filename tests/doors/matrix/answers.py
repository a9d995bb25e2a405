"""What a door answered to a call, in the same terms for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.rows import Row

ANSWER_S_MAX: Final = 60.0
"""How long a door may take; on an idle machine it takes milliseconds."""


class Answer(NamedTuple):
    """What a caller learns."""

    code: str = ""
    """Empty: it was done."""
    text: str = ""
    names: frozenset[str] | None = None
    """Of a list: what it shows."""
    is_less: bool = False
    """Of the cluster: only where its nodes are."""
    beside: str = ""
    """Whatever else the refusal came with."""


class Door(ABC):
    """One door, tried by all callers."""

    name: ClassVar[str]
    methods: ClassVar[Mapping[str, Any]]
    """What it has of the contract."""
    before: ClassVar[Mapping[str, str]] = {}
    """Methods that it calls before others: their rules are asked first."""

    @classmethod
    @abstractmethod
    def declared(cls) -> Mapping[str, str]:
        """Return everything that is served there, and the method behind each; empty for what
        needs no permission of its own."""

    @classmethod
    def has(cls, row: Row) -> bool:
        """Tell whether the door can say what a row says."""
        return row.method in cls.methods

    @classmethod
    def meant(cls, method: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the contract behind the door is given them."""
        return given

    @abstractmethod
    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        """Make a call in the name of somebody."""

    @abstractmethod
    async def close(self) -> None:
        """Hang up."""


def listed(rows: Iterable[Any], *, by: str = "name") -> Answer:
    """Return what a list shows."""
    return Answer(
        names=frozenset(one[by] if isinstance(one, dict) else getattr(one, by) for one in rows)
    )


def agreeing(answers: Sequence[Answer]) -> Answer:
    """Return what all ways to the same method say, or that they do not say the same."""
    first = answers[0]
    if all((one.code, one.is_less) == (first.code, first.is_less) for one in answers):
        return first
    return Answer(code="DISAGREEING", text=repr(answers))
