"""What can be said of a record, or of many, when they are published: declared here, once."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.client.publishing.outgoing import HeadersLike, Text
    from angarium.client.times import Moment

F = TypeVar("F", bound="Callable[..., Any]")


class RecordFields(TypedDict, total=False):
    """A record besides its value."""

    key: Text | None
    """Records with the same key go to the same partition, in order."""
    headers: HeadersLike | None
    partition: int | None
    """Where it goes; None: as its key says, or wherever."""
    timestamp: Moment | None
    """The producer's own time for it."""
    expires_at: Moment | None
    """From then on nobody sees it."""
    deliver_at: Moment | None
    """Until then queue and key groups do not; other readers do."""


class RecordColumns(TypedDict, total=False):
    """Many records besides their values: a column each, with one entry for each record.

    A time may be one for all.
    """

    keys: Sequence[Text | None] | None
    headers: Sequence[HeadersLike | None] | None
    timestamps: Moment | Sequence[Moment] | None
    expires_at: Moment | Sequence[Moment] | None
    deliver_at: Moment | Sequence[Moment] | None


def spelled_out(declared: type[RecordFields | RecordColumns]) -> Callable[[F], F]:
    """Have `help` show each of the fields that a function takes as `**fields`."""
    each = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=getattr(kind, "__forward_arg__", kind),
        )
        for name, kind in declared.__annotations__.items()
    ]

    def spell(function: F) -> F:
        brief = signature(function)
        *others, _ = brief.parameters.values()
        function.__dict__["__signature__"] = brief.replace(parameters=[*others, *each])
        return function

    return spell
