"""The leader's side of groups on a simulated node: drives `angarium.delivery` as a service does.

One for each partition a node leads, from the moment it may serve until it does not. Changes of one
moment share an entry; dead letters are stored elsewhere (`burials`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from angarium.delivery import Accepted, GroupDelivery
from angarium.errors import AngariumError
from angarium.ids import Micros, Offset
from angarium.machine import Cursors
from angarium.machine.changes import Member, Members, Open
from angarium.machine.outcomes import Refused
from angarium.service.groups.records import LogRecords
from angarium.testing.group_history import (
    Judged,
    Kept,
    Left,
    Lent,
    Promised,
    Taken,
    Tenure,
    Undone,
)
from angarium.testing.sim.burials import Burials
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.group_desk import Desk
from angarium.testing.sim.group_requests import Attach, Attached, Detach, Heard, Message, Say

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.delivery import DeadLetterDue, Effects
    from angarium.machine import Outcome
    from angarium.machine.changes import Change
    from angarium.replica.acks import Published
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.group_history import Settle
    from angarium.testing.sim.group_requests import GroupRequest
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.requests import PublishReply


class Lender:
    """The groups of one partition, while its node leads it."""

    def __init__(self, node: SimNode, replica: PartitionReplica, term: int) -> None:
        self.node = node
        self.replica = replica
        self.term = term
        self.is_over = False
        self._life = node.life
        self._world = node.world
        self._records = LogRecords(replica.partition, lambda: None)
        self._desk = Desk()
        self._tenures: dict[str, Tenure] = {}
        self._attachments: dict[tuple[str, str], tuple[int, int]] = {}
        """Number and last sequence of each group's members' attachments."""
        self._changes: deque[tuple[Change, Callable[[Outcome], None]]] = deque()
        self._is_proposing = False
        self._under_way: list[Callable[[Outcome], None]] = []
        self._tickets: dict[tuple[str, int], tuple[Say, Settle]] = {}
        self._listing: set[str] = set()
        self._burials = Burials(self)
        self._start: int = replica.partition.log.start_offset
        self._due_at: int | None = None
        for group in replica.partition.machine.groups.by_name.values():
            if group.intents:
                self._serve(group.name)
        replica.partition.on_visible = self._visible
        self.soon()

    def _now(self) -> Micros:
        return self._world.clock_of(self.node)

    # --- being driven -------------------------------------------------------------------------

    def soon(self) -> None:
        """Step once whatever goes on now is done."""
        self.wake_in(0)

    def wake_in(self, delay: int) -> None:
        """Step after so long."""
        at = self._world.scheduler.now + delay
        if self._due_at is None or at < self._due_at:
            self._due_at = at
            self._world.scheduler.after(delay, self.node.service.step_lender, self, at)

    def later(self, delay: int, action: Callable[[Any], None], fact: object) -> None:
        """Do something after so long, unless this is over by then."""
        self._world.scheduler.after(delay, self.node.service.tell_lender, self, action, fact)

    def is_due(self, at: int) -> bool:
        """Tell whether the step that was planned for `at` is still wanted."""
        return not self.is_over and self._due_at == at

    def touch_all(self) -> None:
        """Look at every group: somebody changed them."""
        self._desk.touch_all()
        self.soon()

    def _visible(self) -> None:
        self._desk.records_arrived()
        self.soon()

    def end(self) -> None:
        """The node leads no more: everything that is not in the machine is forgotten."""
        self.is_over = True

    def step(self) -> None:
        """Let groups do what they can, and carry it out."""
        self._due_at = None
        self._follow_trim()
        for delivery, effects in self._desk.step(self._now()):
            self._carry_out(delivery, effects)
        self._propose()
        wake_at = self._desk.wake_at
        if wake_at is not None:
            self.wake_in(max(wake_at - self._now(), 1) if wake_at else 0)

    def _follow_trim(self) -> None:
        if self._records.start_offset != self._start:
            self._start = self._records.start_offset
            self._desk.touch_all()

    # --- what members ask for -----------------------------------------------------------------

    def take(self, request: GroupRequest) -> None:
        """Take what a member says."""
        match request:
            case Attach():
                self._attach(request)
            case Detach():
                self._detach(request)
            case Say():
                self._settle(request)
        self.soon()

    def _attach(self, request: Attach) -> None:
        groups = self.replica.partition.machine.groups.by_name
        if request.name not in groups:
            opened = Open(request.name, request.kind, Offset(0), request.settings)
            self._submit(opened, lambda _: self._attach_if_open(request))
            return
        if self._is_older(request):
            return
        delivery = self._serve(request.name)
        self._attachments[request.name, request.client] = (request.number, 0)
        kept = delivery.attach(
            request.client, credit=request.credit, held=request.held, now=self._now()
        )
        self._record(delivery, Kept(request.client, _offsets(kept)))
        self._desk.touch(request.name)
        self._list_members(request.name)
        self._send(request.client, Attached(request.number, self.node.id, True, kept=kept))

    def _attach_if_open(self, request: Attach) -> None:
        if request.name in self.replica.partition.machine.groups.by_name:
            self._attach(request)

    def _is_older(self, request: Attach | Detach | Say) -> bool:
        """Tell whether a message was overtaken by a later attachment of the same member."""
        known = self._attachments.get((request.name, request.client))
        return known is not None and known[0] > request.number

    def _detach(self, request: Detach) -> None:
        delivery = self._desk.groups.get(request.name)
        if delivery is not None and not self._is_older(request):
            delivery.detach(request.client, clean=request.clean, now=self._now())
            self._record(delivery, Left(request.client))
            self._attachments.pop((request.name, request.client), None)
            self._desk.touch(request.name)
            self._list_members(request.name)

    def _settle(self, request: Say) -> None:
        delivery = self._desk.groups.get(request.name)
        known = self._attachments.get((request.name, request.client))
        if delivery is None or known is None or known[0] != request.number:
            self._answer(request, "GROUP_FENCED")
            return
        now, member, ranges = self._now(), request.client, request.ranges
        below = ranges[-1] if request.cumulative else 0
        match request.verb:
            case "ack":
                verdict = delivery.acknowledge(
                    member, ranges, now=now, cumulative=request.cumulative
                )
            case "nack":
                attempts = delivery.group.attempts.get(ranges[0])
                request.settle.attempt = 1 if attempts is None else attempts.count + 1
                verdict = delivery.fail(member, ranges, now=now, reason="asked to")
            case "release":
                verdict = delivery.release(member, ranges, now=now)
            case _:
                verdict = delivery.extend(member, ranges, now=now)
        # What was over before, as a trim may have made it, is no settlement, whoever speaks of it.
        is_taken = isinstance(verdict, Accepted) and any(verdict)
        ticket = verdict.ticket if isinstance(verdict, Accepted) else 0
        judged = Judged(member, request.verb, _offsets(ranges), is_taken, below, ticket)
        self._record(delivery, judged)
        request.settle.generation = delivery.group.generation
        if isinstance(verdict, Refused):
            self._answer(request, verdict.code)
        elif verdict.ticket:
            self._tickets[request.name, verdict.ticket] = (request, request.settle)
        else:
            self._answer(request, "")
        self._desk.touch(request.name)

    def _answer(self, request: Say, code: str) -> None:
        self._send(request.client, Heard(request.number, request.settle, code))

    def _send(self, client: str, said: object) -> None:
        self._world.network.send_once(self.node.name, client, said)

    # --- groups ----------------------------------------------------------------------------------

    def _serve(self, name: str) -> GroupDelivery:
        delivery = self._desk.groups.get(name)
        if delivery is None:
            group = self.replica.partition.machine.groups.by_name[name]
            expected = [one.name for one in group.members]
            delivery = GroupDelivery(
                group, self._records, seed=self.term, now=self._now(), expected=expected
            )
            self._desk.add(delivery)
        return delivery

    def _record(self, delivery: GroupDelivery, *events: object) -> None:
        """Write down what happened, under the generation it happened in."""
        group = delivery.group
        tenure = self._tenures.get(group.name)
        if tenure is None or tenure.generation != group.generation:
            tenure = self._tenures[group.name] = Tenure(
                self.replica.group,
                group.name,
                group.kind,
                self.node.id,
                self.term,
                group.generation,
                self._world.scheduler.now,
                group.floor,
                tuple(group.acked.ranges()),
                frozenset(
                    offset
                    for offset, intent in group.intents.items()
                    if intent.generation == group.generation
                ),
            )
            self._world.history.groups.tenures.append(tenure)
        tenure.events += events  # type: ignore[arg-type]

    def _list_members(self, name: str) -> None:
        """Have the members logged: the next leader waits for them."""
        if name in self._listing:
            return
        delivery = self._desk.groups[name]
        group = delivery.group
        members = tuple(Member(one) for one in sorted(delivery.members))
        if members == group.members:
            return
        self._listing.add(name)

        def listed(outcome: Outcome) -> None:
            self._listing.discard(name)
            pause = 100 * MILLISECOND if isinstance(outcome, Refused) else 0
            self.later(pause, self._list_members, name)

        self._submit(Members(name, group.members_version + 1, members), listed)

    def _carry_out(self, delivery: GroupDelivery, effects: Effects) -> None:
        name = delivery.group.name
        self._record(delivery)
        for number, change in effects.proposals:
            self._submit(change, self._confirmer(delivery, number))
        for ticket, code, _ in effects.answers:
            request, _ = self._tickets.pop((name, ticket))
            self._answer(request, code)
            if code:
                self._record(delivery, Undone(ticket))
        for letter in effects.dead_letters:
            intent = delivery.group.intents.get(letter.offset)
            # A seek leaves promises of before it to be kept, and yet hands their records out again.
            if intent is not None and intent.generation == delivery.group.generation:
                self._record(delivery, Promised(letter.offset))
            self._burials.add(name, letter)
        for member, ranges in effects.taken:
            self._record(delivery, Taken(member, _offsets(ranges)))
            self._tell(name, member, ranges, 0)
        for member, ranges, attempt, _ in effects.deliveries:
            now = self._world.scheduler.now
            self._record(delivery, Lent(now, member, _offsets(ranges), attempt))
            self._tell(name, member, ranges, attempt)
        if effects.dead_letters:
            self._burials.send(name)

    def _tell(self, name: str, member: str, ranges: tuple[int, ...], attempt: int) -> None:
        known = self._attachments.get((name, member))
        if known is not None:
            self._attachments[name, member] = (known[0], known[1] + 1)
            self._send(member, Message(known[0], known[1] + 1, ranges, attempt))

    # --- the log ---------------------------------------------------------------------------------

    def _confirmer(self, delivery: GroupDelivery, number: int) -> Callable[[Outcome], None]:
        def confirmed(outcome: Outcome) -> None:
            delivery.confirmed(number, outcome, now=self._now())
            self._desk.touch(delivery.group.name)

        return confirmed

    def _submit(self, change: Change, fate: Callable[[Outcome], None]) -> None:
        self._changes.append((change, fate))
        self.soon()

    def _propose(self) -> None:
        if self._is_proposing or not self._changes:
            return
        taken, self._changes = list(self._changes), deque()
        self._is_proposing = True

        def reply(answer: Published | AngariumError) -> None:
            # In the midst of applying; what follows waits until that is done.
            self.later(0, self._applied, answer)

        self._under_way = [fate for _, fate in taken]
        command = Cursors(changes=tuple(change for change, _ in taken))
        self.replica.partition.submit(command, now=self._now(), reply=reply)
        self.replica.process()

    def _applied(self, answer: Published | AngariumError) -> None:
        fates = self._under_way
        self._is_proposing = False
        if isinstance(answer, AngariumError):
            outcomes: tuple[Outcome, ...] = (Refused(answer.code, str(answer)),) * len(fates)
        else:
            outcomes = answer.outcomes
            if len(outcomes) != len(fates):
                outcomes = (outcomes[0],) * len(fates)
        for fate, outcome in zip(fates, outcomes, strict=True):
            fate(outcome)
        self.soon()

    # --- dead letters ----------------------------------------------------------------------------

    def letter_answered(self, reply: PublishReply) -> None:
        """Hear what became of something this node published itself."""
        self._burials.answered(reply)

    def buried(self, name: str, letter: DeadLetterDue) -> None:
        """Hear that a letter is stored."""
        self._desk.groups[name].buried(letter.offset, letter.sequence)
        self._desk.touch(name)
        self.soon()


def _offsets(ranges: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(
        offset
        for start, end in zip(ranges[::2], ranges[1::2], strict=True)
        for offset in range(start, end)
    )
