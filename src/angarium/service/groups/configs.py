"""A group's settings: as users say them, and as the machine keeps them."""

from __future__ import annotations

from typing import Final

from angarium.api import GroupConfig
from angarium.errors import InvalidArgument
from angarium.machine.catalog import name_fault
from angarium.machine.changes import GroupSettings

MILLISECOND_MICROS: Final = 1_000

ATTEMPTS_MAX: Final = 1_000
"""The most attempts a group may ask for."""

DAY_MS: Final = 24 * 3_600 * 1_000
"""The longest timeout or backoff a group may ask for."""

ACK_TIMEOUT_MS_MIN: Final = 100
"""The shortest lease: a shorter one would end while the record is on its way."""


def settings_of(config: GroupConfig) -> GroupSettings:
    """Return what the machine keeps; raises `InvalidArgument`."""
    if not 1 <= config.max_attempts <= ATTEMPTS_MAX:
        raise InvalidArgument(f"max_attempts is from 1 to {ATTEMPTS_MAX}")
    if not ACK_TIMEOUT_MS_MIN <= config.ack_timeout_ms <= DAY_MS:
        raise InvalidArgument(f"ack_timeout_ms is from {ACK_TIMEOUT_MS_MIN} to a day")
    if not 0 <= config.backoff_min_ms <= config.backoff_max_ms <= DAY_MS:
        raise InvalidArgument("backoff_min_ms is from 0 to backoff_max_ms, and that up to a day")
    fault = name_fault(config.dead_letter_topic, internal=True)
    if fault is not None:
        raise InvalidArgument(f"dead_letter_topic: {fault}")
    return GroupSettings(
        max_attempts=config.max_attempts,
        ack_timeout_micros=config.ack_timeout_ms * MILLISECOND_MICROS,
        backoff_min_micros=config.backoff_min_ms * MILLISECOND_MICROS,
        backoff_max_micros=config.backoff_max_ms * MILLISECOND_MICROS,
        dead_letter_topic=config.dead_letter_topic,
        poison=config.poison,
        behind=config.behind,
    )


def config_of(settings: GroupSettings) -> GroupConfig:
    """Return the same as users see it."""
    return GroupConfig(
        max_attempts=settings.max_attempts,
        ack_timeout_ms=settings.ack_timeout_micros // MILLISECOND_MICROS,
        backoff_min_ms=settings.backoff_min_micros // MILLISECOND_MICROS,
        backoff_max_ms=settings.backoff_max_micros // MILLISECOND_MICROS,
        dead_letter_topic=settings.dead_letter_topic,
        poison=settings.poison,
        behind=settings.behind,
    )
