"""What one GraphQL request may cost. All of it is checked before anything is executed."""

from __future__ import annotations

from dataclasses import dataclass

from angarium.bounds import Bounds


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
