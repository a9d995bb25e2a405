"""Putting commands to the leaders of groups, wherever they are, until they answer.

Every command of a transaction can be put again, so an error that leaves its outcome open is no
reason to stop; only the deadline is. Commands for one group are proposed in one turn, in their
order, and share a sync.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakValueDictionary

from msgspec import structs

from angarium.errors import (
    AngariumError,
    InvalidArgument,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    TransactionPending,
)
from angarium.machine.commands import Configure, Stage, Transacting, decode, encode
from angarium.machine.outcomes import refused
from angarium.node.release import STAGES_BESIDE_LEVEL
from angarium.retrying import Backoff, Tries, is_worth_repeating
from angarium.service.partitions import named_leader
from angarium.service.transactions.holding import is_settling, judged
from angarium.service.transactions.procedure import told
from angarium.wire.operations.numbers import Operation
from angarium.wire.operations.transactions import Told, TransactAnswer, TransactHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import NodeId, RaftGroupId
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.transactions.procedure import Ask, Procedure

T = TypeVar("T")

PAUSES: Final = Backoff(first_s=0.02, longest_s=0.5)
"""How long to wait before a leader is asked again."""


class Participants:
    """The groups of the cluster, as those who take part in transactions."""

    def __init__(self, node: OwnNode) -> None:
        self._node = node
        self._settling: WeakValueDictionary[RaftGroupId, asyncio.Lock] = WeakValueDictionary()
        """One at a time per partition: what is judged about settled records must still hold when
        the judged command is applied."""

    async def follow(self, steps: Procedure[T], *, timeout_s: float) -> T:
        """Carry a procedure out; `OutcomeUnknown` if somebody did not answer in time."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        asks = next(steps)
        while True:
            answers = await self._answers(asks, deadline)
            try:
                asks = steps.send(answers)
            except StopIteration as done:
                result: T = done.value
                return result

    async def _answers(self, asks: tuple[Ask, ...], deadline: float) -> tuple[Told, ...]:
        by_group: defaultdict[RaftGroupId, list[int]] = defaultdict(list)
        for at, ask in enumerate(asks):
            by_group[ask.group].append(at)
        answered = await asyncio.gather(
            *(
                self.ask(group, [asks[at].command for at in rows], deadline=deadline)
                for group, rows in by_group.items()
            )
        )
        found = {
            at: answer
            for rows, answers in zip(by_group.values(), answered, strict=True)
            for at, answer in zip(rows, answers, strict=True)
        }
        return tuple(found[at] for at in range(len(asks)))

    async def ask(
        self, group: RaftGroupId, commands: Sequence[Transacting], *, deadline: float
    ) -> tuple[Told, ...]:
        """Return what the group's leader answers; a group that is gone refuses everything."""
        loop = asyncio.get_running_loop()
        tries = Tries(PAUSES, deadline=deadline)
        leader: NodeId | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    timeout_s = deadline - loop.time()
                    return await self._ask_once(group, commands, timeout_s, leader=leader)
            except TimeoutError:
                raise self._late(group) from None
            except AngariumError as error:
                # Every command may be put again: machines recognise what they have, so an unknown
                # outcome is cleared up by asking once more.
                if not is_worth_repeating(error) or isinstance(error, TransactionPending):
                    raise
                leader = named_leader(error)
                if not await tries.pause():
                    raise self._late(group, error) from None

    def _late(self, group: RaftGroupId, error: AngariumError | None = None) -> OutcomeUnknown:
        why = "" if error is None else f": {error}"
        name = self._node.catalog.name_of(group)
        return OutcomeUnknown(f"{name} did not answer in time{why}")

    async def _ask_once(
        self,
        group: RaftGroupId,
        commands: Sequence[Transacting],
        timeout_s: float,
        *,
        leader: NodeId | None,
    ) -> tuple[Told, ...]:
        """Ask the leader: as this node knows it, or else as the node asked last has named it."""
        node = self._node
        if node.replicas.leading(group) is not None:
            return await self.serve(group, commands)
        partition = node.catalog.partition_in(group)
        if partition is None:
            await node.catalog.catch_up()
            partition = node.catalog.partition_in(group)
        if partition is None:
            gone = refused(NotFound, f"{node.catalog.name_of(group)} is not there any more")
            return tuple(Told(gone) for _ in commands)
        leader = node.leader_of(group) or leader
        if leader is None or leader == node.id:
            up = [one for one in partition.replicas if one != node.id and node.peers.is_up(one)]
            if group in node.replicas.here or not up:
                raise node.quorum.no_leader(group)
            leader = up[0]
        data = [encode(command) for command in commands]
        frame = await node.peers.request(
            leader,
            Operation.TRANSACT,
            TransactHeader(group, tuple(map(len, data))),
            data,
            timeout_s=min(timeout_s, node.config.request_timeout_s),
        )
        return frame.read(TransactAnswer).told

    # --- as a leader --------------------------------------------------------------------------

    async def serve(self, group: RaftGroupId, commands: Sequence[Transacting]) -> tuple[Told, ...]:
        """Put commands to this node's own replica; `NotLeader` if it does not lead."""
        replica = self._node.replicas.leading(group)
        if replica is None:
            name = self._node.catalog.name_of(group)
            leader = self._node.leader_of(group)
            raise NotLeader(f"node {self._node.id} does not lead {name}", leader=leader)
        machine = replica.partition.machine
        if any(isinstance(one, Stage) for one in commands):
            self._set_bound(replica)
        if not any(is_settling(machine, one) for one in commands):
            return await self._submit(replica, commands)
        lock = self._settling.get(group) or self._settling.setdefault(group, asyncio.Lock())
        # Judged against the committed state, and the next one only when this one is applied: two
        # that overlap would otherwise both be found free.
        async with lock:
            for one in commands:
                no = judged(machine, one) if isinstance(one, Stage) else None
                if no is not None:
                    return (no,) * len(commands)
            return await self._submit(replica, commands)

    def _set_bound(self, replica: PartitionReplica) -> None:
        """Let as much be staged in a partition as this node's setting says."""
        node, partition = self._node, replica.partition
        limits = partition.machine.limits
        wanted = structs.replace(
            limits, staged_bytes_max=node.config.staged_bytes_max, stages_beside=True
        )
        if limits != wanted and node.levels.current >= STAGES_BESIDE_LEVEL:
            partition.submit(Configure(limits=wanted), now=node.now(), reply=_unheard)

    async def _submit(
        self, replica: PartitionReplica, commands: Sequence[Transacting]
    ) -> tuple[Told, ...]:
        node = self._node
        loop = asyncio.get_running_loop()
        machine = replica.partition.machine
        futures: list[asyncio.Future[Told]] = []
        for command in commands:
            future: asyncio.Future[Told] = loop.create_future()
            futures.append(future)

            def settle(
                answer: Published | AngariumError,
                future: asyncio.Future[Told] = future,
                command: Transacting = command,
            ) -> None:
                if future.done():
                    return  # the caller has gone
                if isinstance(answer, AngariumError):
                    future.set_exception(answer)
                else:
                    # Called where the entry is applied: the machine stands right behind it.
                    future.set_result(told(machine, command.name, answer.outcomes[0]))

            replica.partition.submit(command, now=node.now(), reply=settle)
        replica.poke()
        node.wake()
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return tuple(one for one in answers if isinstance(one, Told))


def _unheard(_: Published | AngariumError) -> None:
    """Whatever becomes of it: the next stage looks again."""


def commands_in(payload: memoryview, lengths: tuple[int, ...]) -> list[Transacting]:
    """Return the commands of a payload, which stand one after the other."""
    commands: list[Transacting] = []
    start = 0
    for length in lengths:
        command = decode(payload[start : start + length])
        start += length
        if not isinstance(command, Transacting):
            raise InvalidArgument("only commands of transactions are put this way")
        commands.append(command)
    return commands
