"""Records in PERFORMANCE mode: they pass, and are stored nowhere, so nobody numbers or times them.

Clients of earlier brokers, and of GraphQL, expect an id and a time of every message all the same:
some throw away what comes under an id they have seen. So the door that hands such a record on says
when that was, and makes up an id that no other message has.
"""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Final

from angarium.doors import timing

if TYPE_CHECKING:
    from angarium.batch import Record

_MARK: Final = "live-"
_ORIGIN: Final = uuid.uuid4().hex
"""Of this process."""
_numbers: Final = itertools.count()


def passing_id(topic: str, partition: int) -> str:
    """Return an id for a message that is stored nowhere."""
    # Numbers of one origin: to ask the system for chance costs as much as all else about a record.
    return f"{topic}/{partition}/{_MARK}{_ORIGIN}-{next(_numbers)}"


def time_us(record: Record) -> int:
    """Return when a record was appended, or else what its producer says, or else now."""
    return record.append_time or record.timestamp or timing.now()
