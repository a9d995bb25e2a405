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

from angarium.errors import (
    AngariumError,
    LimitExceeded,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    TransactionPending,
)
from angarium.machine.commands import Stage, encode
from angarium.machine.outcomes import refused
from angarium.service.transactions.holding import is_settling, judged
from angarium.service.transactions.procedure import told
from angarium.wire.operations.numbers import Operation
from angarium.wire.operations.transactions import Told, TransactAnswer, TransactHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import GroupId
    from angarium.machine.commands import Transacting
    from angarium.node.node import Node
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.transactions.procedure import Ask, Procedure

T = TypeVar("T")

PAUSE_S: Final = 0.02
PAUSE_S_MAX: Final = 0.5
"""How long to wait before a leader is asked again, at first and at most."""


class Participants:
    """The groups of the cluster, as those who take part in transactions."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._settling: WeakValueDictionary[GroupId, asyncio.Lock] = WeakValueDictionary()
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
        by_group: defaultdict[GroupId, list[int]] = defaultdict(list)
        for at, ask in enumerate(asks):
            by_group[ask.group].append(at)
        answered = await asyncio.gather(
            *(
                self.ask(group, [asks[at].command for at in places], deadline=deadline)
                for group, places in by_group.items()
            )
        )
        found = {
            at: answer
            for places, answers in zip(by_group.values(), answered, strict=True)
            for at, answer in zip(places, answers, strict=True)
        }
        return tuple(found[at] for at in range(len(asks)))

    async def ask(
        self, group: GroupId, commands: Sequence[Transacting], *, deadline: float
    ) -> tuple[Told, ...]:
        """Return what the group's leader answers; a group that is gone refuses everything."""
        loop = asyncio.get_running_loop()
        pause_s = PAUSE_S
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._ask_once(group, commands, deadline - loop.time())
            except TimeoutError:
                raise OutcomeUnknown(f"group {group} did not answer in time") from None
            except LimitExceeded:
                raise
            except AngariumError as error:
                if not error.retriable or isinstance(error, TransactionPending):
                    raise
                if loop.time() + pause_s >= deadline:
                    raise OutcomeUnknown(f"group {group} did not answer in time: {error}") from None
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _ask_once(
        self, group: GroupId, commands: Sequence[Transacting], timeout_s: float
    ) -> tuple[Told, ...]:
        node = self._node
        replica = node.host.replicas.get(group)
        if replica is not None and replica.may_serve:
            return await self.serve(group, commands)
        place = node.catalog.machine.topics.partitions.get(group)
        if place is None:
            await node.catalog.catch_up()
            place = node.catalog.machine.topics.partitions.get(group)
        if place is None:
            gone = refused(NotFound, f"group {group} is not there any more")
            return tuple(Told(gone) for _ in commands)
        leader = node.leader_of(group)
        if leader is None or leader == node.id:
            up = [one for one in place.replicas if one != node.id and node.peers.is_up(one)]
            if group in node.host.replicas or not up:
                raise NotLeader(f"group {group} has no leader at the moment")
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

    async def serve(self, group: GroupId, commands: Sequence[Transacting]) -> tuple[Told, ...]:
        """Put commands to this node's own replica; `NotLeader` if it does not lead."""
        replica = self._node.host.replicas.get(group)
        if replica is None or not replica.may_serve:
            raise NotLeader(
                f"this node does not lead group {group}", leader=self._node.leader_of(group)
            )
        machine = replica.partition.machine
        if not any(is_settling(machine, one) for one in commands):
            return await self._submit(replica, commands)
        lock = self._settling.get(group) or self._settling.setdefault(group, asyncio.Lock())
        async with lock:
            for one in commands:
                no = judged(machine, one) if isinstance(one, Stage) else None
                if no is not None:
                    return (no,) * len(commands)
            return await self._submit(replica, commands)

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
                    return  # whoever asked has gone
                if isinstance(answer, AngariumError):
                    future.set_exception(answer)
                else:
                    # Called where the entry is applied: the machine stands right behind it.
                    future.set_result(told(machine, command.name, answer.outcomes[0]))

            replica.partition.submit(command, now=node.now(), reply=settle)
        replica.process()
        node.wake()
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return tuple(one for one in answers if isinstance(one, Told))
