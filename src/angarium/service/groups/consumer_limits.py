"""Bounds and times of the consumers connected to a node, each with what happens there."""

from __future__ import annotations

from typing import Final

CREDIT_MAX: Final = 100_000
"""Records on loan to one consumer. A larger wish is refused."""

TOPICS_MAX: Final = 256
"""Topics of one consumer. A longer list is refused."""

CONSUMERS_MAX: Final = 1_000
"""Consumers connected to one node: each has a stream to every node that leads for it, and no
connection carries many more. One more is refused with RESOURCE_EXHAUSTED."""

LINGER_S: Final = 1.0
"""How long a consumer whose connection broke stays in its group, so that it may come back. Then its
records go to others."""
