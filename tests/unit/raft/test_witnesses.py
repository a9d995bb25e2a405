"""What a leader lets witnesses forget, and who may vote afterwards."""

from __future__ import annotations

from angarium.ids import Index, ReplicaId, Term, witness_id
from angarium.raft import Change, ChangeKind, ConfChange, Config, RaftNode, decode_conf_change
from angarium.raft.messages import ConfState, Message, MessageKind, Snapshot
from angarium.raft.storage import MemoryStorage

LEADER, OTHER, NEW = ReplicaId(1), ReplicaId(2), ReplicaId(3)
WITNESS, OTHER_WITNESS = witness_id(ReplicaId(4)), witness_id(ReplicaId(5))


class Led:
    """A leader of two full voters or more and a witness, and what it says."""

    def __init__(self, *more: ReplicaId) -> None:
        voters = (LEADER, OTHER, *more, WITNESS)
        self.storage = MemoryStorage(Snapshot(Index(1), Term(1), ConfState(voters=voters), b""))
        config = Config(
            id=LEADER,
            election_ticks=10,
            heartbeat_ticks=1,
            applied=Index(1),
            async_storage_writes=False,
        )
        self.raft = RaftNode(config, self.storage, jitter=lambda _: 0)
        self.offered: list[Message] = []
        self.raft.campaign()
        self.do()
        for kind in (MessageKind.PRE_VOTE_RESPONSE, MessageKind.VOTE_RESPONSE):
            for one in (OTHER, *more):
                if not self.raft.is_leader:
                    self.hear(one, kind, term=Term(self.raft.term + (kind.name[0] == "P")))
        assert self.raft.is_leader

    def do(self) -> list[Message]:
        """Carry out what the core wants; return what it sends."""
        sent: list[Message] = []
        while self.raft.has_ready():
            ready = self.raft.ready()
            if ready.hard_state is not None:
                self.storage.set_hard_state(ready.hard_state)
            self.storage.append(ready.entries)
            for entry in ready.committed:
                if entry.kind:
                    self.raft.apply_conf_change(decode_conf_change(entry))
            sent += ready.messages
            self.offered += [one for one in ready.messages if one.kind is MessageKind.SNAPSHOT]
            self.raft.advance()
        return sent

    def hear(
        self, sender: ReplicaId, kind: MessageKind, *, term: Term | None = None, index: int = 0
    ) -> list[Message]:
        term = self.raft.term if term is None else term
        self.raft.step(Message(kind=kind, to=LEADER, sender=sender, term=term, index=Index(index)))
        return self.do()

    def acknowledge(self, *members: ReplicaId, index: int | None = None) -> None:
        for one in members:
            at = self.raft.last_index if index is None else index
            self.hear(one, MessageKind.APPEND_RESPONSE, index=at)

    def floor(self) -> int:
        """Return what the next heartbeat says to the witness; to others it says nothing."""
        self.raft.tick()
        beats = {one.to: one for one in self.do() if one.kind is MessageKind.HEARTBEAT}
        assert all(one.index == 0 for to, one in beats.items() if to != WITNESS)
        return beats[WITNESS].index


def test_a_witness_may_forget_what_every_full_voter_has() -> None:
    led = Led()
    led.acknowledge(WITNESS)
    assert led.raft.commit == led.raft.last_index
    assert led.floor() == 0, "the other one has confirmed nothing"
    led.acknowledge(OTHER)
    assert led.floor() == led.raft.last_index
    led.raft.propose([b"x"])
    led.do()
    led.acknowledge(WITNESS)
    assert led.raft.commit == led.raft.last_index
    assert led.floor() == led.raft.last_index - 1


def test_nothing_is_said_while_members_change() -> None:
    led = Led()
    led.acknowledge(OTHER, WITNESS)
    led.raft.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, NEW),)))
    led.do()
    assert led.floor() == 0
    led.acknowledge(OTHER, WITNESS)
    assert led.floor() > 0


def test_nobody_votes_who_lacks_what_a_witness_may_have_forgotten() -> None:
    led = Led()
    led.acknowledge(OTHER, WITNESS)
    led.raft.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, NEW),)))
    led.do()
    led.acknowledge(OTHER, WITNESS)
    told = led.floor()
    assert led.raft.forgotten_index == told
    promotion = ConfChange((Change(ChangeKind.ADD_VOTER, NEW),))
    led.acknowledge(NEW, index=told - 1)
    led.raft.propose_conf_change(promotion)
    led.do()
    led.acknowledge(OTHER, WITNESS)
    assert NEW in led.raft.conf_state.learners, "an empty entry has taken the change's place"
    led.acknowledge(NEW)
    led.raft.propose_conf_change(promotion)
    led.do()
    led.acknowledge(OTHER, WITNESS, NEW)
    assert NEW in led.raft.conf_state.voters


def test_a_witness_is_handed_no_leadership() -> None:
    led = Led()
    led.acknowledge(OTHER, WITNESS)
    led.raft.transfer_leader(WITNESS)
    assert not led.raft.transferee
    assert not [one for one in led.do() if one.kind is MessageKind.TIMEOUT_NOW]


def test_who_is_doubted_before_it_answered_is_probed_where_its_log_may_end() -> None:
    """Seed 620985: from the first entry on, a witness that leads has nothing that it can send."""
    led = Led()
    guess = led.raft.last_index - 1
    assert led.raft.match(OTHER) == 0
    led.raft.doubt(OTHER)
    sent = led.hear(OTHER, MessageKind.HEARTBEAT_RESPONSE)
    assert [(one.kind, one.index) for one in sent] == [(MessageKind.APPEND, guess)]


# --- a witness behind all that is kept of the log -------------------------------------------------


def forget(led: Led) -> Index:
    """Let the leader's log forget what is committed; return up to where."""
    at = led.raft.commit
    led.storage.create_snapshot(at, conf_state=led.raft.conf_state)
    led.storage.compact(at)
    return at


def publish_without_witness(led: Led, *others: ReplicaId) -> None:
    for _ in range(3):
        led.raft.propose([b"x"])
        led.do()
    led.acknowledge(OTHER, *others)


def passed_over(led: Led, witness: ReplicaId) -> Index | None:
    """Let a witness say that its log ends where its leader knows that it has come to.

    Return up to where it may pass over entries, or None if it is offered no snapshot.
    """
    led.offered.clear()
    if not led.raft.match(witness):
        led.acknowledge(witness, index=1)
    led.hear(witness, MessageKind.HEARTBEAT_RESPONSE)
    rejection = Message(
        kind=MessageKind.APPEND_RESPONSE,
        to=LEADER,
        sender=witness,
        term=led.raft.term,
        index=led.raft.last_index,
        reject=True,
        reject_hint=Index(led.raft.match(witness) or 0),
        log_term=Term(1),
    )
    led.raft.step(rejection)
    led.do()
    return next((one.index for one in led.offered if one.to == witness), None)


def test_a_witness_may_pass_over_what_was_committed_without_it() -> None:
    """Seed 800400: it waited for a full voter that was lost, and so did everybody."""
    led = Led()
    publish_without_witness(led)
    at = forget(led)
    assert passed_over(led, WITNESS) == at
    assert led.raft.forgotten_index >= at, "nobody comes to vote who lacks it"


def test_a_witness_that_does_not_vote_may_not_pass_over_anything() -> None:
    led = Led()
    led.acknowledge(OTHER, WITNESS)
    led.raft.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, OTHER_WITNESS),)))
    led.do()
    led.acknowledge(OTHER, WITNESS)
    assert OTHER_WITNESS in led.raft.conf_state.learners
    publish_without_witness(led)
    forget(led)
    assert passed_over(led, OTHER_WITNESS) == 0


def test_a_witness_that_votes_in_one_half_may_not_pass_over_anything() -> None:
    led = Led()
    led.acknowledge(OTHER, WITNESS)
    moves = (Change(ChangeKind.REMOVE, WITNESS), Change(ChangeKind.ADD_VOTER, OTHER_WITNESS))
    led.raft.propose_conf_change(ConfChange(moves))
    led.do()
    led.acknowledge(WITNESS)
    assert led.raft.conf_state.voters_outgoing, "on its way: the old witness alone agrees"
    forget(led)
    assert passed_over(led, OTHER_WITNESS) == 0


def test_a_witness_passes_over_nothing_beside_more_than_two_full_voters() -> None:
    """A majority of four has it. When two of these leave, only one of the others may have it."""
    led = Led(ReplicaId(6), ReplicaId(7))
    publish_without_witness(led, ReplicaId(6))
    forget(led)
    assert passed_over(led, WITNESS) == 0


def led_with_a_listener_behind() -> Led:
    """Return a leader one of whose listeners lacks, as the witness does, what is committed."""
    led = Led()
    led.acknowledge(OTHER, WITNESS)
    led.raft.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, NEW),)))
    led.do()
    led.acknowledge(OTHER, WITNESS, NEW)
    publish_without_witness(led)
    return led


def test_a_witness_passes_over_nothing_that_a_listener_lacks() -> None:
    """A leader that was deposed may have let it vote, by an entry that nobody else has."""
    led = led_with_a_listener_behind()
    at = forget(led)
    assert passed_over(led, WITNESS) == 0
    led.acknowledge(NEW)
    led.raft.report_snapshot(WITNESS, ok=False)
    assert passed_over(led, WITNESS) == at


def test_a_witness_passes_over_nothing_while_somebody_is_coming_who_is_not_known() -> None:
    led = Led()
    led.acknowledge(OTHER, WITNESS)
    publish_without_witness(led)
    led.raft.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, NEW),)))
    led.do()
    forget(led)
    assert passed_over(led, WITNESS) == 0


def test_a_witness_passes_over_nothing_that_somebody_about_to_vote_lacks() -> None:
    led = led_with_a_listener_behind()
    led.raft.propose_conf_change(ConfChange((Change(ChangeKind.ADD_VOTER, NEW),)))
    led.do()
    at = forget(led)
    assert at < led.raft.last_index, "the change is in the log, and not in force"
    assert passed_over(led, WITNESS) == 0
    led.acknowledge(NEW)
    led.raft.report_snapshot(WITNESS, ok=False)
    assert passed_over(led, WITNESS) == at
