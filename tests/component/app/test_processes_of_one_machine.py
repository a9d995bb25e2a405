"""Several processes on one machine: what each is told, and which folders are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.app.test_processes_of_one_machine import settings_of

from angarium.app.processes import check_folder
from angarium.app.settings import InvalidSettings

if TYPE_CHECKING:
    from pathlib import Path


def used(data: Path, *numbers: int) -> None:
    for number in numbers:
        (data / f"process-{number}").mkdir()
        (data / f"process-{number}" / "identity").touch()


@pytest.mark.parametrize(
    ("there", "processes", "form", "said"),
    [
        ((), 2, True, ""),
        ((1, 2), 2, True, ""),
        ((1,), 2, True, ""),
        ((2,), 2, False, ""),
        ((1, 2), 1, False, "--processes 2"),
        ((1, 2, 3), 2, False, "--processes 3"),
        ((2,), 2, True, "second cluster"),
    ],
)
def test_a_folder_is_refused_where_a_node_would_go_missing_or_a_second_cluster_begin(
    tmp_path: Path, there: tuple[int, ...], processes: int, form: bool, said: str
) -> None:
    used(tmp_path, *there)
    base = settings_of(NODE_DATA=str(tmp_path), NODE_PROCESSES=str(processes))
    settings = replace(base, node=replace(base.node, form=form))
    if said:
        with pytest.raises(InvalidSettings, match=said):
            check_folder(settings)
    else:
        check_folder(settings)


def test_the_folder_of_a_single_node_is_not_taken_for_several(tmp_path: Path) -> None:
    (tmp_path / "identity").touch()
    check_folder(settings_of(NODE_DATA=str(tmp_path)))
    with pytest.raises(InvalidSettings, match="ran as one process"):
        check_folder(settings_of(NODE_DATA=str(tmp_path), NODE_PROCESSES="2"))
