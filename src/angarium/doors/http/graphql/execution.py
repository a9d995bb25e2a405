"""Executing operations. A document is parsed, measured and checked once, and then remembered.

One that has a password written into it is not.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSyntaxError,
    OperationType,
    execute,
    parse,
    subscribe,
    validate,
)
from graphql.language import (
    ArgumentNode,
    FieldNode,
    OperationDefinitionNode,
    StringValueNode,
    Visitor,
    visit,
)

from angarium.api.access import SECRET_FIELD
from angarium.doors.http.graphql.answers import InvalidDocument, answer_of, refusal
from angarium.doors.http.graphql.costs import GraphqlLimits, Measure, measure
from angarium.doors.http.graphql.plans import Plan, plan_of
from angarium.doors.http.graphql.schema import schema
from angarium.errors import AngariumError, InvalidArgument, TooLarge

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from angarium.doors.http.graphql.resolving import Resolvers


class Operation(msgspec.Struct, frozen=True):
    """What a client asks. Other fields are left alone: clients add their own."""

    query: str
    variables: dict[str, Any] | None = None
    operationName: str | None = None  # noqa: N815  (the protocol's name)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that may be executed."""

    document: DocumentNode
    measure: Measure
    kinds: Mapping[str | None, OperationType]
    """What each operation is, by its name; None: that of a document with only one."""
    plan: Plan | None = None
    """The short way through it, if it has one."""
    tells_secret: bool = False
    """Whether it asks for a secret, so that the answer must not be kept by anything on its way."""


class Executor:
    """Executes operations, and keeps the documents that were asked for lately."""

    def __init__(self, resolvers: Resolvers, limits: GraphqlLimits | None = None) -> None:
        self.resolvers = resolvers
        self.limits = limits or GraphqlLimits()
        self._schema = schema()
        self._known: dict[str, Prepared] = {}

    def prepared(self, text: str) -> Prepared:
        """Return what `text` says; raises `InvalidDocument` or `TooLarge`."""
        known = self._known.get(text)
        if known is None:
            known, has_password = self._prepare(text)
            if not has_password:
                if len(self._known) >= self.limits.remembered_max:
                    self._known.clear()
                self._known[text] = known
        return known

    def _prepare(self, text: str) -> tuple[Prepared, bool]:
        """Return what `text` says, and whether a password is written into it."""
        limits = self.limits
        if len(text.encode(errors="replace")) > limits.document_bytes_max:
            raise TooLarge("document_bytes_max", f"a query has {limits.document_bytes_max}")
        too_deep = TooLarge("depth_max", "the query nests too deep to be read")
        try:
            document = parse(text, no_location=False, max_tokens=limits.tokens_max)
        except GraphQLSyntaxError as error:
            if "Document contains more" in error.message:
                raise TooLarge(
                    "tokens_max", f"a query has up to {limits.tokens_max} words and signs"
                ) from None
            if "nested too deeply" in error.message:
                raise too_deep from None
            raise InvalidDocument([error]) from None
        except RecursionError:
            raise too_deep from None
        measured = measure(document, limits)
        errors = validate(self._schema, document, max_errors=20)
        if errors:
            raise InvalidDocument(errors)
        secrets = _secrets_in(text, document)
        prepared = Prepared(
            document,
            measured,
            _kinds(document),
            plan_of(self._schema, document),
            tells_secret=secrets.asks_for_one,
        )
        return prepared, secrets.has_password

    async def executed(self, asked: Operation, prepared: Prepared) -> dict[str, Any]:
        """Return the answer to a query or mutation."""
        plan = prepared.plan
        if plan is not None and plan.fits(asked.variables):
            return await plan.follow(self.resolvers, asked.variables)
        result = execute(
            self._schema,
            prepared.document,
            variable_values=asked.variables,
            operation_name=asked.operationName or None,
            field_resolver=self.resolvers.resolve,
        )
        if not isinstance(result, ExecutionResult):
            result = await result
        return answer_of(result)

    async def events(
        self, asked: Operation, prepared: Prepared, source: Callable[..., object]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the answers of a subscription; `source` returns what comes."""
        begun = subscribe(
            self._schema,
            prepared.document,
            variable_values=asked.variables,
            operation_name=asked.operationName or None,
            field_resolver=self.resolvers.resolve,
            subscribe_field_resolver=source,
        )
        found = await begun if inspect.isawaitable(begun) else begun
        if isinstance(found, ExecutionResult):
            yield answer_of(found)
            return
        results = cast("AsyncGenerator[ExecutionResult, None]", found)
        try:
            async for result in results:
                yield answer_of(result)
        except AngariumError as error:
            yield {"data": None, **refusal(error)}
        except GraphQLError as error:
            yield {"data": None, **refusal(error.original_error or error)}
        finally:
            await results.aclose()


class _Secrets(Visitor):
    """Finds passwords that are written into a document, and whether it asks for a secret."""

    has_password = False
    asks_for_one = False

    def enter_argument(self, node: ArgumentNode, *_: object) -> None:
        is_written = isinstance(node.value, StringValueNode)
        self.has_password |= is_written and node.name.value == "password"

    def enter_field(self, node: FieldNode, *_: object) -> None:
        self.asks_for_one |= node.name.value == SECRET_FIELD


def _secrets_in(text: str, document: DocumentNode) -> _Secrets:
    """Return what a document says about secrets; most that are asked say nothing."""
    found = _Secrets()
    if "password" in text or SECRET_FIELD in text:
        visit(document, found)
    return found


def operation_kind(asked: Operation, prepared: Prepared) -> OperationType:
    """Return what the chosen operation is; raises `InvalidArgument` if none is.

    An empty name is none: some clients send it with documents of one operation.
    """
    kind = prepared.kinds.get(asked.operationName or None)
    if kind is None:
        raise InvalidArgument("say which operation: operationName names one of the document's")
    return kind


def _kinds(document: DocumentNode) -> dict[str | None, OperationType]:
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    kinds: dict[str | None, OperationType] = {
        one.name.value: one.operation for one in operations if one.name is not None
    }
    if len(operations) == 1:
        kinds[None] = operations[0].operation
    return kinds
