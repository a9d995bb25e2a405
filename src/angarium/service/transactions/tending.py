"""Finishing transactions that their coordinators have left behind.

Each node looks after the groups it leads. As a home: a commit that was decided and not carried out
is carried out. As a participant: what has been open for too long is asked about at its home, which
writes an abort if nothing was decided, or is aborted at once where the partition itself decides.
Where partitions are being added, so is what a run has left that has begun anew since.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.service.transactions.procedure import carry_out, resolve

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.transactions.homes import Homes
    from angarium.service.transactions.participants import Participants
    from angarium.service.transactions.procedure import Procedure

_log = logging.getLogger(__name__)

ROUND_S: Final = 1.0
"""How often to look. A commit whose coordinator died is carried out after two rounds."""

SEEN_THROUGH_MAX: Final = 256
"""Transactions taken up in one round; the rest waits for the next."""


class Tending:
    """Looks after the transactions of the groups this node leads."""

    def __init__(self, node: OwnNode, homes: Homes, participants: Participants) -> None:
        self._node = node
        self._homes = homes
        self._participants = participants
        self._unfinished: dict[tuple[RaftGroupId, str], tuple[int, int]] = {}
        """Commits that were not carried out when this was looked at last."""
        self._taken = 0

    async def run(self) -> None:
        """Look after them until cancelled."""
        while True:
            await asyncio.sleep(ROUND_S)
            try:
                await self.round()
            except AngariumError as error:
                _log.debug("transactions are looked after later: %s", error)

    async def round(self) -> None:
        """Take up whatever needs it."""
        self._taken = 0
        homes = set(self._homes.groups())
        for group, replica in list(self._node.replicas.here.items()):
            if not replica.may_serve:
                continue
            if group in homes:
                await self._carry_out(group, replica)
            else:
                await self._ask_about_overdue(group, replica)
                await self._ask_about_fenced(group, replica)

    async def _carry_out(self, home: RaftGroupId, replica: PartitionReplica) -> None:
        decisions = replica.partition.machine.numbering.decisions
        unfinished = {
            (home, name): (one.epoch, one.sequence) for name, one in decisions.unfinished()
        }
        before = {key: at for key, at in self._unfinished.items() if key[0] == home}
        for key in before:
            del self._unfinished[key]
        self._unfinished |= unfinished
        for key, at in unfinished.items():
            # Seen twice: its coordinator is not just about to carry it out.
            decision = decisions.records.get(key[1])
            # Taking it up at once would compete with the coordinator that decided it a moment ago.
            if before.get(key) == at and decision is not None and self._has_room():
                await self._see_through(carry_out(home, key[1], decision))

    async def _ask_about_overdue(self, group: RaftGroupId, replica: PartitionReplica) -> None:
        numbering = replica.partition.machine.numbering
        # The partition's time and not the node's clock: the age of a transaction is measured in
        # the log.
        now = replica.partition.time(self._node.now())
        overdue = list(numbering.transactions.overdue(now, numbering.limits))
        for name, attempt in overdue:
            if self._has_room():
                _log.info("transaction %s has been open for too long and is ended", name)
                await self._see_through(resolve(group, name, attempt))

    async def _ask_about_fenced(self, group: RaftGroupId, replica: PartitionReplica) -> None:
        """Ask about what keeps a fence waiting, and its owner has another epoch by now."""
        catalog = self._node.catalog
        partition = catalog.partition_in(group)
        if partition is None or partition.number not in catalog.topic_of(partition).unfenced:
            return
        # The next run does not come by it: it may have another number, and one that has not begun
        # waits for the addition, which waits for this.
        for name, attempt in list(replica.partition.machine.numbering.transactions.open()):
            epoch = catalog.epoch_of(name)
            if epoch is not None and attempt.epoch < epoch and self._has_room():
                _log.info("transaction %s is of an earlier run and is ended", name)
                await self._see_through(resolve(group, name, attempt))

    def _has_room(self) -> bool:
        self._taken += 1
        return self._taken <= SEEN_THROUGH_MAX

    async def _see_through(self, steps: Procedure[object]) -> None:
        try:
            timeout_s = self._node.config.request_timeout_s
            await self._participants.follow(steps, timeout_s=timeout_s)
        except AngariumError as error:
            _log.debug("a transaction is seen through later: %s", error)
