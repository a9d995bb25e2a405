"""The partitions that this node leads, for what their leader proposes by itself."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.machine import Command
    from angarium.machine.catalog import TopicSettings
    from angarium.node.node import Node
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica

_log = logging.getLogger(__name__)


def led_partitions(node: Node) -> Iterator[tuple[PartitionReplica, TopicSettings]]:
    """Yield each of them with the settings of its topic."""
    return (one for one in hosted_partitions(node) if one[0].may_serve)


def hosted_partitions(node: Node) -> Iterator[tuple[PartitionReplica, TopicSettings]]:
    """Yield the same of every partition that this node has a replica of."""
    if node.host.catalog is None:
        return
    topics = node.catalog.machine.topics
    for group, replica in list(node.host.replicas.items()):
        partition = topics.partitions.get(group)
        if partition is not None:
            yield replica, topics.by_id[partition.topic].settings


def propose(node: Node, replica: PartitionReplica, command: Command) -> None:
    """Propose something that is not urgent: if it is not taken, the next round tries again."""

    def note(answer: Published | AngariumError) -> None:
        if isinstance(answer, AngariumError):
            _log.debug("%s was not taken: %s", type(command).__name__, answer)

    replica.partition.submit(command, now=node.now(), reply=note)
    replica.poke()
    node.wake()
