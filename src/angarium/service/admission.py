"""Whether a topic takes what is published to it at all, and whether batches fit it.

The latter is told from headers alone. A batch without delays, for a topic that is not compacted,
costs one look.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.api.transactions import HOMES_TOPIC
from angarium.batch.layout import KEY_NULLS, KEYS
from angarium.errors import InvalidArgument
from angarium.machine.catalog.values import Cleanup
from angarium.machine.keys import KEYED_FROM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.ids import Buffer, Micros
    from angarium.machine.catalog import TopicSettings

_LOOK: Final = Struct("<44xI80xq").unpack_from
"""A batch's flags, and the latest time of delivery that it asks for."""

_PRODUCER: Final = Struct("<56xq").unpack_from
"""Whose a batch is."""

_SECOND_MICROS: Final = 1_000_000


def check_writable(topic: str) -> None:
    """Raise `InvalidArgument` for a topic of the cluster's own, in which nobody else writes.

    Dead letters are not meant: others may add theirs.
    """
    if topic == HOMES_TOPIC:
        raise InvalidArgument(
            f"{topic} is internal, for decisions of transactions: you cannot publish to it"
        )


def check_fit(
    batches: Iterable[Buffer], settings: TopicSettings, *, now: Callable[[], Micros]
) -> None:
    """Raise `InvalidArgument` unless a topic can do with these batches what they ask for.

    A delivery time beyond the retention, or the expiry, of the topic could never be kept. A record
    without a key cannot be kept in a topic that keeps the latest record of each key.
    """
    is_compacted = settings.cleanup is Cleanup.COMPACT
    for batch in batches:
        flags, deliver_at = _LOOK(batch)
        if deliver_at:
            _check_delay(deliver_at, settings, now())
        if is_compacted and flags & (KEYS | KEY_NULLS) != KEYS:
            raise InvalidArgument(
                "a compacted topic keeps the latest record of each key, so every record "
                "published to it needs a key"
            )


def check_passing(batches: Iterable[Buffer]) -> None:
    """Raise `InvalidArgument` for a batch under an idempotency key that nobody would remember.

    Whoever sends it may have left the mode to the topic, and would take every repetition for new.
    """
    for batch in batches:
        if _PRODUCER(batch)[0] >= KEYED_FROM:
            raise InvalidArgument(
                "mode performance stores nothing, so it cannot recognise an idempotency key"
            )


def _check_delay(deliver_at: int, settings: TopicSettings, now: Micros) -> None:
    for name, limit in (
        ("retention", settings.retention_micros),
        ("expiry", settings.expiry_micros),
    ):
        if limit is not None and deliver_at - now > limit:
            raise InvalidArgument(
                f"a record is to be delivered in {(deliver_at - now) / _SECOND_MICROS:g} s, "
                f"and the topic's {name} is {limit / _SECOND_MICROS:g} s: it would be trimmed first"
            )
