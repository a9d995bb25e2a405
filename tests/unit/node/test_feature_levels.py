"""What one node does about the cluster's feature level."""

from __future__ import annotations

import pytest

from angarium.errors import NewerRelease, PreconditionFailed
from angarium.ids import Incarnation, Index, Term
from angarium.log import level_mark
from angarium.log.memory_disk import MemoryDisk
from angarium.machine.catalog import (
    CatalogCommand,
    CatalogMachine,
    Form,
    LevelRaise,
    NodeRegister,
    encode,
)
from angarium.node.levels import Levels
from angarium.node.release import Release
from angarium.wire import Hello, Role

THIS = Release(software="1.0", level_max=1)
NEXT = Release(software="2.0", wire_max=2, level_max=2)
LATER = Release(software="3.0", wire_max=3, level_min=2, level_max=3)


def levels(release: Release, disk: MemoryDisk | None = None) -> Levels:
    opened = Levels(release, disk or MemoryDisk())
    opened.check_data()
    return opened


def catalog(level: int) -> CatalogMachine:
    machine = CatalogMachine()
    node = NodeRegister(incarnation=Incarnation(1), addresses=(), level_max=9)
    commands: list[CatalogCommand] = [Form(cluster="c"), node, LevelRaise(level=level)]
    for index, command in enumerate(commands, 1):
        machine.apply(Index(index), Term(1), encode(command))
    return machine


def test_a_raised_level_is_marked_before_anybody_hears_of_it() -> None:
    disk = MemoryDisk()
    node = levels(NEXT, disk)
    node.note(catalog(2))
    assert node.current == 2
    assert level_mark.load(disk) == 2


def test_the_first_level_needs_no_mark() -> None:
    disk = MemoryDisk()
    node = levels(NEXT, disk)
    node.begin(1)
    node.note(catalog(1))
    node.note(CatalogMachine())
    assert disk.list("") == []


def test_a_node_stops_when_the_cluster_goes_beyond_what_its_release_knows() -> None:
    disk = MemoryDisk()
    with pytest.raises(NewerRelease, match=r"level 2, angarium 1\.0 knows only 1; start a newer"):
        levels(THIS, disk).note(catalog(2))


def test_a_release_opens_no_data_of_a_level_it_does_not_know_yet_or_any_more() -> None:
    disk = MemoryDisk()
    with pytest.raises(PreconditionFailed, match="go back to the release before"):
        levels(LATER, disk)
    levels(NEXT, disk).note(catalog(2))
    with pytest.raises(NewerRelease, match="start a newer release on this data directory"):
        levels(THIS, disk)
    assert levels(LATER, disk).current == 2


def test_a_new_directory_has_its_clusters_level_from_the_beginning() -> None:
    disk = MemoryDisk()
    Levels(LATER, disk).begin(3)
    assert levels(LATER, disk).current == 3


def test_nodes_that_do_not_know_the_level_are_hung_up_on() -> None:
    node = levels(NEXT)
    old = THIS.introduced(Hello(role=Role.PEER, node=7))
    node.check_peer(old)
    node.note(catalog(2))
    node.check_peer(NEXT.introduced(Hello(role=Role.PEER, node=7)))
    with pytest.raises(NewerRelease, match=r"node 7 \(angarium 1\.0\) knows only 1"):
        node.check_peer(old)
    with pytest.raises(NewerRelease):
        node.check_peer(Hello(role=Role.PEER, node=7))


def test_a_release_introduces_itself() -> None:
    hello = NEXT.introduced(Hello(role=Role.PEER, node=3, features={"other": 5}))
    assert (hello.software, hello.version_min, hello.version_max) == ("2.0", 1, 2)
    assert hello.features == {"other": 5, "machine": 2}


@pytest.mark.parametrize(
    "wrong", [{"wire_min": 2}, {"wire_min": 0}, {"level_min": 9}, {"level_min": 0}]
)
def test_versions_go_upward_from_one(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="go upward"):
        Release(**wrong)  # type: ignore[arg-type]
