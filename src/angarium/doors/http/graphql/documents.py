"""Documents: parsed, measured and validated once, and remembered by their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphql import GraphQLError, GraphQLSyntaxError, OperationType, parse, validate
from graphql.utilities import get_operation_ast

from angarium.doors.http.graphql.measuring import measure
from angarium.doors.http.graphql.plans import plan_of
from angarium.errors import InvalidArgument, TooLarge

if TYPE_CHECKING:
    from graphql import DocumentNode, GraphQLSchema

    from angarium.doors.http.graphql.limits import GraphqlLimits
    from angarium.doors.http.graphql.measuring import Measure
    from angarium.doors.http.graphql.plans import Plan


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that may be executed."""

    document: DocumentNode
    measure: Measure
    plan: Plan | None = None
    """The short way through it, if it has one."""


class InvalidDocument(InvalidArgument):
    """A document that the schema does not allow; `errors` says where and why."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__("; ".join(one.message for one in errors[:5]))
        self._errors = errors

    @property
    def errors(self) -> list[GraphQLError]:
        """What is wrong, each with its place."""
        return self._errors


class Documents:
    """All documents that were asked for lately."""

    def __init__(self, schema: GraphQLSchema, limits: GraphqlLimits) -> None:
        self._schema = schema
        self._limits = limits
        self._known: dict[str, Prepared] = {}

    def prepared(self, text: str) -> Prepared:
        """Return what `text` says; raises `InvalidDocument` or `TooLarge`."""
        known = self._known.get(text)
        if known is None:
            known = self._prepare(text)
            if len(self._known) >= self._limits.remembered_max:
                self._known.clear()
            self._known[text] = known
        return known

    def _prepare(self, text: str) -> Prepared:
        limits = self._limits
        if len(text.encode(errors="replace")) > limits.document_bytes_max:
            raise TooLarge("document_bytes_max", f"a query has {limits.document_bytes_max}")
        try:
            document = parse(text, no_location=False, max_tokens=limits.tokens_max)
        except GraphQLSyntaxError as error:
            if "Document contains more" in error.message:
                raise TooLarge(
                    "tokens_max", f"a query has up to {limits.tokens_max} words and signs"
                ) from None
            if "nested too deeply" in error.message:
                raise TooLarge("depth_max", "the query nests too deep to be read") from None
            raise InvalidDocument([error]) from None
        except RecursionError:
            raise TooLarge("depth_max", "the query nests too deep to be read") from None
        measured = measure(document, limits)
        errors = validate(self._schema, document, max_errors=20)
        if errors:
            raise InvalidDocument(errors)
        return Prepared(document, measured, plan_of(self._schema, document))


def operation_kind(prepared: Prepared, name: str | None) -> OperationType:
    """Return what the chosen operation is; raises `InvalidArgument` if none is.

    An empty name is none: some clients send it with documents of one operation.
    """
    operation = get_operation_ast(prepared.document, name or None)
    if operation is None:
        raise InvalidArgument("say which operation: operationName names one of the document's")
    return operation.operation
