"""The catalog's state as frames, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import CorruptData
from angarium.ids import Index, Micros
from angarium.machine.catalog.placement import Loads
from angarium.machine.catalog.values import NamedProducer, Node, Partition, Topic
from angarium.machine.snapshots import (
    FORMAT,
    Part,
    check_format,
    decoded,
    frame,
    frames,
    table_frames,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Buffer
    from angarium.machine.catalog.machine import CatalogMachine


class _Header(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of the catalog."""

    format: int
    applied_index: int
    running_hash: int
    clock: int
    cluster: str
    level: int
    next_node: int
    next_topic: int
    next_group: int
    next_producer: int
    next_named: int


_header: Final = msgspec.msgpack.Decoder(_Header)
_nodes: Final = msgspec.msgpack.Decoder(list[Node])
_topics: Final = msgspec.msgpack.Decoder(list[Topic])
_partitions: Final = msgspec.msgpack.Decoder(list[Partition])
_named: Final = msgspec.msgpack.Decoder(list[tuple[str, NamedProducer]])


def catalog_frames(machine: CatalogMachine) -> Iterator[bytes]:
    """Return the frames of `machine` as it is now, while it may move on."""
    nodes, topics = machine.nodes, machine.topics
    header = _Header(
        format=FORMAT,
        applied_index=machine.applied_index,
        running_hash=machine.running_hash,
        clock=machine.clock,
        cluster=machine.cluster,
        level=nodes.level,
        next_node=nodes.next_id,
        next_topic=topics.next_topic,
        next_group=topics.next_group,
        next_producer=machine.next_producer,
        next_named=machine.next_named,
    )
    # Flat copies; the rows are immutable.
    tables = (
        (Part.NODES, list(nodes.by_id.values())),
        (Part.TOPICS, list(topics.by_id.values())),
        (Part.PARTITIONS, list(topics.partitions.values())),
        (Part.NAMED, list(machine.named.items())),
    )

    def written() -> Iterator[bytes]:
        yield frame(Part.HEADER, header)
        for part, rows in tables:
            yield from table_frames(part, rows)
        yield frame(Part.END, None)

    return written()


def read_catalog(machine: CatalogMachine, data: Buffer) -> None:
    """Fill the new `machine` from a snapshot."""
    nodes, topics = machine.nodes, machine.topics
    seen_header = False
    for part, payload in frames(data):
        if part is Part.HEADER:
            _read_header(machine, decoded(_header, payload))
            seen_header = True
        elif not seen_header:
            raise CorruptData("a snapshot does not begin with its header")
        elif part is Part.NODES:
            nodes.by_id.update((node.id, node) for node in decoded(_nodes, payload))
        elif part is Part.TOPICS:
            topics.by_id.update((topic.id, topic) for topic in decoded(_topics, payload))
        elif part is Part.PARTITIONS:
            rows = decoded(_partitions, payload)
            topics.partitions.update((partition.group, partition) for partition in rows)
        elif part is Part.NAMED:
            named = decoded(_named, payload)
            machine.named.update(named)
        elif part is not Part.END:
            raise CorruptData(f"{part.name} is no part of a catalog")
    topics.by_name.update((topic.name, topic.id) for topic in topics.by_id.values())
    topics.loads = Loads(topics.partitions.values())


def _read_header(machine: CatalogMachine, header: _Header) -> None:
    check_format(header.format)
    machine.applied_index = Index(header.applied_index)
    machine.running_hash = header.running_hash
    machine.clock = Micros(header.clock)
    machine.cluster = header.cluster
    machine.nodes.level, machine.nodes.next_id = header.level, header.next_node
    machine.topics.next_topic = header.next_topic
    machine.topics.next_group = header.next_group
    machine.next_producer, machine.next_named = header.next_producer, header.next_named
