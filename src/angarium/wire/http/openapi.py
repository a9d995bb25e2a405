"""An OpenAPI document, made from the table of routes and the classes that read and write JSON."""

from __future__ import annotations

import ast
import inspect
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.wire.http.router import Route

_REFERENCE: Final = "#/components/schemas/{name}"

USUAL_ERRORS: Final = (400, 403, 404, 405, 408, 413, 415, 421, 429, 431, 500, 503, 504)
"""What any request may be answered with."""


def document(routes: Iterable[Route], *, info: dict[str, str], problem: type) -> dict[str, object]:
    """Return the document for `routes`; those without a tag are left out.

    `info` says what it is about; a request that fails is answered with a `problem`.
    """
    shown = [route for route in routes if route.tag]
    types = {one for route in shown for one in (route.body, route.answer) if one is not None}
    ordered = sorted(types | {problem}, key=lambda one: one.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template=_REFERENCE)
    schema_of = dict(zip(ordered, schemas, strict=True))
    trouble = {
        "description": "A problem; `code` says which.",
        "content": {"application/problem+json": {"schema": schema_of[problem]}},
    }
    paths: dict[str, dict[str, object]] = {}
    for route in shown:
        operation = _operation(route, schema_of)
        operation["responses"] = {
            str(route.status): _answer(route, schema_of),
            **{str(one): trouble for one in sorted({*USUAL_ERRORS, *route.errors})},
        }
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(route: Route, schema_of: dict[type, dict[str, Any]]) -> dict[str, object]:
    operation: dict[str, object] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": _parameters(route),
    }
    content: dict[str, object] = {kind: {} for kind in route.other_bodies}
    if route.body is not None:
        content["application/json"] = {"schema": schema_of[route.body]}
    if content:
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: Route) -> list[dict[str, object]]:
    schema = msgspec.json.schema_components([route.parameters], ref_template=_REFERENCE)[1]
    properties = schema[route.parameters.__name__].get("properties", {})
    described = sentences_of(route.parameters)
    found: list[dict[str, object]] = []
    for name, kind in properties.items():
        in_path = "{" + name + "}" in route.path
        # A parameter that may be left out is not given as null.
        kinds = [one for one in kind.get("anyOf", [kind]) if one != {"type": "null"}]
        plain = dict(kinds[0])
        if "description" in kind:
            described[name] = plain.pop("description", kind["description"])
        if kind.get("default") is not None:
            plain["default"] = kind["default"]
        if in_path and plain.get("type") == "string":
            plain["minLength"] = 1
        found.append(
            {
                "name": name,
                "in": "path" if in_path else "query",
                "required": in_path,
                "schema": plain,
                "description": described.get(name, ""),
            }
        )
    for name, meaning in route.headers:
        found.append(
            {"name": name, "in": "header", "schema": {"type": "string"}, "description": meaning}
        )
    return found


def _answer(route: Route, schema_of: dict[type, dict[str, Any]]) -> dict[str, object]:
    well: dict[str, object] = {"description": route.summary}
    content: dict[str, object] = {kind: {} for kind in route.other_answers}
    if route.answer is not None:
        content["application/json"] = {"schema": schema_of[route.answer]}
    if content:
        well["content"] = content
    return well


def sentences_of(kind: type) -> dict[str, str]:
    """Return the sentence under each field of a class; its source, or its parent's, has them."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        fields: list[ast.stmt] = []
        # A class that was made from a call's arguments has no source.
        with suppress(OSError, TypeError):
            if issubclass(one, msgspec.Struct):
                (source,) = ast.parse(inspect.getsource(one)).body
                fields = source.body if isinstance(source, ast.ClassDef) else []
        for field, below in pairwise(fields):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    found[name] = " ".join(said.split())
    return found
