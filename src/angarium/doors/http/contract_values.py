"""The contract's values, to and from their JSON forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from angarium.doors.http.forms import written
from angarium.doors.http.problems import told
from angarium.doors.http.values import MODES, Ack
from angarium.doors.intake.acks import error_of_ack, span
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium import api

_MODES = {name: DeliveryMode(number) for number, name in enumerate(MODES)}


def mode_of(name: str | None) -> DeliveryMode | None:
    """Return the delivery mode; its name has been checked."""
    return None if name is None else _MODES[name]


def ack_out(ack: api.Ack, *, place: int | None = None) -> Ack:
    """Return what became of a batch, or of the record at one `place` in it."""
    start, end = span(ack, place)
    return Ack(
        topic=ack.topic,
        partition=ack.partition,
        mode=MODES[ack.mode],
        offset=UNSET if start is None else start,
        next_offset=UNSET if end is None else end,
        append_time_us=UNSET if ack.append_time is None else ack.append_time,
        term=UNSET if ack.term is None else ack.term,
        provisional=ack.provisional,
        duplicate=ack.duplicate,
        id=ack.id,
        subscribers=ack.subscribers if ack.mode is DeliveryMode.PERFORMANCE else UNSET,
        error=told(error_of_ack(ack)) if ack.code else UNSET,
    )


def topic_out(topic: api.TopicInfo) -> dict[str, Any]:
    """Return a topic."""
    found: dict[str, Any] = msgspec.to_builtins(topic)
    found["config"] = written(topic.config)
    found["created_at_us"] = found.pop("created_at")
    return found
