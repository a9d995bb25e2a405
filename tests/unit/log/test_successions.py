"""A folder goes on in another cluster, wherever a power cut falls between two writes."""

from __future__ import annotations

import random

import pytest

from angarium.errors import CorruptData
from angarium.ids import CATALOG_GROUP, Incarnation, Index, NodeId, RaftGroupId, Term, replica_id
from angarium.log import folder_identity, level_mark, renewals, successions
from angarium.log.folder_identity import FolderIdentity
from angarium.log.successions import Succession
from angarium.replica.catalog_copy import read_copy
from angarium.replica.config import HostConfig
from angarium.replica.host import Host
from angarium.testing.disk import SimulatedContent, SimulatedDisk, SimulatedFile

OLD = FolderIdentity(cluster_id=1, node_id=NodeId(1), incarnation=Incarnation(7))
NEW = f"{2:032x}"
VOTERS = [replica_id(NodeId(node), Incarnation(7)) for node in (1, 2, 3)]
PARTITION = RaftGroupId(5)


class Killed(Exception):
    """The process ends here."""


class MortalDisk(SimulatedDisk):
    """One that kills the process before a certain write, name, removal or sync."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))
        self.left = -1
        """So many more; -1: for ever."""

    def step(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= self.left > 0

    def create(self, name: str) -> SimulatedFile:
        self.step()
        return super().create(name)

    def rename(self, old: str, new: str) -> None:
        self.step()
        super().rename(old, new)

    def remove(self, name: str) -> None:
        self.step()
        super().remove(name)

    def remove_folder(self, folder: str) -> None:
        self.step()
        super().remove_folder(folder)

    def check_sync(self, content: SimulatedContent | None, name: str) -> None:
        self.step()
        super().check_sync(content, name)


def a_voter_of_three(seed: int) -> MortalDisk:
    disk = MortalDisk(seed)
    folder_identity.create(disk, OLD)
    host = opened(disk)
    host.form_group(CATALOG_GROUP, VOTERS)
    host.form_group(PARTITION, VOTERS)
    host.wal.sync()
    host.close()
    return disk


def opened(disk: SimulatedDisk) -> Host:
    return Host(
        disk,
        node=OLD.node_id,
        incarnation=OLD.incarnation,
        config=HostConfig(),
        jitter=lambda _: 0,
    )


def wanted(*, follows: bool) -> Succession:
    return Succession(
        cluster=NEW,
        previous=f"{1:032x}",
        incarnation=Incarnation(9),
        alone_from=Index(0 if follows else 1),
        last_term=Term(0 if follows else 1),
        level=6,
        by="somebody",
        code="1f0a93c7",
    )


def go_on(disk: SimulatedDisk, *, follows: bool) -> None:
    """Do as the command does, the first time and every other."""
    begun = successions.load(disk)
    if begun is None:
        begun = wanted(follows=follows)
        successions.begin(disk, begun)
    successions.carry_out(disk, begun)


def check_in_between(disk: SimulatedDisk) -> None:
    identity = folder_identity.load(disk)
    assert identity is not None
    renewal = renewals.load(disk).get(CATALOG_GROUP)
    if identity == OLD:
        assert renewal is None, "under its old id it would be a second catalog"
    begun = successions.load(disk)
    if begun is None:
        assert identity == OLD
    elif begun.is_done:
        assert identity != OLD
        assert renewal is not None


@pytest.mark.parametrize("follows", [False, True])
def test_a_power_cut_between_any_two_writes_is_made_good_by_the_next_run(*, follows: bool) -> None:
    cuts = 0
    for after in range(1_000):
        disk = a_voter_of_three(seed=after)
        disk.left = after
        try:
            go_on(disk, follows=follows)
        except Killed:
            cuts += 1
        disk.left = -1
        disk.power_loss()
        check_in_between(disk)
        go_on(disk, follows=follows)
        found = successions.load(disk)
        assert found is not None
        assert found.is_done
        assert level_mark.load(disk) == 6
        identity = folder_identity.load(disk)
        assert identity is not None
        assert f"{identity.cluster_id:032x}" == NEW
        check_end(disk, follows=follows)
        if cuts == after:
            break  # it was not killed any more
    assert cuts > 10


def check_end(disk: SimulatedDisk, *, follows: bool) -> None:
    host = opened(disk)
    assert PARTITION in host.replicas
    assert host.replicas[PARTITION].id == VOTERS[0], "who it is in partitions stays"
    assert not host.lost
    if follows:
        assert host.catalog is None, "it gets one of the recovered node"
        assert CATALOG_GROUP in host.own_ids.renewed
    else:
        assert host.catalog is not None
        assert host.catalog.raft.conf_state.voters == (host.own_ids.in_group(CATALOG_GROUP),)
    host.close()


def test_who_votes_is_read_from_a_stopped_node() -> None:
    disk = a_voter_of_three(seed=1)
    copy = read_copy(disk, OLD)
    assert (copy.own, copy.voters) == (VOTERS[0], tuple(VOTERS))
    assert (copy.last_term, copy.last_index) == (1, 1)
    go_on(disk, follows=False)
    after = read_copy(disk, OLD)
    assert after.voters == (after.own,)


def test_a_follower_has_no_catalog_to_go_on_with() -> None:
    disk = a_voter_of_three(seed=1)
    go_on(disk, follows=True)
    with pytest.raises(CorruptData):
        read_copy(disk, OLD)


def test_a_damaged_note_is_told_from_none() -> None:
    disk = a_voter_of_three(seed=1)
    successions.begin(disk, wanted(follows=False))
    disk.flip_bit(successions.NAME, 40)
    with pytest.raises(CorruptData):
        successions.load(disk)


def test_a_folder_that_the_cluster_went_on_without_says_so_until_it_follows() -> None:
    disk = a_voter_of_three(seed=1)
    assert successions.left(disk) is None
    successions.note_left(disk, "the cluster went on")
    assert successions.left(disk) == "the cluster went on"
    go_on(disk, follows=True)
    assert successions.left(disk) is None
