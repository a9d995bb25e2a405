"""Commands that stand in the pages and in --help are commands: each is understood as printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tests.unit.cli.test_what_can_be_written import every_parser

from angarium.app.sources import PREFIX, known_settings, variable
from angarium.cli.grammar import grammar
from angarium.security.tls.client import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = ("|", "||", "&&", "&", ";", ">", ">>", "<")
"""Where a command ends and another one, or a file, begins."""

OTHERS = {"FORMAT", "JAVA", "PROFILE", "PROFILES", "REGION", "SERVERS", "TRACEBACK"} | {
    "ADMIN_PASSWORD",
    "JOIN_TOKEN",
    "PASSWORD",
    "TOKEN",
    "USER",
}
"""Variables of the command line itself, and of clients."""


def commands(text: str) -> Iterator[str]:
    """Yield the lines that begin with the program's name, without what stands in front of it."""
    for line in text.replace("\\\n", " ").splitlines():
        found = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*angarium ([a-z-].*)$", line)
        if found:
            yield found[1]


def mentions(text: str) -> Iterator[str]:
    """Yield the commands that sentences name."""
    yield from re.findall(r"(?<!`)`angarium ([a-z][^`\n]*)`(?!`)", text)


def complaint(command: str) -> str:
    """Return what the grammar has against a command; empty if it is understood."""
    words = shlex.split(command, comments=True)
    end = next((at for at, word in enumerate(words) if word in SHELL), len(words))
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        try:
            grammar().parse_args(words[:end])
        except SystemExit as ended:
            return told.getvalue() if ended.code else ""
    return ""


def test_every_command_in_the_pages_is_understood() -> None:
    found = [(page.name, one) for page in PAGES for one in commands(page.read_text("utf-8"))]
    assert len(found) > 30
    wrong = [(page, one, what) for page, one in found if (what := complaint(one))]
    assert wrong == []


def test_every_command_that_a_sentence_names_exists() -> None:
    found = [(page.name, one) for page in PAGES for one in mentions(page.read_text("utf-8"))]
    assert len(found) > 100
    # They need not be whole, and words with bars between them stand for several commands.
    named = [(page, one) for page, one in found if "|" not in one]
    wrong = [(page, one, what) for page, one in named if "there is no" in (what := complaint(one))]
    assert wrong == []


def test_every_command_in_a_help_text_is_understood() -> None:
    texts = [parser.epilog or "" for parser in every_parser(grammar())]
    found = [one for text in texts for one in commands(text)]
    assert len(found) > 10
    # What is written in capitals, or may be left out, stands for something.
    examples = [one for one in found if not re.search(r"\b[A-Z]{4,}\b|\[|\.\.\.", one)]
    # What it is for stands behind it, in a column of its own.
    examples = [re.split(r" {2,}", one)[0] for one in examples]
    wrong = [(one, what) for one in examples if (what := complaint(one))]
    assert wrong == []


def test_every_variable_in_a_help_text_or_a_page_exists() -> None:
    texts = [parser.format_help() for parser in every_parser(grammar())]
    texts += [page.read_text("utf-8") for page in PAGES]
    known = {variable(*one) for one in known_settings()} | {PREFIX + one for one in OTHERS}
    # `make` and the tests have a few of their own.
    known |= set(re.findall(rf"{PREFIX}[A-Z_]+", (ROOT / "Makefile").read_text("utf-8")))
    known |= {"ANGARIUM_RAFT_CONFORMANCE", *VARIABLES.values()}
    named = {one for text in texts for one in re.findall(rf"{PREFIX}[A-Z_]+[A-Z]", text)}
    assert named - known == set()


def test_commands_that_are_none_are_noticed() -> None:
    assert complaint("dlq show 0 17")
    assert complaint("topic create x --partitons 3")
    assert not complaint("dlq show 0@17 | head")
