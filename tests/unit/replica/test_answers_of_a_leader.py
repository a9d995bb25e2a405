"""When a leader answers what it has nothing new to store for."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.unit.replica.one_node import GROUP, a_leader, drive

from angarium.batch import encode
from angarium.errors import LimitExceeded
from angarium.ids import Epoch, Incarnation, Micros, NodeId, ProducerId, Sequence, replica_id
from angarium.machine import Appended, Duplicate
from angarium.modes import DeliveryMode
from angarium.raft import Change, ChangeKind, ConfChange, Config
from angarium.replica.acks import Published, Publishing
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from angarium.errors import AngariumError
    from angarium.replica.host import Host


def published(host: Host) -> Published:
    answers: list[Published | AngariumError] = []
    batch = encode([b"x"], producer_id=ProducerId(5), epoch=Epoch(0), sequence=Sequence(0))
    request = Publishing([bytearray(batch)], DeliveryMode.CONSISTENT, answers.append)
    host.replicas[GROUP].publish([request], now=Micros(1_000))
    drive(host)
    (answer,) = answers
    assert isinstance(answer, Published)
    return answer


def test_a_duplicate_is_answered_at_once_when_the_last_entry_changed_the_membership() -> None:
    host = a_leader(SimulatedDisk(random.Random(1)))
    (first,) = published(host).outcomes
    assert isinstance(first, Appended)

    newcomer = replica_id(NodeId(2), Incarnation(1))
    change = ConfChange((Change(ChangeKind.ADD_LEARNER, newcomer),))
    host.replicas[GROUP].propose_conf_change(change)
    drive(host)
    assert host.replicas[GROUP].raft.conf_state.learners == (newcomer,)

    (again,) = published(host).outcomes
    assert isinstance(again, Duplicate)
    assert again.base_offset == first.base_offset


def test_a_read_beyond_those_that_may_wait_is_refused_and_not_forgotten() -> None:
    host = a_leader(SimulatedDisk(random.Random(1)))
    replica = host.replicas[GROUP]
    answers: list[AngariumError | None] = []
    # A second voter that never answers: the leader cannot make sure that it still leads.
    silent = replica_id(NodeId(2), Incarnation(1))
    replica.propose_conf_change(ConfChange((Change(ChangeKind.ADD_VOTER, silent),)))
    drive(host)
    for _ in range(Config(id=host.id).pending_reads_max + 1):
        replica.read_index(answers.append)
    drive(host)
    (refused,) = answers
    assert isinstance(refused, LimitExceeded)
    assert refused.retriable
