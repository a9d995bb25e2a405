"""Join tokens in the catalog: one node each, once, and only while their time lasts."""

from __future__ import annotations

from tests.unit.machine.leader import assert_refused
from tests.unit.machine.test_catalog_machine import Catalog

from angarium.ids import Incarnation, Micros, NodeId
from angarium.machine import Done
from angarium.machine.catalog import (
    CatalogMachine,
    CatalogOutcome,
    JoinTokenDelete,
    JoinTokenPut,
    NodeJoin,
    NodeRegister,
    NodeRegistered,
    UserDelete,
    UserPut,
    decode,
    encode,
)
from angarium.machine.catalog import join_tokens as page

FAR = Micros(1_000_000)


def digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


def wish(incarnation: int, node: int | None = None) -> NodeRegister:
    named = None if node is None else NodeId(node)
    return NodeRegister(
        node=named, incarnation=Incarnation(incarnation), addresses=(("wire", "10.0.0.9:7400"),)
    )


def join(catalog: Catalog, token: int, incarnation: int, node: int | None = None) -> CatalogOutcome:
    return catalog.do(NodeJoin(digest=digest(token), registration=wish(incarnation, node)))


def with_token(*, until: int = FAR, nodes: int = 2) -> Catalog:
    catalog = Catalog(nodes=nodes)
    assert catalog.do(JoinTokenPut(digest=digest(7), until=Micros(until))) == Done()
    return catalog


def state(catalog: Catalog) -> object:
    machine = catalog.machine
    return dict(machine.nodes.by_id), dict(machine.join_tokens.by_digest), machine.nodes.next_id


def test_of_two_nodes_with_one_token_one_comes_in() -> None:
    catalog = with_token()
    assert join(catalog, 7, 50) == NodeRegistered(NodeId(3))
    assert catalog.applied.nodes == (NodeId(3),), "the others are told"
    before = state(catalog)
    assert_refused(join(catalog, 7, 51), "JOIN_REFUSED", "used already, by node 3")
    # Nor may the second take the place of a node that is down.
    assert_refused(join(catalog, 7, 51, node=1), "JOIN_REFUSED")
    assert state(catalog) == before


def test_whoever_asks_again_because_no_answer_came_is_let_in_once() -> None:
    catalog = with_token()
    assert join(catalog, 7, 50) == NodeRegistered(NodeId(3))
    before = state(catalog)
    assert join(catalog, 7, 50) == NodeRegistered(NodeId(3))
    # Even when the token is not known any more, for the node is.
    assert join(catalog, 8, 50) == NodeRegistered(NodeId(3))
    assert state(catalog) == before


def test_a_token_that_nobody_made_and_one_that_was_withdrawn_let_nobody_in() -> None:
    catalog = with_token()
    before = state(catalog)
    assert_refused(join(catalog, 8, 50), "JOIN_REFUSED", "unknown")
    assert state(catalog) == before
    [row] = catalog.machine.join_tokens.by_digest.values()
    assert catalog.do(JoinTokenDelete(token=row.id)) == Done()
    assert_refused(join(catalog, 7, 50), "JOIN_REFUSED", "withdrawn")
    assert_refused(catalog.do(JoinTokenDelete(token=row.id)), "NOT_FOUND")


def test_a_token_ends_with_its_time_by_the_entrys_own_clock() -> None:
    catalog = with_token(until=6)
    assert catalog.index == 4  # the entry's time, too
    assert_refused(join(catalog, 8, 50), "JOIN_REFUSED")
    before = state(catalog)
    assert_refused(join(catalog, 7, 50), "JOIN_REFUSED", "expired")
    assert state(catalog) == before


def test_a_node_that_is_refused_for_another_reason_uses_nothing_up() -> None:
    catalog = with_token()
    assert_refused(join(catalog, 7, 50, node=99), "NOT_FOUND", "no node 99")
    assert join(catalog, 7, 50) == NodeRegistered(NodeId(3))


def test_a_replaced_disk_comes_back_under_its_id() -> None:
    catalog = with_token()
    assert join(catalog, 7, 50, node=2) == NodeRegistered(NodeId(2))
    assert catalog.machine.nodes.by_id[NodeId(2)].incarnation == 50
    assert len(catalog.machine.nodes.by_id) == 2


def test_whoever_knows_one_members_data_does_not_get_another_members_place() -> None:
    catalog = with_token()
    mine = int(catalog.machine.nodes.by_id[NodeId(1)].incarnation)
    assert_refused(join(catalog, 8, mine, node=2), "JOIN_REFUSED")


def test_what_makes_no_sense_is_refused(monkeypatch: object) -> None:
    catalog = with_token()
    assert_refused(catalog.do(JoinTokenPut(digest=b"short", until=FAR)), "INVALID_ARGUMENT")
    assert_refused(catalog.do(JoinTokenPut(digest=digest(7), until=FAR)), "ALREADY_EXISTS")
    late = JoinTokenPut(digest=digest(9), until=Micros(1))
    assert_refused(catalog.do(late), "INVALID_ARGUMENT", "expired")


def test_there_are_so_many_and_those_whose_time_is_up_make_room() -> None:
    catalog = Catalog()
    for number in range(page.JOIN_TOKENS_MAX):
        soon = Micros(page.JOIN_TOKENS_MAX + 10)
        assert catalog.do(JoinTokenPut(digest=digest(number), until=soon)) == Done()
    one_more = JoinTokenPut(digest=digest(5_000), until=FAR)
    assert_refused(catalog.do(one_more), "RESOURCE_EXHAUSTED", "1000 join tokens")
    for _ in range(10):
        catalog.do(JoinTokenDelete(token=99_999))
    assert catalog.do(one_more) == Done()
    assert len(catalog.machine.join_tokens.by_digest) == 1
    assert catalog.machine.join_tokens.next_id == page.JOIN_TOKENS_MAX + 2, "numbers go upward"


def test_tokens_survive_a_snapshot_and_no_secret_is_printed() -> None:
    catalog = with_token()
    join(catalog, 7, 50)
    catalog.do(JoinTokenPut(digest=digest(8), until=FAR))
    again = CatalogMachine()
    again.restore(catalog.machine.snapshot())
    assert again.join_tokens.by_digest == catalog.machine.join_tokens.by_digest
    assert again.join_tokens.next_id == catalog.machine.join_tokens.next_id
    assert again.snapshot() == catalog.machine.snapshot()
    command = NodeJoin(digest=digest(8), registration=wish(50))
    assert decode(encode(command)) == command
    for one in (command, JoinTokenPut(digest=digest(8), until=FAR), *again.join_tokens.by_digest):
        if not isinstance(one, bytes):
            assert repr(digest(8)) not in repr(one)


def test_unused_tokens_go_with_the_user_that_issued_them_and_no_others() -> None:
    catalog = with_token()  # of a node itself: no user issued it
    for number, name in ((8, "carol"), (9, "carol"), (10, "dave")):
        catalog.do(UserPut(name=name, is_new=True))
        put = JoinTokenPut(digest=digest(number), until=FAR, issuer=name)
        assert decode(encode(put)) == put
        assert catalog.do(put) == Done()
    assert join(catalog, 9, 50) == NodeRegistered(NodeId(3))
    restored = CatalogMachine()
    restored.restore(catalog.machine.snapshot())
    assert restored.join_tokens.by_digest == catalog.machine.join_tokens.by_digest
    assert catalog.do(UserDelete(name="carol")) == Done()
    assert set(catalog.machine.join_tokens.by_digest) == {digest(one) for one in (7, 9, 10)}
    assert_refused(join(catalog, 8, 51), "JOIN_REFUSED", "unknown, was withdrawn")
    assert join(catalog, 10, 52) == NodeRegistered(NodeId(4))
    assert_refused(catalog.do(UserDelete(name="carol")), "NOT_FOUND")
