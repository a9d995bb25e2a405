"""A missing program: a skip with the line that installs it, a failure where none is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.system_programs import REQUIRE_SYSTEM, require_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def list_with_a_courier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "system-packages.txt"
    packages.write_text("# programs\ncourier  courier --version\ncoreutils  ls\n", encoding="utf-8")
    monkeypatch.setattr("tests.system_programs.PACKAGES", packages)
    monkeypatch.delenv(REQUIRE_SYSTEM, raising=False)


def test_a_program_that_is_there_is_found() -> None:
    assert require_program("ls", apt="coreutils").endswith("/ls")


def test_a_missing_program_skips_with_the_line_that_installs_it() -> None:
    with pytest.raises(pytest.skip.Exception, match="sudo apt-get install -y courier"):
        require_program("courier-of-darius", apt="courier")


def test_a_missing_program_fails_where_no_such_skip_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(REQUIRE_SYSTEM, "1")
    with pytest.raises(pytest.fail.Exception, match="courier-of-darius is missing"):
        require_program("courier-of-darius", apt="courier")


def test_a_package_outside_the_list_is_an_error_of_the_test() -> None:
    with pytest.raises(AssertionError, match="system-packages"):
        require_program("ls", apt="horse")
