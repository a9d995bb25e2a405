"""What a node lacks of the records that the catalog says it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.node.naming import partition_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from angarium.node.node import Node

ALIKE_MAX: Final = 3
"""So many partitions with the same trouble are told one by one; more of them in one sentence."""


class Lack(NamedTuple):
    """A partition whose replica here lacks something."""

    partition: str
    words: str
    """What is the matter with the replica, to be read behind "this node's replica"."""

    def __str__(self) -> str:
        return f"{self.partition}: this node's replica {self.words}"


def lacks(node: Node) -> Iterator[Lack]:
    """Return every replica here that cannot stand for its partition, the catalog's first."""
    host = node.host
    if host.catalog is None:
        return  # it is being repaired; nobody can say what else should be here
    machine = node.catalog.machine
    if words := host.catalog.shortfall():
        yield Lack("the catalog", words)
    for partition in machine.topics.partitions.values():
        # Where one is only about to move to this node, others still stand for it; of one that is
        # gone for good `Healing` says what to do.
        if node.id not in partition.replicas or node.healing.only_replica_lost(partition.group):
            continue
        replica = host.replicas.get(partition.group)
        if replica is not None:
            words = replica.unready()
        elif partition.group in host.repairs:
            words = "is being repaired: part of its log was damaged"
        elif partition.group in host.lost:
            words = "was lost to damage"
        elif host.own_ids.in_group(partition.group) in partition.founders:
            words = ""  # a partition that is just being made has no records yet
        else:
            words = "is not there yet"
        if words:
            yield Lack(partition_name(machine, partition), words)


def told(found: Iterable[Lack]) -> list[str]:
    """Return sentences about all that is found: after a start every replica may be catching up."""
    alike: dict[str, list[Lack]] = {}
    for one in found:
        alike.setdefault(one.words.partition(", at entry")[0], []).append(one)
    said: list[str] = []
    for words, those in alike.items():
        if len(those) <= ALIKE_MAX:
            said += map(str, those)
        else:
            some = ", ".join(one.partition for one in those[:ALIKE_MAX])
            said.append(
                f"of {len(those)} partitions ({some} and {len(those) - ALIKE_MAX} more) "
                f"this node's replica {words}"
            )
    return said
