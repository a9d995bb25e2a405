"""How a transaction is decided and carried out: whom to ask what, in which order.

Procedures are generators without I/O. They yield questions, which may be asked side by side, and
are sent the answers; the service asks over the network, the simulator in its own time, both of
them until there is an answer. Every command can be put again: the machines recognise it. So a
procedure that breaks off half-way is simply begun anew, by the next caller.

Sequences are doubled on the way in. A user's n is 2n + 1 in the machines, and the even number
before it is free for fencing: to open a series is to begin and abort a transaction there, in the
new epoch, which nobody of an older epoch can get past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeAlias, TypedDict, TypeVar

from angarium.errors import (
    LayoutChanged,
    NotFound,
    OutcomeUnknown,
    ProducerFenced,
    TransactionAborted,
    TransactionPending,
)
from angarium.ids import Epoch, RaftGroupId, Sequence
from angarium.machine.commands import Abort, Begin, Commit, Decide, Finish, Stage, Transacting
from angarium.machine.decisions import Phase
from angarium.machine.outcomes import Decided, Refused
from angarium.machine.series import NOTHING_COMMITTED
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations.transactions import Told

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from angarium.machine.decisions import Decision
    from angarium.machine.outcomes import Outcome
    from angarium.machine.partition import PartitionMachine
    from angarium.machine.series import Attempt

ROUNDS_MAX: Final = 16
"""How often a procedure clears something out of its way before it gives up, retriably."""

FENCE: Final = "fence"
"""The name of the empty stage that carries a new epoch into a partition."""


class Ask(NamedTuple):
    """One command for the leader of one group."""

    group: RaftGroupId
    command: Transacting


T = TypeVar("T")
Procedure: TypeAlias = "Generator[tuple[Ask, ...], tuple[Told, ...], T]"
"""Yields questions and is sent the answers, in the same order; returns what it was about.

Questions for one group are put in their order, those for different groups side by side.
"""


class Named(TypedDict):
    """The fields by which every command names its transaction."""

    name: str
    epoch: Epoch
    sequence: Sequence


class Ended(NamedTuple):
    """How a transaction ended, and where its participants put their records."""

    committed: bool
    repeated: bool
    offsets: dict[RaftGroupId, Decided]
    unfinished: Named | None = None
    """Carried out, and the home has not heard of that yet: `finish` tells it."""
    newest: int = NOTHING_COMMITTED
    content: str = ""
    """The newest commit of the name, and what it was of: of this one unless it is a repetition."""


def inner(sequence: int) -> Sequence:
    """Return the machines' number of a user's sequence."""
    return Sequence(2 * sequence + 1)


def outer(sequence: int) -> int | None:
    """Return the user's sequence of the machines' number; None where nothing was committed."""
    return None if sequence == NOTHING_COMMITTED else (sequence - 1) // 2


def told(machine: PartitionMachine, name: str, outcome: Outcome) -> Told:
    """Return a leader's answer about `name`, read from its machine as it is now."""
    numbering = machine.numbering
    series = numbering.transactions.series.get(name)
    decision = numbering.decisions.records.get(name)
    if series is None:
        return Told(outcome, decision)
    return Told(outcome, decision, series.attempts, series.committed)


def ask_all(asks: Iterable[Ask]) -> Procedure[tuple[Told, ...]]:
    """Ask, and return the answers."""
    return (yield tuple(asks))


# --- a home's view -------------------------------------------------------------------------------


def commit(
    home: RaftGroupId,
    named: Named,
    stages: tuple[tuple[RaftGroupId, tuple[str, ...]], ...],
    *,
    content: str = "",
) -> Procedure[Ended]:
    """Decide for a transaction and have it carried out; raises why it cannot be committed."""
    decide = Decide(**named, commit=True, stages=stages, content=content)
    answer = yield from _at_home(home, decide)
    outcome, decision = answer.outcome, answer.decision
    # The answer to an earlier try may have been lost. The home's record tells whether that was
    # this very transaction, or another run's under the same sequence.
    is_ours = decision is not None and decision.committed == (named["sequence"], named["epoch"])
    if isinstance(outcome, Refused) and not is_ours:
        yield from _tidy(named, (group for group, _ in stages), outcome)
        _refuse(named, outcome, decision)
    offsets: dict[RaftGroupId, Decided] = {}
    unfinished: Named | None = None
    if decision is not None and decision.phase is Phase.COMMITTED:
        # Nobody waits for the home to hear that it is done: the next question tells it, too. The
        # decision is durable. From here on everybody who comes by may carry it out, in any order
        # and as often as it takes: participants recognise a commit that they have.
        offsets = yield from carry_out(home, named["name"], decision, finishes=False)
        unfinished = _named_in(named["name"], decision)
    repeated = not isinstance(outcome, Decided) or outcome.repeated
    if repeated:
        # Decided before: by an earlier try of the same call, or by somebody else under the same
        # number, whose stages may lie in other partitions. What was staged since is not needed
        # anywhere; a partition that took part says instead where its records are.
        answers = yield tuple(Ask(group, Abort(**named)) for group, _ in stages)
        for (group, _), one in zip(stages, answers, strict=True):
            if is_ours and isinstance(one.outcome, Decided) and one.outcome.committed:
                offsets.setdefault(group, one.outcome)
    if decision is None:  # forgotten since
        return Ended(True, repeated, offsets, unfinished)
    return Ended(True, repeated, offsets, unfinished, decision.committed[0], decision.content)


def abort(home: RaftGroupId, named: Named, groups: Iterable[RaftGroupId]) -> Procedure[Ended]:
    """Decide against a transaction, unless it has been decided; carry out whatever holds."""
    answer = yield from _at_home(home, Decide(**named, commit=False))
    outcome, decision = answer.outcome, answer.decision
    # Fenced or aborted means that it can never be committed, so dropping the stages is safe.
    # Anything else leaves it open, and dropping could lose what somebody commits later.
    if isinstance(outcome, Refused) and outcome.code not in _NEVER_COMMITTED:
        _refuse(named, outcome, decision)
    if isinstance(outcome, Decided) and outcome.committed:
        offsets: dict[RaftGroupId, Decided] = {}
        if decision is not None and decision.phase is Phase.COMMITTED:
            offsets = yield from carry_out(home, named["name"], decision)
        return Ended(True, True, offsets)
    # Only behind the home's decision: a stage that is dropped first could still be committed.
    yield tuple(Ask(group, Abort(**named)) for group in dict.fromkeys(groups))
    return Ended(False, isinstance(outcome, Decided) and outcome.repeated, {})


def fence(home: RaftGroupId, name: str, epoch: Epoch) -> Procedure[int]:
    """End what older epochs left undecided, and return the newest sequence committed."""
    sequence = 0
    for _ in range(ROUNDS_MAX):
        # The even numbers: no transaction of a user has one, so this one can be begun and aborted
        # to carry the epoch.
        named: Named = {"name": name, "epoch": epoch, "sequence": Sequence(sequence)}
        answer = yield from _at_home(home, Begin(**named))
        decision = answer.decision
        if isinstance(answer.outcome, Refused):
            raise_refused(answer.outcome)
        assert decision is not None, "a home remembers what it has begun"
        if isinstance(answer.outcome, Decided):
            # Committed up to there; the number after that belongs to nobody.
            sequence = decision.committed[0] + 1
            continue
        # Otherwise an open transaction would hold up the first one of the new run.
        yield (Ask(home, Decide(**named, commit=False)),)
        return decision.committed[0]
    raise TransactionPending(f"{name} is being written by others at the same time")


def finish(home: RaftGroupId, named: Named) -> Procedure[None]:
    """Let a name go on, now that every participant has carried its commit out."""
    yield (Ask(home, Finish(**named)),)


def carry_out(
    home: RaftGroupId, name: str, decision: Decision, *, finishes: bool = True
) -> Procedure[dict[RaftGroupId, Decided]]:
    """Have every participant publish what was decided, then let the name go on."""
    named = _named_in(name, decision)
    stages = {RaftGroupId(group): names for group, names in decision.stages}
    offsets = yield from _published(named, stages)
    if finishes:
        # Only when every participant has carried it out: the list of stages is forgotten with
        # this, and with it the way to see the commit through.
        yield from finish(home, named)
    return offsets


def _published(
    named: Named, waiting: dict[RaftGroupId, tuple[str, ...]]
) -> Procedure[dict[RaftGroupId, Decided]]:
    """Have participants publish these stages, which the home has decided to commit."""
    offsets: dict[RaftGroupId, Decided] = {}
    # Each round clears one thing out of the way. The bound is there because other runs may put up
    # another one meanwhile.
    for _ in range(ROUNDS_MAX):
        if not waiting:
            break
        asks = tuple(Ask(group, Commit(**named, stages=of)) for group, of in waiting.items())
        answers = yield asks
        for ask, answer in zip(asks, answers, strict=True):
            if isinstance(answer.outcome, Decided):
                offsets[ask.group] = answer.outcome
                del waiting[ask.group]
            else:
                # An earlier commit of the same name that this partition has not carried out comes
                # first: commits of one name take effect in the order of their sequences.
                yield from _clear_way(ask.group, named, answer, waiting)
    if waiting:
        name = named["name"]
        raise OutcomeUnknown(f"{name} is committed, but not every partition has carried it out yet")
    return offsets


def _named_in(name: str, decision: Decision) -> Named:
    return {
        "name": name,
        "epoch": Epoch(decision.epoch),
        "sequence": Sequence(decision.sequence),
    }


def _clear_way(
    group: RaftGroupId, named: Named, answer: Told, waiting: dict[RaftGroupId, tuple[str, ...]]
) -> Procedure[None]:
    """See to it that a participant which did not carry a commit out can do so next time."""
    outcome = answer.outcome
    assert isinstance(outcome, Refused)
    if outcome.code == TransactionPending.code:
        for attempt in answer.attempts:
            if attempt.sequence < named["sequence"]:
                yield from resolve(group, named["name"], attempt)
    elif outcome.code == NotFound.code:
        # The partition is gone, or the commit names a stage that nobody has filled: what there is
        # has to come to light all the same, because the decision stands. What there is, is told by
        # this answer, which has gone through the log behind all that was staged before the decision
        # (`Projection.submit`).
        mine = [
            one
            for one in answer.attempts
            if (one.epoch, one.sequence) == (named["epoch"], named["sequence"])
        ]
        there = mine[0].stages if mine else ()
        known = tuple(stage for stage in waiting[group] if stage in there)
        if known == waiting[group]:
            del waiting[group]
        else:
            waiting[group] = known
    else:
        raise_refused(outcome)


def _at_home(home: RaftGroupId, command: Begin | Decide) -> Procedure[Told]:
    """Put a command to the home; what it has decided before is carried out first."""
    for _ in range(ROUNDS_MAX):
        (answer,) = yield (Ask(home, command),)
        outcome, decision = answer.outcome, answer.decision
        is_held_up = isinstance(outcome, Refused) and outcome.code == TransactionPending.code
        if not is_held_up or decision is None or decision.phase is not Phase.COMMITTED:
            return answer
        # Whoever comes next finishes what the one before left half done. That is why a coordinator
        # may die at any line of this file.
        yield from carry_out(home, command.name, decision)
    raise TransactionPending(f"{command.name} is being written by others at the same time")


def _tidy(named: Named, groups: Iterable[RaftGroupId], outcome: Refused) -> Procedure[None]:
    """Drop what a transaction that can never be committed has staged."""
    if outcome.code in _NEVER_COMMITTED:
        yield tuple(Ask(group, Abort(**named)) for group in groups)


_NEVER_COMMITTED: Final = frozenset((ProducerFenced.code, TransactionAborted.code))


def _refuse(named: Named, refused: Refused, decision: Decision | None) -> NoReturn:
    is_later = decision is not None and decision.committed[0] >= named["sequence"]
    if refused.code == ProducerFenced.code and is_later:
        # A newer run has committed this sequence, perhaps because ours was not, perhaps another.
        raise OutcomeUnknown(f"{refused.message}; what became of ours is not remembered")
    raise_refused(refused)


def raise_refused(refused: Refused) -> NoReturn:
    """Raise the error that a refusal stands for."""
    raise error_of(Failure(refused.code, refused.message))


# --- a participant's view ------------------------------------------------------------------------


def resolve(group: RaftGroupId, name: str, attempt: Attempt) -> Procedure[None]:
    """End a transaction that is open in a partition, as its home says, or at once without one.

    To ask is to propose an abort: if nothing has been decided, that is the decision.
    """
    named: Named = {
        "name": name,
        "epoch": Epoch(attempt.epoch),
        "sequence": Sequence(attempt.sequence),
    }
    if attempt.home is not None:
        # Asked by proposing to abort: without that an owner could commit between the answer and
        # what is done because of it.
        (answer,) = yield (Ask(RaftGroupId(attempt.home), Decide(**named, commit=False)),)
        outcome, decision = answer.outcome, answer.decision
        if isinstance(outcome, Refused):
            raise_refused(outcome)
        if (
            isinstance(outcome, Decided)
            and outcome.committed
            and decision is not None
            and decision.phase is Phase.COMMITTED
            and (decision.epoch, decision.sequence) == (attempt.epoch, attempt.sequence)
        ):
            # The stages of the decision, never those of `attempt`: that was looked at before, and
            # its owner may have staged more since, and committed it (seed 620716).
            yield from _published(named, {group: dict(decision.stages).get(group, ())})
            return
    yield (Ask(group, Abort(**named)),)


def stage(group: RaftGroupId, command: Stage) -> Procedure[Told]:
    """Put something aside; what earlier transactions left in the way is ended first."""
    for _ in range(ROUNDS_MAX):
        (answer,) = yield (Ask(group, command),)
        outcome = answer.outcome
        if not isinstance(outcome, Refused):
            return answer
        holders = answer.holders
        if outcome.message.startswith("attempts_max"):
            # Earlier runs left too much behind here; nobody has needed to look at it so far.
            here = (command.epoch, command.sequence)
            left = [one for one in answer.attempts if (one.epoch, one.sequence) < here]
            holders = tuple((command.name, one) for one in left)
        if not holders:
            return answer
        for name, attempt in holders:
            yield from resolve(group, name, attempt)
    raise TransactionPending("the same records are settled by other transactions, too")


def publish_sequenced(
    group: RaftGroupId,
    named: Named,
    batches: bytes,
    *,
    layout: int | None = None,
    former: tuple[tuple[RaftGroupId, int], ...] = (),
    counts_fences: bool = True,
) -> Procedure[tuple[RaftGroupId, Decided]]:
    """Store batches under a producer's own number, decided by their partition alone.

    Return which group has them, and where. `former` are groups that earlier layouts of the topic
    would have sent them to: what one of them has is not stored again.
    """
    for earlier, told in zip(former, (yield from _ask_former(former, named)), strict=True):
        if isinstance(told.outcome, Decided):
            return earlier[0], told.outcome
    # Stage and commit in one turn share an entry's sync, so that a numbered publish costs about
    # one publish.
    asks = (
        Ask(group, Stage(**named, stage="sequenced", part=0, batches=batches, layout=layout)),
        Ask(group, Commit(**named, stages=("sequenced",), counts_fences=counts_fences)),
    )
    for _ in range(ROUNDS_MAX):
        staged, decided = yield asks
        if isinstance(staged.outcome, Refused):
            yield from _give_up_older(group, named, staged)
        elif isinstance(decided.outcome, Decided):
            return group, decided.outcome
        else:
            assert isinstance(decided.outcome, Refused)
            raise_refused(decided.outcome)
    raise TransactionPending(f"{named['name']} is being written by others at the same time")


def _ask_former(
    former: tuple[tuple[RaftGroupId, int], ...], named: Named
) -> Procedure[tuple[Told, ...]]:
    """Ask partitions whether they have a number; raises why one cannot tell.

    It asks with an empty stage of the earlier layout, which no partition takes. A newer layout is
    in force only once all older partitions have its fence; nothing before the fence changes.
    """
    if not former:
        return ()
    answers = yield tuple(
        Ask(group, Stage(**named, stage="sequenced", part=0, layout=layout))
        for group, layout in former
    )
    for told in answers:
        if isinstance(told.outcome, Refused) and told.outcome.code != LayoutChanged.code:
            raise_refused(told.outcome)
    return answers


def fence_partition(group: RaftGroupId, name: str, epoch: Epoch) -> Procedure[int]:
    """Let nothing of an older epoch into a partition, and return the newest sequence there."""
    sequence = 0
    for _ in range(ROUNDS_MAX):
        named: Named = {"name": name, "epoch": epoch, "sequence": Sequence(sequence)}
        staged, _ = yield (
            Ask(group, Stage(**named, stage=FENCE, part=0)),
            Ask(group, Abort(**named)),
        )
        if isinstance(staged.outcome, Decided):
            sequence = staged.committed + 1
        elif isinstance(staged.outcome, Refused):
            if staged.outcome.code == TransactionAborted.code:
                return staged.committed  # this epoch has been fenced in here before
            yield from _give_up_older(group, named, staged)
        else:
            return staged.committed
    raise TransactionPending(f"{name} is being written by others at the same time")


def _give_up_older(group: RaftGroupId, named: Named, staged: Told) -> Procedure[None]:
    """Drop what a publish that broke off has left open, or raise why a stage was refused."""
    assert isinstance(staged.outcome, Refused)
    left = [one for one in staged.attempts if one.sequence != named["sequence"]]
    if staged.outcome.code != TransactionPending.code or not left:
        raise_refused(staged.outcome)
    for attempt in left:
        yield from resolve(group, named["name"], attempt)
