"""The OpenAPI document, held against a running node by a tool that makes requests up."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from angarium.bench.cluster import BenchCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


EXAMPLES = 8
"""Requests made up for each operation; a run has two dozen of them."""


@pytest.fixture(scope="session")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node of its own: it will be asked to do whatever its document allows."""
    cluster = BenchCluster(tmp_path_factory.mktemp("single"), nodes=1)
    try:
        asyncio.run(cluster.start())
        yield f"http://{cluster.nodes[0].http}"
    finally:
        cluster.stop()


def test_every_answer_is_one_that_the_document_tells_of(single: str) -> None:
    api = schemathesis.openapi.from_url(f"{single}/v1/openapi.json")
    tried = 0
    for found in api.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.path.endswith("/stream"):
            continue  # it has no end; tests of its own follow it
        began = time.monotonic()
        _try_out(operation)
        print(f"{operation.label}: {time.monotonic() - began:.1f} s")
        tried += 1
    assert tried >= 25


def _try_out(operation: Any) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def every_answer(case: Any) -> None:
        if "wait_ms" in (case.query or {}):
            case.query["wait_ms"] = 0  # nobody will publish meanwhile
        response = case.call(timeout=60)
        case.validate_response(response, checks=_document_checks())

    every_answer()


def _document_checks() -> list[Any]:
    from schemathesis.specs.openapi import checks

    return [
        schemathesis.checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]


def test_the_document_is_valid_and_lists_every_request(single: str) -> None:
    with urllib.request.urlopen(f"{single}/v1/openapi.json", timeout=60) as answer:
        document = json.load(answer)
    assert document["openapi"].startswith("3.1")
    operations = [
        one["operationId"] for path in document["paths"].values() for one in path.values()
    ]
    assert len(operations) == len(set(operations)) >= 25
    assert {"publish", "publish_batch", "fetch", "stream", "group_lag", "redrive_dead_letters"} <= {
        *operations
    }
