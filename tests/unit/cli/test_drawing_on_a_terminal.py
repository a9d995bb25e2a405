"""What a terminal gets to see: lines drawn over one another, progress, and no colour unasked."""

from __future__ import annotations

import io
import os

import pytest

from angarium.cli.output import coloured, has_colour, readable, table_lines, text_or_base64
from angarium.cli.progress import Progress
from angarium.cli.screen import Line, Screen


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def small_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "angarium.cli.screen.shutil.get_terminal_size", lambda: os.terminal_size((20, 5))
    )
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_block_is_drawn_over_itself() -> None:
    terminal = Terminal()
    screen = Screen(terminal)
    screen.draw([Line("one"), Line("two")])
    screen.draw([Line("three")])
    screen.say("kept")
    screen.draw([Line("four")])
    assert terminal.getvalue() == (
        "one\033[K\ntwo\033[K\n\033[J"
        "\033[2Fthree\033[K\n\033[J"
        "\033[1F\033[Jkept\n"
        "four\033[K\n\033[J"
    )


def test_a_block_never_scrolls_and_never_wraps() -> None:
    terminal = Terminal()
    Screen(terminal).draw([Line("x" * 50)] * 9)
    drawn = terminal.getvalue().removesuffix("\033[J").splitlines()
    assert len(drawn) == 4
    assert all(len(line.removesuffix("\033[K")) < 20 for line in drawn)


def test_colours_are_only_for_terminals_whose_owner_likes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not has_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    assert has_colour(Terminal())
    assert not has_colour(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colour(Terminal())
    assert coloured("x", "red", on=False) == "x"


def test_numbers_stand_to_the_right_and_absence_is_a_dash() -> None:
    assert table_lines(("name", "n", "ok"), [("a", 5, True), ("longer", None, False)]) == [
        "NAME    N  OK",
        "a       5  yes",
        "longer  -  no",
    ]


def test_bytes_are_shown_as_text_where_they_are_text() -> None:
    assert readable(None) == "-"
    assert readable(b"gr\xc3\xbc\xc3\x9fe\n") == "grüße\\n"
    assert readable(b"\xff") == "\\xff"
    assert text_or_base64("key", b"\xff") == {"key_base64": "/w=="}
    assert text_or_base64("key", None) == {"key": None}


def test_progress_is_drawn_on_a_terminal_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    progress = Progress(total_bytes=100, quiet=False)
    progress.add(5, 50)
    assert "[############            ]  50%  5 records" in terminal.getvalue()
    progress.close()
    assert terminal.getvalue().endswith("\r\033[K")
    assert Progress(total_bytes=None, quiet=False).line().startswith("0 records")


def test_without_a_terminal_there_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    progress = Progress(total_bytes=100, quiet=False)
    progress.add(5, 50)
    progress.close()
    assert stream.getvalue() == ""
