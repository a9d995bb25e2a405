"""Structured logs: readable on a terminal, one JSON object per line otherwise.

Rooms log through the standard library, with facts as `extra`: `log.info("joined", extra={"node":
3})`. A line is always one line: whatever a user's data put into it is escaped. Lines are written by
a thread of their own, so a terminal that is paused or a pipe that nobody reads never stalls the
event loop; when too many wait, further ones are dropped, counted, and the count is told.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import time
from queue import Full, Queue
from typing import IO, TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

LINES_WAITING_MAX: Final = 10_000
"""Lines that wait to be written. At the limit new ones are dropped; the next line says how many."""

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")

LogFormat = Literal["auto", "human", "json"]

_ROOT: Final = "angarium"
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes every record has; all others were given as `extra`."""


class Logs:
    """The logs of this process, from `start` until `stop`."""

    def __init__(
        self,
        *,
        level: str,
        stream: IO[str],
        style: LogFormat = "auto",
        lines_waiting_max: int = LINES_WAITING_MAX,
    ) -> None:
        self._level = level
        is_human = style == "human" or (style == "auto" and stream.isatty())
        self._writer = logging.StreamHandler(stream)
        self._writer.setFormatter(HumanLines() if is_human else JsonLines())
        self._waiting = _Waiting(Queue(lines_waiting_max))
        self._thread = logging.handlers.QueueListener(self._waiting.queue, self._writer)

    def start(self) -> None:
        """Send everything that is logged to the stream."""
        root = logging.getLogger()
        root.handlers = [self._waiting]
        # What libraries say matters only when something is wrong; our own level is ours to choose.
        root.setLevel(logging.WARNING)
        set_level(self._level)
        self._thread.start()

    def stop(self) -> None:
        """Write what still waits, and write nothing more."""
        root = logging.getLogger()
        if self._waiting in root.handlers:
            root.removeHandler(self._waiting)
        self._thread.stop()

    def toggle_debug(self) -> str:
        """Switch between DEBUG and the level chosen at the start; return the new one."""
        is_debug = logging.getLogger(_ROOT).level == logging.DEBUG
        level = ("INFO" if self._level == "DEBUG" else self._level) if is_debug else "DEBUG"
        set_level(level)
        return level


def set_level(level: str, *, room: str = "") -> None:
    """From now on log what is at least as grave as `level`: everywhere, or in one room only."""
    assert level in LEVELS, level
    logging.getLogger(f"{_ROOT}.{room}" if room else _ROOT).setLevel(level)


def facts(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return what was given as `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


class JsonLines(logging.Formatter):
    """One JSON object per line: for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return `record` as JSON; times are UTC."""
        line: dict[str, Any] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: _plain(value) for name, value in facts(record).items()},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        if text.isprintable():
            return text
        # JSON itself leaves a terminal's other control characters, other ends of lines, and halves
        # of characters, which no file takes.
        return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


class HumanLines(logging.Formatter):
    """Time, level, room, message, facts: for somebody who watches."""

    def format(self, record: logging.LogRecord) -> str:
        """Return `record` as one line, with its traceback indented below where there is one."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        room = record.name.removeprefix(f"{_ROOT}.")
        said = [escaped(record.getMessage())]
        said += [f"{name}={escaped(str(value))}" for name, value in facts(record).items()]
        line = f"{clock}.{record.msecs:03.0f} {record.levelname:<7} {room}: {' '.join(said)}"
        if record.exc_info:
            trace = self.formatException(record.exc_info).splitlines()
            line = "\n    ".join([line, *map(escaped, trace)])
        return line


def escaped(text: str) -> str:
    """Return `text` without anything that could end a line or steer a terminal."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class _Waiting(logging.handlers.QueueHandler):
    """Puts lines where the writing thread finds them, and never waits."""

    queue: Queue[Any]

    def __init__(self, lines: Queue[Any]) -> None:
        super().__init__(lines)
        self._dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        if self._dropped:
            record.dropped_before = self._dropped
        try:
            self.queue.put_nowait(record)
        except Full:
            self._dropped += 1
        else:
            self._dropped = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        # The base class would format here, once for every handler; ours formats when it writes.
        record.msg, record.args = record.getMessage(), None
        return record


def _utc(seconds: float) -> str:
    whole, part = divmod(seconds, 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int(part * 1e6):06d}Z"


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | None) else str(value)
