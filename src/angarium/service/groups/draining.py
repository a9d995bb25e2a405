"""Finding out whether a group has settled what lies before a fence, in partitions led elsewhere.

That it has is committed, so any replica may say so: this node's own are looked at first, and other
nodes are asked only about partitions that have none here.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.lending.gates import is_drained
from angarium.wire.operations import Operation
from angarium.wire.operations.members import DrainedAnswer, DrainedHeader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.ids import NodeId, RaftGroupId
    from angarium.service.own_node import OwnNode

ANSWER_S_MAX: Final = 1.0
"""How long another node may take; the gate asks again by itself."""


class Draining:
    """Asks this node's replicas, and other nodes'."""

    def __init__(self, node: OwnNode) -> None:
        self._node = node
        self._tasks: set[asyncio.Task[None]] = set()

    def seen_here(self, header: DrainedHeader) -> tuple[RaftGroupId, ...]:
        """Return those that are drained as this node's replicas say."""
        here = self._node.replicas.here
        return tuple(
            one
            for one in header.raft_groups
            if one in here and is_drained(here[one], header.group, header.layout)
        )

    def ask(
        self,
        topic: str,
        partitions: Sequence[int],
        group: str,
        layout: int,
        told: Callable[[Sequence[int]], None],
    ) -> None:
        """Do as `lending.ports.Surroundings.ask_drained` says."""
        known = self._node.catalog.find(topic)
        if known is None:
            return
        numbers = {known.groups[one]: one for one in partitions}
        header = DrainedHeader(group, layout, tuple(numbers))
        told([numbers[one] for one in self.seen_here(header)])
        by_node: defaultdict[NodeId, list[RaftGroupId]] = defaultdict(list)
        for raft_group in numbers:
            partition = self._node.catalog.partition_in(raft_group)
            # One that lacks something here would lack it for as long as it takes.
            is_lacking = self._node.replicas.full(raft_group) is None
            if is_lacking and partition is not None:
                up = [one for one in partition.replicas if self._node.peers.is_up(one)]
                if up:
                    by_node[random.choice(up)].append(raft_group)
        for node, raft_groups in by_node.items():
            header = DrainedHeader(group, layout, tuple(raft_groups))

            def then(
                drained: Sequence[RaftGroupId], numbers: dict[RaftGroupId, int] = numbers
            ) -> None:
                told([numbers[one] for one in drained])

            task = asyncio.get_running_loop().create_task(self._ask(node, header, then))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(
        self, node: NodeId, header: DrainedHeader, told: Callable[[Sequence[RaftGroupId]], None]
    ) -> None:
        try:
            frame = await self._node.peers.request(
                node, Operation.DRAINED, header, timeout_s=ANSWER_S_MAX
            )
            told(frame.read(DrainedAnswer).raft_groups)
        except AngariumError:
            pass  # it went away, or is too busy; the gate asks again
