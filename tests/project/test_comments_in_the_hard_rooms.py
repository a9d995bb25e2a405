"""Where the matter is hard, the code says why: comments do not quietly disappear again.

Counted are lines with a comment of their own or behind code, without rules (`# ---`) and words to
tools, per 100 lines of code. Docstrings do not count. A floor is no goal: it lies well below what
is there, so that it only speaks up when explanations were lost on the way.

A comment may name the planted bug (`tests/simulation/bugs_*.py`) that shows what its line prevents:
"Planted as vote-not-persisted." Such a name leads somewhere.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest
from tests.simulation import bugs_in_compaction
from tests.simulation.planted import BUGS
from tests.simulation.planting import bugs_of

SOURCES = Path(__file__).parents[2] / "src" / "angarium"
NO_WORDS = ("---", "type:", "noqa", "pragma")
LAYOUT = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of(source: str) -> tuple[int, int]:
    """Return how many lines have code, and how many a comment."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if not token.string.lstrip("# ").startswith(NO_WORDS):
                comments.add(token.start[0])
        elif token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - texts), len(comments)


@pytest.mark.parametrize(
    ("room", "floor"),
    [
        ("raft", 9),
        ("log/wal", 7),
        ("replica", 6.5),
        ("delivery", 5),
        ("service/transactions", 4),
        ("log/segments", 2.5),
        ("machine", 2.5),
    ],
)
def test_hard_rooms_say_why(room: str, floor: float) -> None:
    counts = [lines_of(path.read_text()) for path in sorted((SOURCES / room).rglob("*.py"))]
    code, comments = map(sum, zip(*counts, strict=True))
    assert 100 * comments >= floor * code, f"{room}: {100 * comments / code:.1f} per 100 lines"


def test_rules_and_words_to_tools_are_no_comments() -> None:
    source = '"""Text."""\n# --- rule ---\na = 1  # noqa: E501\n# Why.\nb = 2  # the unit\n'
    assert lines_of(source) == (2, 2)


def test_planted_bugs_that_comments_name_are_there() -> None:
    known = {*BUGS, *(one.name for one in bugs_of(bugs_in_compaction))}
    named: dict[str, str] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        prose = re.sub(r"\n\s*#\s*", " ", path.read_text())
        for words in re.findall(r"[Pp]lanted(?: \w+)* as ([^.)]+)", prose):
            for name in re.findall(r"[a-z]+(?:-[a-z]+)+", words):
                named[name] = str(path.relative_to(SOURCES))
    assert len(named) > 50
    assert {name: path for name, path in named.items() if name not in known} == {}
