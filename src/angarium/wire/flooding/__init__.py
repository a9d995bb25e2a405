"""Bounds on floods of control frames, and on everything before login."""

from angarium.wire.flooding.bounds import (
    CALM_FRAMES_MAX,
    CONTROL_FRAMES_MAX,
    DECLARED,
    FRAMES_PER_TURN,
    FRAMES_WITH_WORK,
    Counts,
    Door,
)
from angarium.wire.flooding.gate import FloodGate, gate_of, take_turn
from angarium.wire.flooding.meter import FloodMeter, TooManyFrames

__all__ = [
    "CALM_FRAMES_MAX",
    "CONTROL_FRAMES_MAX",
    "DECLARED",
    "FRAMES_PER_TURN",
    "FRAMES_WITH_WORK",
    "Counts",
    "Door",
    "FloodGate",
    "FloodMeter",
    "TooManyFrames",
    "gate_of",
    "take_turn",
]
