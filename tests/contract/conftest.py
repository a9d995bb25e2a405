"""The brokers that the contract's suite is run against, for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.contract.brokers import BROKERS, Subjects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.brokers import Subject


@pytest.fixture(scope="session")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subjects]:
    found = Subjects(tmp_path_factory.mktemp("brokers"))
    yield found
    found.close()


@pytest.fixture(params=BROKERS)
def subject(request: pytest.FixtureRequest, subjects: Subjects) -> Subject:
    """Any broker; a test that needs more names its own with `parametrize(..., indirect=True)`."""
    return subjects.named(request.param)
