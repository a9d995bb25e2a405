"""The catalog's state as frames, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import CorruptData
from angarium.ids import Index, Micros
from angarium.machine.catalog.access_values import (
    GrantRow,
    QuotaRow,
    RoleRow,
    TokenRow,
    UserRow,
)
from angarium.machine.catalog.balance import Balance
from angarium.machine.catalog.creations import Creations
from angarium.machine.catalog.join_tokens import JoinTokenRow
from angarium.machine.catalog.placement import Loads
from angarium.machine.catalog.predecessors import Predecessor
from angarium.machine.catalog.recoveries import Recovery
from angarium.machine.catalog.removed_nodes import RemovedNode
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
    from angarium.machine.catalog.access import AccessTables
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
    next_grant: int = 1
    access_version: int = 0
    next_join_token: int = 1
    balance: Balance = Balance()


_header: Final = msgspec.msgpack.Decoder(_Header)
_nodes: Final = msgspec.msgpack.Decoder(list[Node])
_topics: Final = msgspec.msgpack.Decoder(list[Topic])
_partitions: Final = msgspec.msgpack.Decoder(list[Partition])
_users: Final = msgspec.msgpack.Decoder(list[UserRow])
_roles: Final = msgspec.msgpack.Decoder(list[RoleRow])
_grants: Final = msgspec.msgpack.Decoder(list[GrantRow])
_join_tokens: Final = msgspec.msgpack.Decoder(list[JoinTokenRow])
_tokens: Final = msgspec.msgpack.Decoder(list[TokenRow])
_quotas: Final = msgspec.msgpack.Decoder(list[QuotaRow])
_recoveries: Final = msgspec.msgpack.Decoder(list[Recovery])
_predecessors: Final = msgspec.msgpack.Decoder(list[Predecessor])
_removed: Final = msgspec.msgpack.Decoder(list[RemovedNode])
_decoy_keys: Final = msgspec.msgpack.Decoder(tuple[bytes])
_named: Final = msgspec.msgpack.Decoder(list[tuple[str, NamedProducer]])


_ACCESS_PARTS: Final = frozenset({Part.USERS, Part.ROLES, Part.GRANTS, Part.TOKENS, Part.QUOTAS})


def catalog_frames(machine: CatalogMachine) -> Iterator[bytes]:
    """Return the frames of `machine` as it is now, while it may move on."""
    nodes, topics, access = machine.nodes, machine.topics, machine.access
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
        next_grant=access.next_grant,
        access_version=access.version,
        next_join_token=machine.join_tokens.next_id,
        balance=machine.balance,
    )
    # Flat copies; the rows are immutable.
    tables = (
        (Part.NODES, list(nodes.by_id.values())),
        (Part.TOPICS, list(topics.by_id.values())),
        (Part.PARTITIONS, list(topics.partitions.values())),
        (Part.NAMED, list(machine.named.items())),
        # Without rows a table has no frame: who does not know these parts yet never meets them.
        (Part.USERS, list(access.users.values())),
        (Part.ROLES, list(access.roles.values())),
        (Part.GRANTS, list(access.grants.values())),
        (Part.TOKENS, list(access.tokens.values())),
        (Part.QUOTAS, list(access.quotas.rows.values())),
        (Part.JOIN_TOKENS, list(machine.join_tokens.by_digest.values())),
        (Part.RECOVERIES, list(machine.recoveries.by_group.values())),
        (Part.PREDECESSORS, list(machine.predecessors.rows)),
        (Part.REMOVED, list(nodes.removed.rows.values())),
        (Part.DECOY_KEY, [machine.decoy_key] if machine.decoy_key else []),
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
            machine.names_of_producers.update((one.id, name) for name, one in named)
        elif part in _ACCESS_PARTS:
            _read_access(machine.access, part, payload)
        elif part in (Part.JOIN_TOKENS, Part.DECOY_KEY):
            _read_secrets(machine, part, payload)
        elif part in (Part.RECOVERIES, Part.PREDECESSORS, Part.REMOVED):
            _read_losses(machine, part, payload)
        elif part is not Part.END:
            raise CorruptData(f"{part.name} is no part of a catalog")
    topics.by_name.update((topic.name, topic.id) for topic in topics.by_id.values())
    topics.loads = Loads(topics.partitions.values())
    topics.creations = Creations(topics.by_id.values())


def _read_secrets(machine: CatalogMachine, part: Part, payload: Buffer) -> None:
    if part is Part.JOIN_TOKENS:
        issued = decoded(_join_tokens, payload)
        machine.join_tokens.by_digest.update((row.digest, row) for row in issued)
    else:
        (machine.decoy_key,) = decoded(_decoy_keys, payload)


def _read_losses(machine: CatalogMachine, part: Part, payload: Buffer) -> None:
    if part is Part.RECOVERIES:
        recovered = decoded(_recoveries, payload)
        machine.recoveries.by_group.update((row.group, row) for row in recovered)
    elif part is Part.REMOVED:
        for removed in decoded(_removed, payload):
            machine.nodes.removed.add(removed)
    else:
        predecessors = decoded(_predecessors, payload)
        machine.predecessors.rows.extend(predecessors)


def _read_access(access: AccessTables, part: Part, payload: Buffer) -> None:
    if part is Part.USERS:
        access.users.update((row.name, row) for row in decoded(_users, payload))
    elif part is Part.ROLES:
        access.roles.update((row.name, row) for row in decoded(_roles, payload))
    elif part is Part.GRANTS:
        access.grants.update((row.id, row) for row in decoded(_grants, payload))
    elif part is Part.QUOTAS:
        for quota in decoded(_quotas, payload):
            access.quotas.add(quota)
    else:
        for row in decoded(_tokens, payload):
            access.add_token(row)


def _read_header(machine: CatalogMachine, header: _Header) -> None:
    check_format(header.format)
    machine.applied_index = Index(header.applied_index)
    machine.running_hash = header.running_hash
    machine.clock = Micros(header.clock)
    machine.cluster = header.cluster
    machine.nodes.level, machine.nodes.next_id = header.level, header.next_node
    machine.topics.next_topic = header.next_topic
    machine.topics.next_group = header.next_group
    machine.access.next_grant = header.next_grant
    machine.access.version = Index(header.access_version)
    machine.join_tokens.next_id = header.next_join_token
    machine.balance = header.balance
    machine.next_producer, machine.next_named = header.next_producer, header.next_named
