"""Our Raft core against the scripts of a peer's own test suite.

`ANGARIUM_RAFT_CONFORMANCE` names another folder with such scripts; all that are found below it
run, whichever of the three kinds they are. Quorum tables are counted by directive.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.conformance.adapter.interaction import InteractionScript
from tests.conformance.adapter.printing import without_log_lines
from tests.conformance.adapter.tables import MembershipTable, run_quorum_table
from tests.conformance.datadriven import Directive, read_script

DEFAULT_FOLDER = Path(__file__).parents[2].parent / "shared" / "raft-conformance"
FOLDER = Path(os.environ.get("ANGARIUM_RAFT_CONFORMANCE") or DEFAULT_FOLDER)

QUORUM_COMMANDS = {"committed", "vote"}
MEMBERSHIP_COMMANDS = {"simple", "enter-joint", "leave-joint"}

NOT_YET: dict[str, str] = {}
"""Scripts that do not pass yet, by file name, with the reason."""


def _scripts() -> dict[Path, list[Directive]]:
    paths = sorted(FOLDER.rglob("*.txt")) if FOLDER.is_dir() else []
    return {path: script for path in paths if (script := read_script(path))}


def _of_kind(commands: set[str]) -> dict[Path, list[Directive]]:
    """Return the scripts whose first directive is one of `commands`."""
    return {path: script for path, script in SCRIPTS.items() if script[0].command in commands}


SCRIPTS = _scripts()
QUORUM = _of_kind(QUORUM_COMMANDS)
MEMBERSHIP = _of_kind(MEMBERSHIP_COMMANDS)
INTERACTION = {p: s for p, s in SCRIPTS.items() if p not in QUORUM and p not in MEMBERSHIP}


def _name(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def _cases(scripts: dict[Path, list[Directive]]) -> list[object]:
    return [
        pytest.param(
            script,
            id=_name(path),
            marks=[pytest.mark.xfail(reason=NOT_YET[path.name])] if path.name in NOT_YET else [],
        )
        for path, script in scripts.items()
    ]


def test_there_are_scripts_to_run() -> None:
    if not SCRIPTS:
        pytest.skip(
            f"no Raft scripts in {FOLDER.name}/: put the peer's data files beside the project, "
            "or set ANGARIUM_RAFT_CONFORMANCE to their folder"
        )
    unknown = set(NOT_YET) - {path.name for path in SCRIPTS}
    assert FOLDER != DEFAULT_FOLDER or not unknown, "expected to fail, but not there"


if QUORUM:

    @pytest.mark.parametrize(
        "directive",
        [
            pytest.param(directive, id=f"{_name(path)}:{directive.line}")
            for path, script in QUORUM.items()
            for directive in script
        ],
    )
    def test_a_quorum_decides_as_the_table_says(directive: Directive) -> None:
        assert run_quorum_table(directive) == directive.expected


if MEMBERSHIP:

    @pytest.mark.parametrize("script", _cases(MEMBERSHIP))
    def test_a_membership_changes_as_the_table_says(script: list[Directive]) -> None:
        table = MembershipTable()
        for directive in script:
            assert table.run(directive) == directive.expected.rstrip(), f"line {directive.line}"


if INTERACTION:

    @pytest.mark.parametrize("script", _cases(INTERACTION))
    def test_replicas_interact_as_the_script_says(script: list[Directive]) -> None:
        environment = InteractionScript()
        for directive in script:
            printed = without_log_lines(environment.run(directive))
            expected = without_log_lines(directive.expected)
            assert printed == expected, f"line {directive.line}: {directive.command}"
