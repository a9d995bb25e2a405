"""The documents: links lead somewhere, every decision is listed, no page names this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    inside = [target for target in targets if "://" not in target]
    assert [target for target in inside if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_folder_of_the_machine_it_was_written_on(page: Path) -> None:
    assert re.findall(r"(?<![\w.])/(?:work|root|home)/\S+", page.read_text(encoding="utf-8")) == []


def test_every_decision_is_numbered_once_has_all_parts_and_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    numbers = [page.name[:4] for page in DECISIONS]
    assert len(set(numbers)) == len(numbers)
    for page in DECISIONS:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]} "), page.name
        headings = re.findall(r"^## (\w+)", text, re.MULTILINE)
        assert {"Context", "Decision", "Consequences", "Limits"} <= set(headings), page.name
        assert f"decisions/{page.name}" in index, f"{page.name} is missing in docs/index.md"
