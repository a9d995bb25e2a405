"""Where a node was met counts until the catalog says something new."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.ids import NodeId
from angarium.node.peers import Peers
from angarium.wire import Hello

if TYPE_CHECKING:
    from collections.abc import Callable

NODE = NodeId(2)
OLD, NEW, NEWER = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"


def addresses(*steps: Callable[[Peers], None]) -> list[str]:
    """Return where the node is looked for after each step; nobody ever answers there."""

    async def story() -> list[str]:
        peers = Peers(
            lambda role: Hello(role=role), on_change=lambda _: None, on_refused=lambda _: None
        )
        found = []
        for step in steps:
            step(peers)
            found.append(peers.address_of(NODE))
        await peers.stop()
        return found

    return asyncio.run(story())


def told(address: str) -> Callable[[Peers], None]:
    return lambda peers: peers.know(NODE, address)


def met(address: str) -> Callable[[Peers], None]:
    return lambda peers: peers.meet(NODE, address)


def test_an_old_word_does_not_undo_a_meeting() -> None:
    assert addresses(told(OLD), met(NEW), told(OLD)) == [OLD, NEW, NEW]


def test_the_first_word_after_a_start_is_an_old_one() -> None:
    assert addresses(met(NEW), told(OLD), told(OLD)) == [NEW, NEW, NEW]


def test_a_new_word_counts() -> None:
    assert addresses(told(OLD), met(NEW), told(NEWER)) == [OLD, NEW, NEWER]


def test_a_node_that_says_nonsense_about_itself_is_looked_for_in_vain() -> None:
    assert addresses(told("nonsense"), told("a:b"), told(NEW)) == ["nonsense", "a:b", NEW]
