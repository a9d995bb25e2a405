"""A simulated client with transactions, which crashes in the middle of them.

One over several partitions goes the whole way, as a node's coordinator takes it: stage at each
partition, decide at home, carry the decision out at each partition, finish at home. A client that
crashes has lost its memory of how far it came; it opens its series anew, in the next epoch, and
hears from the home what was committed. Now and then one comes back with a memory from before its
last commit, and commits something else under the same number: it has to be told what that was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.batch import encode
from angarium.errors import AngariumError, TransactionAborted, TransactionPending
from angarium.ids import Epoch, RaftGroupId
from angarium.machine import (
    Abort,
    Begin,
    Commit,
    Configure,
    Decided,
    PartitionLimits,
    Refused,
    Stage,
)
from angarium.service.transactions import procedure
from angarium.service.transactions.procedure import inner
from angarium.testing.history import Transaction
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.keyed_staging import KeyedStaging
from angarium.testing.sim.scripts import Ask, Crashed, ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.machine import Outcome
    from angarium.service.transactions.procedure import Named
    from angarium.testing.sim.scripts import Script
    from angarium.testing.sim.world import World


class Transactor(ScriptedClient):
    """Runs one transaction after the other."""

    def __init__(self, world: World, number: int, seed: int) -> None:
        super().__init__(world, f"transactor-{number}", seed)
        self._epoch = 0
        self._sequence = 0
        self._one: Transaction | None = None
        self._last: Transaction | None = None
        """The last one that a home has committed, to be repeated."""
        self._keyed = KeyedStaging(world, number, self._rng)

    def start(self) -> None:
        """Begin with the first one."""
        self._later()

    def _put_stages_beside(self) -> Script[None]:
        """Have the stages of every partition copied beside snapshots, as at level 2."""
        limits = PartitionLimits(stages_beside=True)
        for group in self.world.groups:
            yield Ask(group, Configure(limits=limits))

    def _later(self) -> None:
        self.world.scheduler.after(self._rng.randrange(10, 150) * MILLISECOND, self._next)

    def _next(self) -> None:
        if not self.active:
            return
        self._sequence += 1
        one = self._one = self._drawn()
        self.world.history.transactions.append(one)
        self.play(self._script(one))

    def ended(self) -> None:
        """Note how a transaction ended, and go on."""
        one = self._one
        assert one is not None
        one.completed = self.world.scheduler.now
        self._keyed.committed(one)
        if one.home is not None and one.committed is not False:
            self._last = one if one.committed else None  # its fate is not known
        self.world.note(self.name, one.name, one.epoch, one.sequence, one.committed)
        self._later()

    # --- what it is about -------------------------------------------------------------------

    def _drawn(self) -> Transaction:
        groups, rng = self.world.groups, self._rng
        if self._keyed.is_needed:
            return self._drawn_by_key()
        here = rng.sample(groups, rng.randrange(1, len(groups) + 1))
        alone = len(here) == 1 and rng.random() < 0.5
        one = Transaction(
            name=self.name,
            epoch=self._epoch,
            sequence=self._sequence,
            home=None if alone else rng.choice(groups),
            values={group: self._values(group, "a") for group in here},
            dropped={},
            invoked=self.world.scheduler.now,
        )
        for group in here:
            if rng.random() < 0.3:
                one.dropped[group] = self._values(group, "b")
        return one

    def _drawn_by_key(self) -> Transaction:
        return Transaction(
            name=self.name,
            epoch=self._epoch,
            sequence=self._sequence,
            home=self._rng.choice(self.world.groups),
            values=self._keyed.drawn(),
            dropped={},
            invoked=self.world.scheduler.now,
        )

    def _values(self, group: RaftGroupId, stage: str) -> tuple[bytes, ...]:
        name = f"{self.name}.{self._epoch}.{self._sequence}.{group}.{stage}"
        return tuple(f"{name}.{one}".encode() for one in range(self._rng.randrange(1, 6)))

    # --- how it goes ------------------------------------------------------------------------

    def _script(self, one: Transaction) -> Script[None]:
        if self._sequence == 1 and self.world.settings.staging:
            yield from self._put_stages_beside()
        if self._last is not None and self._rng.random() < 0.2:
            yield from self._repeat(self._last)
            one.epoch = self._epoch
        is_ready = yield from self._prepare(one)
        wants = is_ready and self._rng.random() < 0.9
        if not wants:
            self._epoch += 1
        if one.home is None:
            yield from self._decide_here(one, wants=wants)
        else:
            yield from self._decide(one, one.home, wants=wants)

    def _prepare(self, one: Transaction) -> Script[bool]:
        """Stage, sometimes after a word to the home; False if that was refused or broke off."""
        if one.home is not None and self._rng.random() < 0.5:
            begin = Begin(**_of(one), participants=tuple(one.values))
            heard = yield Ask(one.home, begin)
            # The home may not have heard yet that the one before was carried out: no harm done,
            # for whoever decides sees to that first.
            if isinstance(heard.outcome, Refused) and not _is_held_up(heard.outcome):
                self._judge("a beginning", heard.outcome)
                return False
        sent: list[tuple[RaftGroupId, Stage]] = []
        for group, command in self._stages(one):
            sent.append((group, command))
            if self._rng.random() < 0.03:
                return False
            try:
                told = yield from self.follow(procedure.stage(group, command), crashes=False)
            except Crashed:
                return False
            if isinstance(told.outcome, Refused):
                self._judge("a stage", told.outcome)
                return False
        # A writer with many tasks takes its time: so fences are wanted meanwhile.
        for group, command in self._keyed.dawdling(sent):
            heard = yield Ask(group, command)
            if isinstance(heard.outcome, Refused):
                self._judge("a part that comes again", heard.outcome)
                return False
        return True

    def _stages(self, one: Transaction) -> Iterator[tuple[RaftGroupId, Stage]]:
        for group in one.values:
            held = self._held(one, group)
            for stage, staged in (*held.items(), ("b", one.dropped.get(group, ()))):
                for part, value in enumerate(_parts(staged, self._rng.randrange(1, 4))):
                    batches = b"".join(bytes(encode([record])) for record in value)
                    yield (
                        group,
                        Stage(
                            **_of(one),
                            home=one.home,
                            stage=stage,
                            part=part,
                            batches=batches,
                            layout=self._keyed.layout,
                        ),
                    )

    def _held(self, one: Transaction, group: RaftGroupId) -> dict[str, tuple[bytes, ...]]:
        """Return what each stage of a transaction holds that its commit names, in order."""
        values = one.values[group]
        if not self.world.settings.staging:
            return {"a": values}
        size = 1 + one.sequence % 3
        return {f"a{at}": some for at, some in enumerate(_parts(values, size))}

    # --- decided at its home ----------------------------------------------------------------

    def _decide(self, one: Transaction, home: RaftGroupId, *, wants: bool) -> Script[None]:
        stages = tuple((group, tuple(self._held(one, group))) for group in one.values)
        if wants:
            steps = procedure.commit(home, _of(one), stages, content=_content(one))
        else:
            steps = procedure.abort(home, _of(one), one.values)
        try:
            ended = yield from self.follow(steps, crashes=self._rng.random() < 0.3)
        except Crashed:
            yield from self._come_back(one, home)
        except TransactionAborted:
            one.committed = False
        except AngariumError as error:
            self.incident("a decision", error)
            yield from self._come_back(one, home)
        else:
            one.committed = ended.committed
            if ended.unfinished is not None and self._rng.random() < 0.7:
                # Else nobody tells the home, as if its coordinator had died right then.
                finish = procedure.finish(home, ended.unfinished)
                with suppress(Crashed):
                    yield from self.follow(finish, crashes=False)
            for group, decided in ended.offsets.items():
                self._note_outcome(one, group, decided)

    def _come_back(self, one: Transaction, home: RaftGroupId) -> Script[None]:
        """Open the series anew, and hear what became of a transaction that broke off."""
        self._epoch += 1
        steps = procedure.fence(home, self.name, Epoch(self._epoch))
        try:
            committed = yield from self.follow(steps, crashes=False)
        except Crashed:
            return  # nobody answered to the end: its fate is not known
        except AngariumError as error:
            self.incident("coming back", error)
            return
        one.committed = committed == inner(one.sequence)
        for group in one.values if one.committed else ():
            # It was carried out before the series was open; asking again tells where.
            heard = yield Ask(group, Commit(**_of(one), stages=tuple(self._held(one, group))))
            self._note_outcome(one, group, heard.outcome)

    def _repeat(self, one: Transaction) -> Script[None]:
        """Commit something else under a number that was committed, in the next epoch."""
        self._epoch += 1
        assert one.home is not None
        named: Named = {**_of(one), "epoch": Epoch(self._epoch)}
        group = self._rng.choice(self.world.groups)
        other = f"{self.name}.{self._epoch}.{one.sequence}.{group}.repeated".encode()
        one.dropped[group] = (*one.dropped.get(group, ()), other)
        batches = bytes(encode([other]))
        stage = Stage(**named, home=one.home, stage="c", part=0, batches=batches)
        steps = procedure.commit(one.home, named, ((group, ("c",)),), content="something else")
        try:
            yield from self.follow(procedure.stage(group, stage), crashes=False)
            ended = yield from self.follow(steps, crashes=False)
        except Crashed:
            return
        except AngariumError as error:
            self.incident("a repetition", error)
            return
        told = (ended.repeated, ended.newest, ended.content)
        if told != (True, inner(one.sequence), _content(one)):
            self.world.history.incidents.append(
                f"{one.name} {one.sequence} was committed as {_content(one)}; whoever committed "
                f"something else under that number was told {told}"
            )

    # --- decided by its only partition --------------------------------------------------------

    def _decide_here(self, one: Transaction, *, wants: bool) -> Script[None]:
        (group,) = one.values
        commit = Commit(**_of(one), stages=tuple(self._held(one, group)))
        if wants and self._rng.random() < 0.2:
            # It asks to commit, and is gone before it hears what became of that.
            yield Ask(group, commit, 1)
            self._epoch += 1
            wants = False
        heard = yield Ask(group, commit if wants else Abort(**_of(one)))
        if heard.told is not None and _is_held_up(heard.outcome):
            # One that was to be decided at its home was left behind here.
            for attempt in heard.told.attempts:
                if attempt.sequence < inner(one.sequence):
                    steps = procedure.resolve(group, self.name, attempt)
                    yield from self.follow(steps, crashes=False)
            heard = yield Ask(group, commit)
        if isinstance(heard.outcome, Refused):
            self._judge("a decision", heard.outcome)
        one.committed = isinstance(heard.outcome, Decided) and heard.outcome.committed
        self._note_outcome(one, group, heard.outcome)

    # --- what it hears --------------------------------------------------------------------------

    def _note_outcome(self, one: Transaction, group: RaftGroupId, outcome: Outcome | None) -> None:
        if not isinstance(outcome, Decided):
            return
        if outcome.committed != one.committed:
            self.world.history.incidents.append(
                f"{one.name} {one.sequence} is committed: {one.committed}; group {group} says "
                f"{outcome.committed}"
            )
        if outcome.base_offset is not None and outcome.next_offset is not None:
            now = self.world.scheduler.now
            one.placed[group] = (outcome.base_offset, outcome.next_offset, now)

    def _judge(self, what: str, refused: Refused) -> None:
        if refused.code != TransactionAborted.code:
            self.world.history.incidents.append(
                f"{self.name} {self._sequence}: {what} was refused: {refused.code} "
                f"{refused.message}"
            )


def _is_held_up(outcome: Outcome | None) -> bool:
    return isinstance(outcome, Refused) and outcome.code == TransactionPending.code


def _of(one: Transaction) -> Named:
    return {"name": one.name, "epoch": Epoch(one.epoch), "sequence": inner(one.sequence)}


def _content(one: Transaction) -> str:
    """Say what a transaction is of, as its owner would."""
    return f"{one.epoch}: {sum(map(len, one.values.values()))} records"


def _parts(values: tuple[bytes, ...], size: int) -> list[tuple[bytes, ...]]:
    return [values[start : start + size] for start in range(0, len(values), size)]
