"""Every node comes back at another address, at once: nobody finds anybody where it was."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from angarium.batch import BatchBuilder
from angarium.errors import AngariumError
from angarium.ids import Offset
from angarium.testing.cluster.chaos.ground import TOPIC
from angarium.testing.cluster.chaos.line import Line
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from angarium.testing.cluster.chaos.ground import Ground
    from angarium.testing.cluster.cluster import ProcessCluster

READY_SECONDS_MAX: Final = 10.0
"""The promise: from the last start to a node that everybody hears and that is ready."""

PATIENCE_S: Final = 120.0


async def every_address_changed(ground: Ground) -> Line:
    """Restart all nodes on other ports, again and again; all must find each other."""
    line = Line("every address changed", "CONSISTENT", ground.times)
    async with ground.cluster() as cluster:
        await cluster.create_topic(TOPIC)
        for number in range(ground.times):
            await _publish(cluster, number)
            line.acknowledged += 1
            line.recovery.gaps_s.append(await moved(cluster))
        found = await eventually(lambda: _records(cluster), within_s=PATIENCE_S)
    if found != line.acknowledged:
        line.violations.append(f"{found} of {line.acknowledged} records are there")
    line.expect_within(READY_SECONDS_MAX)
    line.note = "until all are ready and hear each other"
    return line


async def moved(cluster: ProcessCluster) -> float:
    """Move every node; return how many seconds it took until all were ready."""
    await cluster.move_all()
    began = time.monotonic()

    async def ready() -> bool:
        said = await cluster.unready()
        if said and time.monotonic() - began > PATIENCE_S:
            raise TimeoutError("; ".join(said))
        return not said

    await eventually(ready, within_s=PATIENCE_S + 1, what="all nodes ready at new addresses")
    return time.monotonic() - began


async def _publish(cluster: ProcessCluster, number: int) -> None:
    builder = BatchBuilder()
    builder.add(value=b"%d" % number)
    batch = builder.build()

    async def stored() -> bool:
        contact = cluster.contact(await cluster.leader(TOPIC))
        (ack,) = await contact.publish(TOPIC, 0, [batch])
        return not ack.code

    await eventually(stored, within_s=PATIENCE_S, what="a record is stored")


async def _records(cluster: ProcessCluster) -> int:
    try:
        contact = cluster.contact(await cluster.leader(TOPIC))
        return (await contact.fetch(TOPIC, 0, Offset(0), fresh=True)).end_offset
    except AngariumError:
        return 0
