"""A transaction that waited in vain says for which partition, and why that did not answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from angarium.errors import NotLeader, OutcomeUnknown
from angarium.ids import RaftGroupId
from angarium.service.transactions.participants import Participants

GONE = "partition 0 of orders has 1 of 3 replicas"


def a_node() -> Any:
    """Return a node that has a replica of a partition without a leader."""
    group = RaftGroupId(7)
    partition = SimpleNamespace(group=group, replicas=(1, 2, 3))
    return SimpleNamespace(
        id=1,
        replicas=SimpleNamespace(here={group}, leading=lambda _: None),
        catalog=SimpleNamespace(
            partition_in=lambda _: partition, name_of=lambda _: "partition 0 of orders"
        ),
        leader_of=lambda _: None,
        peers=SimpleNamespace(is_up=lambda _: False),
        quorum=SimpleNamespace(no_leader=lambda _: NotLeader(GONE)),
    )


def test_a_partition_that_has_lost_its_majority_is_named_with_its_numbers() -> None:
    async def story() -> None:
        deadline = asyncio.get_running_loop().time() + 0.1
        await Participants(a_node()).ask(RaftGroupId(7), [], deadline=deadline)

    with pytest.raises(OutcomeUnknown) as told:
        asyncio.run(story())
    assert str(told.value) == f"partition 0 of orders did not answer in time: {GONE}"
