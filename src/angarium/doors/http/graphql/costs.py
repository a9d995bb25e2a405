"""What a request may cost, and what a document would, found in one walk over it.

All of it is checked before anything is executed, and even before validation, so nothing is believed
about the document: fragments may be missing or go round in circles. Each fragment is measured once,
so the walk takes time in proportion to the text, however much the text stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from graphql.language import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
)

from angarium.bounds import Bounds
from angarium.errors import InvalidArgument, TooLarge

if TYPE_CHECKING:
    from graphql.language import DocumentNode, SelectionSetNode

RECORDS_MAX: Final = 1_000
"""Records that one field returns at the most."""

RECORDS_DEFAULT: Final = 100
"""And if it is not said; as the schema has it."""

LIST_FIELDS: Final = {
    "topics": 20,
    "groups": 20,
    "users": 20,
    "roles": 20,
    "grants": 20,
    "tokens": 20,
    "quotas": 20,
    "joinTokens": 20,
    "partitions": 20,
    "positions": 20,
    "moves": 20,
    "nodes": 5,
    "members": 5,
    "lost": 5,
    "left": 5,
    "limits": 5,
    "counts": 5,
    "headers": 2,
}
"""How many of each a list is taken to have, where the document does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphqlLimits(Bounds):
    """Bounds of a request; beyond one it is refused with RESOURCE_EXHAUSTED.

    Fragments count as often as they are spread, and the operations of a batch count together.
    """

    document_bytes_max: int = 64 << 10
    """The query's text."""

    tokens_max: int = 2_000
    """Words and signs in it. Parsing stops there."""

    depth_max: int = 16
    """How deep selections may nest. The usual introspection query has 13."""

    fields_max: int = 400
    """Fields, fragments spread out. Checked before validation, which grows with its square."""

    aliases_max: int = 30
    """Fields that are given another name: the way to ask for the same thing again and again."""

    cost_max: int = 50_000
    """Fields times the length of the lists they stand in, as far as that can be known."""

    batch_max: int = 10
    """Operations in one HTTP request."""

    operations_max: int = 100
    """Operations under way on one WebSocket."""

    remembered_max: int = 1_000
    """Documents whose parsed form is kept. At the bound all are forgotten."""


class Measure(NamedTuple):
    """What a part of a document comes to."""

    depth: int = 0
    fields: int = 0
    aliases: int = 0
    cost: int = 0

    def beside(self, other: Measure) -> Measure:
        """Return both together."""
        return Measure(
            max(self.depth, other.depth),
            self.fields + other.fields,
            self.aliases + other.aliases,
            self.cost + other.cost,
        )


def measure(document: DocumentNode, limits: GraphqlLimits) -> Measure:
    """Return what the costliest operation comes to; raises `TooLarge` beyond a limit."""
    walk = _Walk(
        {
            one.name.value: one
            for one in document.definitions
            if isinstance(one, FragmentDefinitionNode)
        }
    )
    found = Measure()
    for one in document.definitions:
        if isinstance(one, OperationDefinitionNode):
            found = _larger(found, walk.selections(one.selection_set))
        elif isinstance(one, FragmentDefinitionNode):
            # Also one that nobody spreads: validation will look at it, too.
            found = _larger(found, walk.fragment(one.name.value))
    check(found, limits)
    return found


def check(found: Measure, limits: GraphqlLimits) -> None:
    """Raise `TooLarge` for the first limit that is exceeded."""
    for name, value in found._asdict().items():
        most = getattr(limits, f"{name}_max")
        if value > most:
            raise TooLarge(f"{name}_max", f"{value} where {most} is the most")


def _larger(one: Measure, other: Measure) -> Measure:
    return Measure(*map(max, one, other))


class _Walk:
    """One walk, which remembers what fragments come to."""

    def __init__(self, fragments: dict[str, FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._known: dict[str, Measure | None] = {}

    def selections(self, node: SelectionSetNode | None) -> Measure:
        found = Measure()
        for one in node.selections if node is not None else ():
            match one:
                case FieldNode():
                    found = found.beside(self._field(one))
                case FragmentSpreadNode():
                    found = found.beside(self.fragment(one.name.value))
                case InlineFragmentNode():
                    found = found.beside(self.selections(one.selection_set))
        return found

    def fragment(self, name: str) -> Measure:
        if name in self._known:
            known = self._known[name]
            if known is None:
                raise InvalidArgument(f"the fragment {name} contains itself")
            return known
        definition = self._fragments.get(name)
        if definition is None:
            return Measure()  # validation says so
        self._known[name] = None
        found = self._known[name] = self.selections(definition.selection_set)
        return found

    def _field(self, node: FieldNode) -> Measure:
        inside = self.selections(node.selection_set)
        return Measure(
            inside.depth + 1,
            inside.fields + 1,
            inside.aliases + (node.alias is not None),
            1 + inside.cost * _times(node),
        )


def _times(node: FieldNode) -> int:
    """Return how often what a field selects is wanted."""
    name = node.name.value
    for argument in node.arguments or ():
        if argument.name.value == "limit":
            if isinstance(argument.value, IntValueNode):
                return min(int(argument.value.value[:9]), RECORDS_MAX)
            return RECORDS_MAX  # a variable: as many as there may be
    if name == "records" and node.arguments:
        return RECORDS_DEFAULT
    return LIST_FIELDS.get(name, 1)
