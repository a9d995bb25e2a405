"""What people call a partition: the one spelling for every sentence they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.machine.catalog import CatalogMachine
    from angarium.machine.catalog.values import Partition


def partition_name(machine: CatalogMachine, partition: Partition) -> str:
    """Return a partition as people know it: `partition 0 of orders`."""
    topic = machine.topics.by_id.get(partition.topic)
    return f"partition {partition.number} of {topic.name if topic else 'a topic that was deleted'}"
