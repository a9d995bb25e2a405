"""Who loses a right loses what is open, at every door, soon, and is told why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import uvloop
from tests.doors.matrix.world import SecuredCluster
from tests.doors.revoking.measuring import WAYS, measured, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

CUT_S_MAX = 20.0
"""Two seconds are promised; a machine with ten others on it is slower than its promise. The figures
of a quiet one are in docs/trust/security.md."""


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as one:
        yield one


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, runner: asyncio.Runner
) -> Iterator[SecuredCluster]:
    it = SecuredCluster(tmp_path_factory.mktemp("revoking"))

    async def start() -> None:
        await it.start()
        async with it.admin() as admin:
            await prepare(admin)

    try:
        runner.run(start())
        yield it
    finally:
        it.stop()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_open_is_cut_at_every_door(
    cluster: SecuredCluster, runner: asyncio.Runner, way: str
) -> None:
    cuts = runner.run(measured(cluster, way, 0))
    late = [one for one in cuts if one.since_answered_s > CUT_S_MAX]
    assert not late
    codes = {one.code for one in cuts}
    # Nobody is taken for a stranger who only lost a grant, and the other way round.
    assert codes <= ({"NOT_FOUND", "PERMISSION_DENIED"} if way == WAYS[0] else {"UNAUTHENTICATED"})
    print({one.what: round(one.since_answered_s, 2) for one in cuts})
