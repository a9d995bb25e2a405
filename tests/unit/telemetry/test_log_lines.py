"""Log lines: always one line, readable or JSON, and never something to wait for."""

from __future__ import annotations

import io
import json
import logging
import threading
from typing import TYPE_CHECKING

import pytest

from angarium.telemetry import logs
from angarium.telemetry.logs import HumanLines, JsonLines, Logs, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("angarium.test")


@pytest.fixture(autouse=True)
def keep_logging() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("angarium")
    before = root.handlers[:], root.level, own.level
    yield
    root.handlers[:], root.level = before[0], before[1]
    own.setLevel(before[2])


def said(style: logs.LogFormat = "json", level: str = "INFO") -> tuple[Logs, io.StringIO]:
    stream = io.StringIO()
    started = Logs(level=level, stream=stream, style=style)
    started.start()
    return started, stream


def test_a_json_line_has_the_message_and_its_facts() -> None:
    started, stream = said()
    log.info("joined %s", "a cluster", extra={"node": 3, "path": object})
    started.stop()
    line = json.loads(stream.getvalue())
    assert (line["level"], line["logger"]) == ("info", "angarium.test")
    assert (line["message"], line["node"]) == ("joined a cluster", 3)
    assert line["time"].endswith("Z")
    assert isinstance(line["path"], str)


def test_whatever_a_user_writes_stays_on_one_line() -> None:
    for style in ("json", "human"):
        started, stream = said(style)
        log.info("topic %s", "a\nFAKE ERROR\x1b[2J", extra={"key": "x\ny"})
        started.stop()
        assert stream.getvalue().count("\n") == 1
        assert "\x1b" not in stream.getvalue()


def test_auto_is_json_where_there_is_no_terminal() -> None:
    started, stream = said("auto")
    log.info("hello")
    started.stop()
    assert json.loads(stream.getvalue())["message"] == "hello"


def test_the_level_can_be_changed_while_running() -> None:
    started, stream = said(level="WARNING")
    log.info("one")
    assert started.toggle_debug() == "DEBUG"
    log.debug("two")
    assert started.toggle_debug() == "WARNING"
    log.info("three")
    logs.set_level("DEBUG", room="test")
    log.debug("four")
    logging.getLogger("angarium.test").setLevel(logging.NOTSET)
    started.stop()
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == [
        "two",
        "four",
    ]


def test_an_exception_comes_with_its_trace_indented_below() -> None:
    record = logging.LogRecord("angarium.x", logging.ERROR, "", 0, "broken", None, None)
    try:
        raise ValueError("why")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    human = HumanLines().format(record).splitlines()
    assert human[0].endswith("ERROR   x: broken")
    assert all(line.startswith("    ") for line in human[1:])
    assert "ValueError: why" in json.loads(JsonLines().format(record))["exception"]


class PausedTerminal(io.StringIO):
    """Takes a line only when it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.goes_on = threading.Event()
        self.lines = threading.Semaphore(0)

    def write(self, text: str) -> int:
        self.is_asked.set()
        self.goes_on.wait(60)
        count = super().write(text)
        self.lines.release()
        return count


def test_lines_beyond_the_limit_are_dropped_and_counted() -> None:
    terminal = PausedTerminal()
    started = Logs(level="INFO", stream=terminal, style="json", lines_waiting_max=2)
    started.start()
    log.info("line 0")
    assert terminal.is_asked.wait(60)
    for number in range(1, 6):  # two wait behind the one that is being written
        log.info("line %d", number)
    terminal.goes_on.set()
    assert all(terminal.lines.acquire(timeout=60) for _ in range(3))
    log.info("later")
    started.stop()
    lines = [json.loads(line) for line in terminal.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["line 0", "line 1", "line 2", "later"]
    assert lines[-1]["dropped_before"] == 3


def test_printable_text_is_left_alone() -> None:
    assert escaped("grüße, 世界") == "grüße, 世界"
    assert escaped("a\tb\x00\u202e") == "a\\tb\\x00\\u202e"


def test_json_cannot_steer_a_terminal_either() -> None:
    nasty = "a\x9b31m\x85b\u2028c\x7f\ud800\U000e0001 grüße"
    line = JsonLines().format(logging.makeLogRecord({"msg": nasty, "name": "angarium.x"}))
    assert line.isprintable()
    assert json.loads(line)["message"] == nasty
    assert "grüße" in line
    line.encode()
