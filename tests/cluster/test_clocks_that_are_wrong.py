"""One wrong clock among real nodes: it is noticed, leads nothing, and nothing is deleted by it.

`make chaos ONLY=clock` does the same again and again, under load.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from angarium.batch import Batch, encode
from angarium.errors import PreconditionFailed
from angarium.ids import Offset
from angarium.testing.cluster.chaos.clocks import DAY_S, OddCluster
from angarium.testing.cluster.chaos.ground import TOPIC
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import Run

MINUTE_MICROS = 60_000_000


@pytest.mark.parametrize("ahead_s", [DAY_S, -DAY_S])
def test_a_leader_whose_clock_is_wrong_deletes_nothing_and_gives_its_place_away(
    run: Run, tmp_path: Path, ahead_s: float
) -> None:
    async def scenario() -> None:
        odd = OddCluster(tmp_path / "cluster")
        async with odd.cluster as cluster:
            await odd.create_topics()
            await odd.everybody_knows(None)
            wrong = await cluster.leader(TOPIC)
            contact = cluster.contact(wrong)
            await contact.store(TOPIC, 0, [b"before"])
            odd.set_clock(wrong, ahead_s)
            # At once, before anybody can have noticed: the time it goes by does not jump.
            ack = await contact.store(TOPIC, 0, [b"after"])
            assert abs((ack.append_time or 0) - time.time_ns() // 1_000) < MINUTE_MICROS
            await odd.everybody_knows(wrong)
            await odd.leaders_have_trimmed()
            assert set(await odd.starts()) == {0}

            leader = await cluster.leader(TOPIC)
            assert leader != wrong
            with pytest.raises(PreconditionFailed, match="clock"):
                await cluster.contact(leader).transfer(TOPIC, 0, wrong)
            found = await cluster.contact(leader).fetch(TOPIC, 0, Offset(0), fresh=True)
            batches = [Batch.parse(one, compacted=True) for one in found.batches]
            assert [one.values()[0] for one in batches] == [b"before", b"after"]
            assert f"{abs(ahead_s) / DAY_S:.1f} days" not in cluster.nodes[leader].last_words()
            said = "24.0 hours " + ("ahead of" if ahead_s > 0 else "behind")
            assert said in cluster.nodes[wrong].last_words()

            odd.set_clock(wrong, 0.0)
            await odd.everybody_knows(None)
            # It is the preferred leader, and becomes it again as soon as something happens.
            await eventually(
                lambda: _leads(odd, wrong), within_s=60.0, what=f"node {wrong} leads again"
            )

    async def _leads(odd: OddCluster, node: object) -> bool:
        leader = await odd.cluster.leader(TOPIC)
        await odd.cluster.contact(leader).publish(TOPIC, 0, [encode([b"again"])], timeout_s=30.0)
        return leader == node

    run(scenario())
