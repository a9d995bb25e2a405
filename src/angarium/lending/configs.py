"""A group's settings: as users say them, and as the machine keeps them."""

from __future__ import annotations

from angarium.api import GroupConfig
from angarium.api.settings import check, kept, told
from angarium.errors import InvalidArgument
from angarium.machine.catalog import name_fault
from angarium.machine.changes import GroupSettings


def settings_of(config: GroupConfig) -> GroupSettings:
    """Return what the machine keeps; raises `InvalidArgument`."""
    check(config)
    if config.backoff_min_ms > config.backoff_max_ms:
        raise InvalidArgument("backoff_min_ms is from 0 to backoff_max_ms")
    fault = name_fault(config.dead_letter_topic, internal=True)
    if fault is not None:
        raise InvalidArgument(f"dead_letter_topic: {fault}")
    return GroupSettings(**kept(config))


def config_of(settings: GroupSettings) -> GroupConfig:
    """Return the same as users see it."""
    return GroupConfig(**told(GroupConfig, settings))
