"""A number is bound to the NAME in a certificate; what was removed stays removed."""

from __future__ import annotations

import pytest
from tests.unit.machine.leader import assert_refused
from tests.unit.machine.test_catalog_machine import Catalog

from angarium.ids import Incarnation, Micros, NodeId
from angarium.machine import Done
from angarium.machine.catalog import (
    BOUND_NAMES_LEVEL,
    CatalogMachine,
    CatalogOutcome,
    Form,
    JoinTokenPut,
    Labels,
    NodeJoin,
    NodeRegister,
    NodeRegistered,
    NodeRemove,
    decode,
    encode,
)
from angarium.machine.catalog import removed_nodes as page
from angarium.machine.catalog.removed_nodes import RemovedNode, RemovedNodes

HERE = (("wire", "10.0.0.1:7400"),)
ELSEWHERE = (("wire", "10.6.6.6:7400"),)
TOKEN = bytes(31) + b"\7"


class Bound(Catalog):
    """A catalog at the level that binds numbers, or below it."""

    def __init__(self, *, level: int = BOUND_NAMES_LEVEL) -> None:
        super().__init__(formed=False)
        self.do(Form(cluster="one", level=level))

    def register(
        self,
        name: str,
        incarnation: int,
        node: int | None = None,
        *,
        addresses: tuple[tuple[str, str], ...] = HERE,
        token: bytes = b"",
    ) -> CatalogOutcome:
        command = NodeRegister(
            node=None if node is None else NodeId(node),
            incarnation=Incarnation(incarnation),
            addresses=addresses,
            level_max=9,
            name=name,
        )
        return self.do(NodeJoin(digest=token, registration=command) if token else command)

    def invite(self) -> None:
        assert self.do(JoinTokenPut(digest=TOKEN, until=Micros(1_000_000))) == Done()

    def name(self, node: int) -> str:
        return self.machine.nodes.by_id[NodeId(node)].name


def test_a_number_is_bound_to_the_name_that_it_was_first_registered_with() -> None:
    catalog = Bound()
    assert catalog.register("a", 11) == NodeRegistered(NodeId(1))
    assert catalog.register("b", 12) == NodeRegistered(NodeId(2))
    before = dict(catalog.machine.nodes.by_id)
    for node in (1, None):
        refused = catalog.register("b", 11, node, addresses=ELSEWHERE)
        assert_refused(refused, "JOIN_REFUSED", "node 1 is bound to the NAME a")
    assert_refused(catalog.register("b", 99, 1), "JOIN_REFUSED", "with another NAME")
    assert catalog.machine.nodes.by_id == before
    # With its own it moves, and comes back with an empty disk.
    assert catalog.register("a", 11, 1, addresses=ELSEWHERE) == NodeRegistered(NodeId(1))
    assert catalog.register("a", 13, 1) == NodeRegistered(NodeId(1))
    assert catalog.name(1) == "a"


def test_below_the_level_nothing_is_bound_and_above_it_by_the_next_registration() -> None:
    catalog = Bound(level=BOUND_NAMES_LEVEL - 1)
    catalog.register("a", 11)
    assert catalog.name(1) == ""
    assert catalog.register("b", 11, 1) == NodeRegistered(NodeId(1))
    assert catalog.do(NodeRemove(node=NodeId(1))) == Done()
    assert not catalog.machine.nodes.removed.by_incarnation
    catalog.register("a", 12)
    catalog.machine.nodes.level = BOUND_NAMES_LEVEL
    assert catalog.register("a", 12, 2) == NodeRegistered(NodeId(2))
    assert catalog.name(2) == "a"


def test_processes_of_one_machine_share_a_name() -> None:
    catalog = Bound()
    catalog.register("a", 11)
    assert catalog.register("a", 12) == NodeRegistered(NodeId(2))
    assert [catalog.name(1), catalog.name(2)] == ["a", "a"]
    # One of them may go: the NAME is still that of a member.
    assert catalog.do(NodeRemove(node=NodeId(2))) == Done()
    assert catalog.register("a", 13) == NodeRegistered(NodeId(3))


def test_without_tls_nothing_is_said_of_names_and_a_binding_stays() -> None:
    catalog = Bound()
    assert catalog.register("", 11) == NodeRegistered(NodeId(1))
    assert catalog.register("a", 11, 1) == NodeRegistered(NodeId(1))
    assert catalog.register("", 11, 1) == NodeRegistered(NodeId(1))
    assert catalog.name(1) == "a"


def test_another_name_takes_a_join_token_and_uses_it_up() -> None:
    catalog = Bound()
    catalog.register("a", 11)
    unknown = catalog.register("b", 11, 1, token=TOKEN)
    assert_refused(unknown, "JOIN_REFUSED", "unknown")
    catalog.invite()
    assert catalog.register("b", 11, 1, token=TOKEN) == NodeRegistered(NodeId(1))
    assert catalog.name(1) == "b"
    # The same node may repeat it until it has the answer; for another NAME it is used up.
    assert catalog.register("b", 11, 1, token=TOKEN) == NodeRegistered(NodeId(1))
    assert_refused(catalog.register("c", 11, 1, token=TOKEN), "JOIN_REFUSED", "used already")


def test_a_removed_name_takes_a_join_token_to_come_back() -> None:
    catalog = Bound()
    catalog.register("a", 11)
    catalog.register("b", 12)
    catalog.do(NodeRemove(node=NodeId(2)))
    assert_refused(
        catalog.register("b", 13), "JOIN_REFUSED", "removed from the cluster with node 2"
    )
    assert_refused(catalog.register("b", 13, 1), "JOIN_REFUSED")
    catalog.invite()
    assert catalog.register("b", 13, token=TOKEN) == NodeRegistered(NodeId(3))
    assert catalog.register("b", 13, 3) == NodeRegistered(NodeId(3)), "it is a member again"
    catalog.do(NodeRemove(node=NodeId(3)))
    assert_refused(catalog.register("b", 14), "JOIN_REFUSED", "with node 3")


@pytest.mark.parametrize("disk", [11, 12], ids=["the same disk", "an empty disk"])
def test_a_name_that_was_replaced_takes_a_join_token_to_come_back(disk: int) -> None:
    """Its key may be stolen, which is why it was replaced."""
    catalog = Bound()
    catalog.register("a", 11)
    catalog.invite()
    catalog.register("b", disk, 1, token=TOKEN)
    assert catalog.name(1) == "b"
    again = CatalogMachine()
    again.restore(catalog.machine.snapshot())
    catalog.machine = again
    assert_refused(catalog.register("a", 19), "JOIN_REFUSED", "removed")
    # The number that gave it up goes on with the new one.
    catalog.register("b", disk, 1)
    assert catalog.machine.nodes.by_id[NodeId(1)].incarnation == disk


def test_removed_data_are_refused_for_ever_also_with_a_join_token() -> None:
    catalog = Bound()
    catalog.register("a", 11)
    catalog.register("b", 12)
    catalog.register("b", 22, 2)  # another disk
    catalog.register("c", 13)
    catalog.do(NodeRemove(node=NodeId(3)))
    catalog.invite()
    again = CatalogMachine()
    again.restore(catalog.machine.snapshot())
    assert again.snapshot() == catalog.machine.snapshot()
    catalog.machine = again
    for incarnation, node in ((12, 2), (12, None), (13, None), (13, 1)):
        for token in (b"", TOKEN):
            refused = catalog.register("b", incarnation, node, token=token)
            assert_refused(refused, "JOIN_REFUSED")
    assert catalog.machine.nodes.by_id[NodeId(2)].incarnation == 22
    assert sorted(catalog.machine.nodes.by_id) == [1, 2]


def test_so_many_removed_disks_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "REMOVED_MAX", 3)
    removed = RemovedNodes()
    for number in range(5):
        removed.add(RemovedNode(NodeId(number), Incarnation(100 + number), f"n{number}"))
    assert list(removed.by_incarnation) == [102, 103, 104]
    assert removed.node_of("n1") is None
    assert removed.node_of("n4") == 4
    # A NAME that was removed again since stays known when the first time is forgotten.
    removed.add(RemovedNode(NodeId(9), Incarnation(109), "n3"))
    removed.add(RemovedNode(NodeId(10), Incarnation(110), ""))
    assert 103 not in removed.by_incarnation
    assert removed.node_of("n3") == 9


def test_a_name_that_is_too_long_is_refused() -> None:
    assert_refused(Bound().register("n" * 129, 11), "INVALID_ARGUMENT", "too long")


@pytest.mark.parametrize(
    ("command", "is_change"),
    [
        (NodeRegister(node=NodeId(1), incarnation=Incarnation(11), addresses=HERE), False),
        (NodeRegister(incarnation=Incarnation(11), addresses=HERE, name="a"), False),
        (NodeRegister(node=NodeId(1), incarnation=Incarnation(11), addresses=ELSEWHERE), True),
        (NodeRegister(incarnation=Incarnation(11), addresses=ELSEWHERE), True),
        (NodeRegister(incarnation=Incarnation(11), addresses=HERE, name="b"), True),
        (NodeRegister(incarnation=Incarnation(11), addresses=HERE, labels=Labels("x")), True),
        (NodeRegister(incarnation=Incarnation(11), addresses=HERE, level_max=8), True),
        # Another disk, and another node: `check_not_alive`, and the catalog, decide about these.
        (NodeRegister(node=NodeId(1), incarnation=Incarnation(7), addresses=ELSEWHERE), False),
        (NodeRegister(incarnation=Incarnation(7), addresses=ELSEWHERE), False),
    ],
)
def test_who_has_to_agree_to_a_registration(command: NodeRegister, is_change: bool) -> None:
    catalog = Bound()
    level = {} if command.level_max > 1 else {"level_max": 9}
    catalog.register("a", 11)
    timed = type(command)(**{name: getattr(command, name) for name in _FIELDS} | level)
    asked = catalog.machine.nodes.changed_by(timed)
    assert (asked is not None) is is_change
    catalog.machine.nodes.level = BOUND_NAMES_LEVEL - 1
    assert catalog.machine.nodes.changed_by(timed) is None


def test_the_entry_of_an_earlier_release_says_nothing_of_a_name() -> None:
    command = NodeRegister(incarnation=Incarnation(1), addresses=HERE, name="a")
    assert decode(encode(command)) == command
    with_name = encode(command)
    assert with_name.endswith(b"\xa1a")
    # Its array is one shorter.
    shorter = with_name[:2] + bytes((with_name[2] - 1,)) + with_name[3:-2]
    earlier = decode(shorter)
    assert isinstance(earlier, NodeRegister)
    assert earlier.name == ""


_FIELDS = ("node", "incarnation", "addresses", "labels", "level_max", "name")
