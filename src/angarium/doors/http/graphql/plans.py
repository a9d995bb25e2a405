"""The short way through an operation: worked out once per document, then only followed.

graphql-core's executor looks everything up anew for each request, and spends most of its time on
what most documents do not have: fragments, directives, nested inputs. For a document without these
the way is the same every time: which resolver, where its arguments come from, which fields of the
answer are wanted. Whatever does not fit, the document or the variables, goes the general way; a
test holds both ways to the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphql import (
    GraphQLEnumType,
    GraphQLError,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    get_named_type,
    get_nullable_type,
    is_list_type,
    value_from_ast,
)
from graphql.language import (
    FieldNode,
    FragmentDefinitionNode,
    ListValueNode,
    NamedTypeNode,
    NonNullTypeNode,
    ObjectValueNode,
    OperationDefinitionNode,
    VariableNode,
)

from angarium.doors.http.graphql.answers import told
from angarium.doors.http.graphql.resolving import shown, snake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphql import DocumentNode, GraphQLField, GraphQLSchema
    from graphql.language import SelectionSetNode

    from angarium.doors.http.graphql.resolving import Resolvers

_INT_END: Final = 1 << 31
_LONG_END: Final = 1 << 63

_FITS: Final[dict[str, Callable[[object], bool]]] = {
    "String": lambda one: isinstance(one, str),
    "Boolean": lambda one: isinstance(one, bool),
    "Int": lambda one: type(one) is int and -_INT_END <= one < _INT_END,
    "Long": lambda one: type(one) is int and -_LONG_END <= one < _LONG_END,
}
"""Variables that are what they are; anything else is coerced on the general way."""


class Unfit(Exception):
    """This goes the general way."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A field of an answer."""

    key: str
    name: str
    fields: tuple[Wanted, ...]
    """Empty for a leaf."""
    is_list: bool
    is_id: bool
    may_be_none: bool

    @property
    def names(self) -> frozenset[str]:
        """Its own and those of all fields below it."""
        return frozenset([self.name]).union(*[one.names for one in self.fields])


@dataclass(frozen=True, slots=True)
class Step:
    """A field of the root: what to call, with what."""

    node: FieldNode
    wanted: Wanted
    fixed: dict[str, Any]
    variables: tuple[tuple[str, str], ...]
    """Argument and variable."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An operation, worked out."""

    steps: tuple[Step, ...]
    variables: dict[str, tuple[Callable[[object], bool], bool]]
    """By name: what fits, and whether it may be left out or null."""
    only_field: str | None
    """The one field of the root that is asked for; None if there are several."""
    names: frozenset[str]
    """All fields that are asked for, wherever they are."""

    def fits(self, given: Mapping[str, Any] | None) -> bool:
        """Tell whether these variables need no coercion."""
        values = given or {}
        for name, (fits, may_be_none) in self.variables.items():
            value = values.get(name)
            if value is None:
                if not may_be_none or name in values:
                    return False
            elif not fits(value):
                return False
        return True

    def arguments(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the arguments of the only field."""
        return _arguments(self.steps[0], given)

    def answer(self, *outcomes: object) -> dict[str, Any]:
        """Return the answer for what the fields came to, one after the other: values or exceptions.

        There are fewer outcomes than fields if nothing can come after the last of them.
        """
        data: dict[str, Any] = {}
        errors: list[dict[str, Any]] = []
        for step, outcome in zip(self.steps, outcomes, strict=False):
            wanted, shown = step.wanted, None
            try:
                if isinstance(outcome, Exception):
                    raise outcome
                shown = _projected(outcome, wanted)
            except Exception as error:  # each becomes an answer
                path: list[str | int] = [wanted.key]
                failed = GraphQLError(str(error), step.node, path=path, original_error=error)
                errors.append(told(failed))
                if not wanted.may_be_none:
                    return {"data": None, "errors": errors}
            data[wanted.key] = shown
        return {"data": data, "errors": errors} if errors else {"data": data}

    async def follow(self, resolvers: Resolvers, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the answer, one field after the other."""
        outcomes: list[object] = []
        for step in self.steps:
            try:
                found = await resolvers.field(step.wanted.name)(**_arguments(step, given))
                outcomes.append(found)
            except Exception as error:  # each becomes an answer
                outcomes.append(error)
                if not step.wanted.may_be_none:
                    break
        return self.answer(*outcomes)


def _arguments(step: Step, given: Mapping[str, Any] | None) -> dict[str, Any]:
    if not step.variables:
        return step.fixed
    arguments = dict(step.fixed)
    for argument, name in step.variables:
        if given is not None and name in given:
            arguments[argument] = given[name]
    return arguments


def _projected(value: Any, wanted: Wanted) -> Any:
    if value is None:
        if not wanted.may_be_none:
            raise RuntimeError(f"{wanted.name} has no value")
        return None
    if wanted.is_list:
        if wanted.fields:
            return [_object(one, wanted.fields) for one in value]
        return list(value)
    if wanted.fields:
        return _object(value, wanted.fields)
    return str(value) if wanted.is_id else value


def _object(source: Any, fields: tuple[Wanted, ...]) -> dict[str, Any]:
    return {one.key: _projected(shown(source, one.name), one) for one in fields}


# --- working it out ------------------------------------------------------------------------------


def plan_of(schema: GraphQLSchema, document: DocumentNode) -> Plan | None:
    """Return the short way for a valid document of one operation; None if it has none."""
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    fragments = any(isinstance(one, FragmentDefinitionNode) for one in document.definitions)
    if len(operations) != 1 or fragments:
        return None
    operation = operations[0]
    root = schema.get_root_type(operation.operation)
    if root is None or operation.operation.value == "subscription" or operation.directives:
        return None
    try:
        variables = {
            one.variable.name.value: _variable(schema, one)
            for one in operation.variable_definitions or ()
        }
        nodes = _fields(operation.selection_set)
        steps = tuple(_step(root.fields[node.name.value], node) for node in nodes)
    except (Unfit, KeyError):
        return None
    keys = [one.wanted.key for one in steps]
    if len(set(keys)) != len(keys):
        return None
    names: frozenset[str] = frozenset().union(*[one.wanted.names for one in steps])
    return Plan(steps, variables, steps[0].wanted.name if len(steps) == 1 else None, names)


def _variable(schema: GraphQLSchema, node: Any) -> tuple[Callable[[object], bool], bool]:
    kind, may_be_none = node.type, True
    if isinstance(kind, NonNullTypeNode):
        kind, may_be_none = kind.type, False
    if not isinstance(kind, NamedTypeNode) or node.default_value is not None or node.directives:
        raise Unfit
    name = kind.name.value
    found = schema.type_map[name]
    if isinstance(found, GraphQLEnumType):
        return found.values.__contains__, may_be_none
    if name not in _FITS:
        raise Unfit
    return _FITS[name], may_be_none


def _step(field: GraphQLField, node: FieldNode) -> Step:
    fixed: dict[str, Any] = {}
    variables: list[tuple[str, str]] = []
    given = {one.name.value: one.value for one in node.arguments or ()}
    for argument, declared in field.args.items():
        name = snake(argument)
        default = declared.ast_node.default_value if declared.ast_node is not None else None
        if default is not None:
            fixed[name] = value_from_ast(default, declared.type)
        value = given.get(argument)
        if isinstance(value, VariableNode):
            variables.append((name, value.name.value))
        elif isinstance(value, ListValueNode | ObjectValueNode):
            raise Unfit  # variables may hide inside
        elif value is not None:
            fixed[name] = value_from_ast(value, declared.type)
    return Step(node, _wanted(field, node), fixed, tuple(variables))


def _wanted(field: GraphQLField, node: FieldNode) -> Wanted:
    inner = get_named_type(field.type)
    plain = get_nullable_type(field.type)
    below: tuple[Wanted, ...] = ()
    if isinstance(inner, GraphQLObjectType):
        nodes = _fields(node.selection_set)
        below = tuple(_wanted(inner.fields[one.name.value], one) for one in nodes)
        if len({one.key for one in below}) != len(below):
            raise Unfit  # the same field twice is merged on the general way
    elif not isinstance(inner, GraphQLScalarType | GraphQLEnumType):
        raise Unfit
    return Wanted(
        key=node.alias.value if node.alias is not None else node.name.value,
        name=node.name.value,
        fields=below,
        is_list=is_list_type(plain),
        is_id=getattr(inner, "name", "") == "ID",
        may_be_none=not isinstance(field.type, GraphQLNonNull),
    )


def _fields(selections: SelectionSetNode | None) -> list[FieldNode]:
    found: list[FieldNode] = []
    for one in selections.selections if selections is not None else ():
        if not isinstance(one, FieldNode) or one.directives or one.name.value.startswith("__"):
            raise Unfit
        found.append(one)
    return found
