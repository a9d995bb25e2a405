"""A simulated member of a group: it works, fails, stalls, lies, crashes, and comes again."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from angarium.api import GroupConfig
from angarium.batch.deadlines import ranges_of
from angarium.delivery import Held
from angarium.kinds import Behind
from angarium.testing.group_history import Settle, offsets_in
from angarium.testing.history import Result
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.group_requests import (
    Attach,
    Attached,
    Detach,
    Heard,
    Message,
    Parting,
    Say,
    Took,
)

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId
    from angarium.kinds import GroupKind
    from angarium.testing.sim.group_requests import GroupReply
    from angarium.testing.sim.world import World

PATIENCE = 300 * MILLISECOND
SILENCE = 700 * MILLISECOND
"""A member that hears nothing for so long attaches anew, perhaps to somebody else."""

CONFIG = GroupConfig(
    max_attempts=3,
    ack_timeout_ms=1_000,
    backoff_min_ms=50,
    backoff_max_ms=200,
    behind=Behind.JUMP,
)


class SimMember:
    """Takes part in one group on one partition."""

    def __init__(
        self,
        world: World,
        number: int,
        partition: RaftGroupId,
        name: str,
        kind: GroupKind,
        seed: int,
    ) -> None:
        self.world = world
        self.name = f"member-{number}"
        self.active = True
        self.in_flight = 0
        self._rng = random.Random(seed)
        self._partition = partition
        self._group = name
        self._kind = kind
        self._number = 0
        self._attached = 0
        """The number of the attachment that stands; 0: none does."""
        self._sequence = 0
        self._heard = 0
        self._leader: NodeId | None = None
        self._held: dict[int, int] = {}
        self._is_away = False
        self._silence = SILENCE + world.settings.slack

    def start(self) -> None:
        """Begin to take part."""
        self.world.scheduler.after(self._rng.randrange(100 * MILLISECOND), self._attach)
        self.world.scheduler.after(self._rng.randrange(SECOND), self._mischief)

    # --- the connection ------------------------------------------------------------------------

    def _attach(self) -> None:
        if self._is_away:
            return
        self._number += 1
        self._attached = 0
        target = self._leader or self._rng.choice(self.world.node_ids)
        request = Attach(
            self.name,
            self._number,
            self._partition,
            self._group,
            self._kind,
            CONFIG,
            self._rng.choice((1, 4, 16)),
            tuple(Held(one, one + 1, attempt) for one, attempt in sorted(self._held.items())),
        )
        self._say(target, request)
        self.world.scheduler.after(
            PATIENCE + self.world.settings.slack, self._give_up, self._number
        )

    def _give_up(self, number: int) -> None:
        if number == self._number and not self._attached:
            self._leader = None
            self._attach()

    def _say(self, target: NodeId, said: object) -> None:
        self.world.network.send_once(self.name, f"node-{target}", said)

    def receive(self, reply: GroupReply) -> None:
        """Hear a leader."""
        if isinstance(reply, Heard):
            self._settled(reply)
            return
        if reply.number != self._number or self._is_away:
            return
        self._heard = self.world.scheduler.now
        if isinstance(reply, Attached):
            self._answered(reply)
        elif self._attached:
            self._told(reply)

    def _answered(self, reply: Attached) -> None:
        if not reply.is_leader:
            self._leader = reply.hint
            self._attached = 0
            self.world.scheduler.after(20 * MILLISECOND, self._give_up, reply.number)
            return
        self._leader = reply.node
        self._attached = reply.number
        self._sequence = 0
        if self._held:
            # What it may not keep of this, it hears next.
            self._work_on(tuple(sorted(self._held)))
        self.world.scheduler.after(self._silence, self._listen, reply.number)

    def _listen(self, number: int) -> None:
        if number != self._attached:
            return
        if self.world.scheduler.now - self._heard >= self._silence:
            self._attach()
        else:
            self.world.scheduler.after(self._silence, self._listen, number)

    def _told(self, message: Message) -> None:
        if message.sequence != self._sequence + 1:
            if message.sequence > self._sequence:
                self._attach()  # something was lost, or overtaken: the connection is no good
            return
        self._sequence = message.sequence
        offsets = offsets_in(message.ranges)
        if message.attempt:
            assert self._leader is not None
            self._say(self._leader, Took(self.name, message.number, message.bytes))
            self._held.update(dict.fromkeys(offsets, message.attempt))
            self._work_on(offsets)
        else:
            for offset in offsets:
                self._held.pop(offset, None)

    # --- work ------------------------------------------------------------------------------------

    def _work_on(self, offsets: tuple[int, ...]) -> None:
        think = self._rng.randrange(1, 40 * MILLISECOND)
        self.world.scheduler.after(think, self._act, self._attached, offsets)

    def _act(self, attached: int, offsets: tuple[int, ...]) -> None:
        mine = [one for one in offsets if one in self._held]
        if not mine or attached != self._attached or not attached:
            return
        dice = self._rng.random() if self.active else 0.0
        if dice < 0.75:
            if self._rng.random() < 0.5:
                self._settle("ack", mine, cumulative=self._rng.random() < 0.3)
            else:
                for offset in mine:
                    self._settle("ack", [offset])
        elif dice < 0.88:
            verb = "reject" if dice >= 0.84 else "nack"
            self._settle(verb, [self._rng.choice(mine)])
            self._work_on(offsets)
        elif dice < 0.92:
            self._settle("release", mine)
        elif dice < 0.97:
            self._settle("extend", mine)
            self._work_on(offsets)
        # Else it stalls: nothing is said until the lease ends.

    def _settle(
        self, verb: str, offsets: list[int], *, cumulative: bool = False, is_lie: bool = False
    ) -> None:
        settle = Settle(
            self._partition,
            self._group,
            self.name,
            verb,
            tuple(offsets),
            self.world.scheduler.now,
            is_lie,
        )
        self.world.history.groups.settles.append(settle)
        assert self._leader is not None
        said = Say(
            self.name,
            self._attached,
            self._partition,
            self._group,
            verb,
            ranges_of(sorted(offsets)),
            settle,
            cumulative,
        )
        self._say(self._leader, said)
        if verb != "extend" and not is_lie:
            for offset in offsets:
                self._held.pop(offset, None)
        if not is_lie:
            self.world.scheduler.after(
                PATIENCE + self.world.settings.slack, self._unanswered, settle, self._attached
            )

    def _settled(self, heard: Heard) -> None:
        settle = heard.settle
        if settle.completed is not None:
            return
        self._heard = self.world.scheduler.now
        settle.completed = self.world.scheduler.now
        settle.result = Result.FAIL if heard.code else Result.OK

    def _unanswered(self, settle: Settle, attached: int) -> None:
        if settle.completed is None and attached == self._attached:
            self._leader = None
            self._attach()

    # --- mischief --------------------------------------------------------------------------------

    def _mischief(self) -> None:
        """Crash, leave, or lie, now and then."""
        if not self.active:
            return
        dice = self._rng.random()
        if self._attached:
            if dice < 0.08:
                self._crash()
            elif dice < 0.14:
                self._depart()
            elif dice < 0.4:
                verb = self._rng.choice(("ack", "ack", "nack", "release"))
                offset = self._rng.choice(self._held_by_others() or [0])
                if offset not in self._held:
                    self._settle(verb, [offset], is_lie=True)
        self.world.scheduler.after(self._rng.randrange(100, 800) * MILLISECOND, self._mischief)

    def _held_by_others(self) -> list[int]:
        """Return what other members of the group believe to hold, or anything at all."""
        if self._rng.random() < 0.5:
            return [self._rng.randrange(max(self.world.seen_end(self._partition), 1))]
        others = [one for one in self.world.consumers.members if one._group == self._group]
        return sorted({offset for one in others if one is not self for offset in one._held})

    def _crash(self) -> None:
        """Forget everything; perhaps the broken connection is noticed."""
        if self._leader is not None and self._rng.random() < 0.5:
            how = self._rng.choice((Parting.LOST, Parting.UNSEEN))
            self._say(self._leader, self._farewell(how))
        self._go_away()

    def _depart(self) -> None:
        if self._leader is not None:
            self._say(self._leader, self._farewell(Parting.LEFT))
        self._go_away()

    def _farewell(self, how: Parting) -> Detach:
        return Detach(self.name, self._number, self._partition, self._group, how)

    def _go_away(self) -> None:
        self.world.note(self.name, "is away")
        self._is_away = True
        self._attached = 0
        self._held.clear()
        self.world.scheduler.after(self._rng.randrange(20, 900) * MILLISECOND, self._come_back)

    def _come_back(self) -> None:
        self._is_away = False
        self._attach()
