"""The board on which pipelines say that they run, and are told to stop: a topic.

Everybody who can reach the broker sees the same, wherever a pipeline runs. A line is believed for
half a minute; a pipeline that has not renewed it by then is called lost.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.client import SyncClient, TopicConfig
from angarium.errors import AlreadyExists, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

BOARD_TOPIC: Final = "angarium-pipelines"
RETENTION_MS: Final = 24 * 3600 * 1000
"""How long lines stay. What was not renewed for so long is forgotten."""

POST_S: Final = 5.0
"""How often a pipeline renews its line, unless its state changes."""

BELIEVED_S: Final = 30.0


class State(StrEnum):
    """How a pipeline is."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"
    """It ran, and has not been heard of since."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a pipeline says of itself."""

    name: str
    state: State
    kind: str = ""
    """What it does: sql, archive, mirror, …"""
    batch: int = -1
    input_rows_per_s: float = 0.0
    processed_rows_per_s: float = 0.0
    batch_ms: int = 0
    lag: int = 0
    error: str = ""
    where: str = ""
    """Host and process."""
    report: dict[str, int] = {}
    """What it has counted since it was started, such as the records that failed an expectation."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    status: Status | None = None
    stop: str = ""
    """The name of a pipeline that is to stop."""


class Board:
    """One process's view of the board."""

    def __init__(
        self,
        client: SyncClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.client = client
        self._clock = clock
        self._wall_clock = wall_clock
        """Compared with the brokers' times: a machine whose clock is wrong by half a minute takes
        everybody for lost."""
        self._posted: Status | None = None
        self._posted_at = 0.0
        self._heard_to: int | None = None
        with suppress(AlreadyExists):
            client.create_topic(
                BOARD_TOPIC, partitions=1, config=TopicConfig(retention_ms=RETENTION_MS)
            )

    def post(self, status: Status, *, at_once: bool = False) -> None:
        """Renew a pipeline's line, if it is time or its state has changed."""
        now = self._clock()
        is_changed = self._posted is None or self._posted.state != status.state
        if at_once or is_changed or now - self._posted_at >= POST_S:
            line = _Line(status=msgspec.structs.replace(status, where=_here()))
            self.client.publish(BOARD_TOPIC, msgspec.json.encode(line), key=status.name)
            self._posted, self._posted_at = status, now

    def is_told_to_stop(self, name: str) -> bool:
        """Tell whether somebody has asked the pipeline to stop since it was last looked for."""
        if self._heard_to is None:
            self._heard_to = int(self.client.find_offset(BOARD_TOPIC, 0, "latest"))
        records = self.client.fetch(BOARD_TOPIC, 0, self._heard_to)
        for record in records:
            assert record.offset is not None, "what is fetched is stored"
            self._heard_to = record.offset + 1
        return any(_line(record.value).stop == name for record in records)

    def refuse_second(self, name: str) -> None:
        """Raise `PreconditionFailed` if a process of this machine runs a pipeline of that name.

        Two with one checkpoint get in each other's way. What was heard of another machine a moment
        ago may be dead; that only a person knows.
        """
        for one in self.statuses():
            host, _, process = one.where.rpartition(":")
            if (
                one.name == name
                and one.state is State.RUNNING
                and one.where != _here()
                and host == socket.gethostname()
                and process.isdigit()
                and _is_alive(int(process))
            ):
                raise PreconditionFailed(
                    f"a pipeline {name} runs already, as process {process}: angarium pipeline stop "
                    f"{name} ends it, or give this one another name and a checkpoint of its own"
                )

    def stop(self, name: str) -> None:
        """Tell a pipeline to stop; `NotFound` if none of that name runs."""
        if not any(one.name == name and one.state is State.RUNNING for one in self.statuses()):
            raise NotFound(f"no pipeline {name} is running")
        self.client.publish(BOARD_TOPIC, msgspec.json.encode(_Line(stop=name)), key=name)

    def statuses(self) -> list[Status]:
        """Return the newest line of every pipeline, by name."""
        newest: dict[str, Status] = {}
        for record in self.client.read(BOARD_TOPIC):
            status = _line(record.value).status
            if status is not None:
                age_s = self._wall_clock() - record.append_time / 1e6
                if status.state is State.RUNNING and age_s > BELIEVED_S:
                    status = msgspec.structs.replace(status, state=State.LOST)
                newest[status.name] = status
        return [newest[name] for name in sorted(newest)]


def _here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def _line(value: bytes | None) -> _Line:
    try:
        return msgspec.json.decode(value or b"{}", type=_Line)
    except msgspec.MsgspecError:
        return _Line()  # somebody else's
