"""The one table of errors: complete, without dead rows, and careful about blind repetition."""

from __future__ import annotations

import importlib
import pkgutil

import grpc
import pytest

import angarium
from angarium.doors.status import STATUSES, Exit, status_of
from angarium.errors import AngariumError, Fault, OutcomeUnknown
from angarium.service.patience import is_passing
from angarium.wire.errors import RemoteError
from angarium.wire.grpc import GrpcCode


def error_classes() -> set[type[AngariumError]]:
    """Return every class of the tree, wherever in the project it is defined."""
    for module in pkgutil.walk_packages(angarium.__path__, "angarium."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: set[type[AngariumError]] = set()
    waiting: list[type[AngariumError]] = [AngariumError]
    while waiting:
        error_class = waiting.pop()
        if error_class not in found and error_class.__module__.startswith("angarium."):
            found.add(error_class)
            waiting += error_class.__subclasses__()
    return found


CLASSES = sorted(error_classes(), key=lambda one: (one.__module__, one.__name__))
NAMED = [one for one in CLASSES if one is not RemoteError]
"""A `RemoteError` has the code that somebody else gave it."""


def test_the_tree_has_been_found() -> None:
    rooms = {one.__module__.split(".")[1] for one in CLASSES}
    assert {"errors", "raft", "wire"} <= rooms


@pytest.mark.parametrize("error_class", NAMED, ids=lambda one: one.__name__)
def test_every_error_has_a_row(error_class: type[AngariumError]) -> None:
    assert error_class.code in STATUSES, f"{error_class.code} has no row in doors/status.py"


def test_every_row_has_an_error() -> None:
    assert set(STATUSES) - {one.code for one in NAMED} == set()


@pytest.mark.parametrize("error_class", NAMED, ids=lambda one: one.__name__)
def test_doors_wait_out_exactly_what_they_call_unavailable(
    error_class: type[AngariumError],
) -> None:
    error = error_class.__new__(error_class)
    assert is_passing(error) == (STATUSES[error_class.code].grpc is GrpcCode.UNAVAILABLE)


@pytest.mark.parametrize("error_class", NAMED, ids=lambda one: one.__name__)
def test_what_clients_repeat_blindly_is_definite_and_retriable(
    error_class: type[AngariumError],
) -> None:
    if STATUSES[error_class.code].grpc is GrpcCode.UNAVAILABLE:
        assert error_class.retriable
        assert not issubclass(error_class, OutcomeUnknown)


@pytest.mark.parametrize("error_class", NAMED, ids=lambda one: one.__name__)
def test_an_unknown_outcome_is_called_unknown_at_every_door(
    error_class: type[AngariumError],
) -> None:
    if issubclass(error_class, OutcomeUnknown):
        status = STATUSES[error_class.code]
        assert status.grpc in (GrpcCode.UNKNOWN, GrpcCode.DEADLINE_EXCEEDED)
        assert (status.http, status.graphql, status.exit) == (504, "OUTCOME_UNKNOWN", Exit.UNKNOWN)


@pytest.mark.parametrize("error_class", NAMED, ids=lambda one: one.__name__)
def test_http_blames_whom_the_error_blames(error_class: type[AngariumError]) -> None:
    http = STATUSES[error_class.code].http
    if error_class.fault is Fault.CALLER:
        assert 400 <= http < 500 or http == 501
    elif error_class.code != "RESOURCE_EXHAUSTED":  # 429 is what HTTP calls it, whoever is to blame
        assert http >= 500


def test_our_numbers_are_those_of_grpc() -> None:
    theirs = {code.name: code.value[0] for code in grpc.StatusCode}
    assert {code.name: int(code) for code in GrpcCode} == theirs


def test_no_failure_exits_like_a_success() -> None:
    assert Exit.OK not in {status.exit for status in STATUSES.values()}


@pytest.mark.parametrize(
    ("retriable", "fault", "expected"),
    [
        (True, Fault.CLUSTER, GrpcCode.UNKNOWN),
        (True, Fault.CALLER, GrpcCode.UNKNOWN),
        (False, Fault.CALLER, GrpcCode.FAILED_PRECONDITION),
        (False, Fault.DATA, GrpcCode.DATA_LOSS),
        (False, Fault.CLUSTER, GrpcCode.INTERNAL),
    ],
)
def test_a_code_of_a_newer_version_is_placed_by_what_it_says_of_itself(
    retriable: bool, fault: Fault, expected: GrpcCode
) -> None:
    error = RemoteError("from tomorrow", code="FROM_TOMORROW", retriable=retriable, fault=fault)
    assert status_of(error).grpc is expected
