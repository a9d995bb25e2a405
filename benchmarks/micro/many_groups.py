"""A node with ten thousand groups and a hundred thousand records pending: flat, and never held up.

    python -m benchmarks.micro.many_groups [--format json] [--quick]

A whole node in this process: log, Raft, machine, service. The first curve is the processor time of
one settlement, from the consumer's agent to the committed answer, beside more and more groups; the
second beside more and more records on loan. Then the state is saved, as the node does it, while a
consumer goes on settling: the longest time for which the event loop did nothing else is told.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from angarium.api import ConsumeRequest, GroupConfig, PublishRequest, Settlement, TopicConfig, Verb
from angarium.batch import encode
from angarium.errors import NotLeader
from angarium.ids import Index, Micros, Offset
from angarium.kinds import GroupKind
from angarium.machine import PartitionMachine
from angarium.machine.changes import Change, GroupSettings, Open, Retry
from angarium.testing.broker import SWITCH_INTERVAL_S, in_process_broker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.lending.led_partition import LedPartition
    from angarium.service.broker import Service
    from angarium.service.groups.consumption import LocalConsumption

TOPIC: Final = "work"
PULSE_S: Final = 0.001
HOUR_MICROS: Final = 3_600_000_000
AT_ONCE: Final = 1_000
PARTS: Final = 5


class Pulse:
    """Looks every millisecond how late it is: the loop did something else for that long."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + PULSE_S
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        self.longest_s = max(self.longest_s, now - self._due)
        self._due = now + PULSE_S
        self._timer = self._loop.call_at(self._due, self._look)

    def stop(self) -> float:
        """End, and return the longest delay in ms."""
        self._timer.cancel()
        return self.longest_s * 1_000


async def filled(service: Service, records: int) -> LedPartition:
    """Create the topic with so many records; return it as its leader has it."""
    await service.create_topic(TOPIC, partitions=1, config=TopicConfig())
    for start in range(0, records, 10_000):
        batch = encode([b"%d" % one for one in range(start, min(start + 10_000, records))])
        request = PublishRequest(topic=TOPIC, partition=0, batches=(batch,))
        while True:
            try:
                await service.publish(request)
                break
            except NotLeader:
                await asyncio.sleep(0.01)
    return service.groups.host.partition(TOPIC, 0)


async def changed(led: LedPartition, changes: Iterable[Change]) -> None:
    """Have changes committed, many at a time."""
    waiting: list[asyncio.Future[None]] = []
    loop = asyncio.get_running_loop()
    for change in changes:
        done: asyncio.Future[None] = loop.create_future()
        led.changes.submit(change, lambda _, done=done: done.set_result(None))  # type: ignore[misc]
        waiting.append(done)
        if len(waiting) == AT_ONCE:
            await asyncio.gather(*waiting)
            waiting.clear()
    await asyncio.gather(*waiting)


async def lent(service: Service, group: str, records: int) -> LocalConsumption:
    """Return a consumer that has so many records on loan."""
    config = GroupConfig(ack_timeout_ms=3_600_000)
    request = ConsumeRequest(group=group, topics=(TOPIC,), credit=records, config=config)
    consumption = await service.groups.consume(request)
    found = 0
    async for handed in consumption:
        found += sum(handed.ranges[1::2]) - sum(handed.ranges[::2])
        if found >= records:
            return consumption
    raise AssertionError("a consumption does not end by itself")


async def settled(consumption: LocalConsumption, offsets: range) -> float:
    """Acknowledge records one by one, each when the last is committed: µs of processor time.

    The best of several parts: whatever else the machine does only adds.
    """
    gc.collect()
    gc.disable()
    parts = []
    for at in range(PARTS):
        began, some = time.process_time(), offsets[at::PARTS]
        for offset in some:
            ack = Settlement(TOPIC, 0, Verb.ACK, (offset, offset + 1))
            (answer,) = await consumption.settle([ack])
            assert not answer.code, answer
        parts.append((time.process_time() - began) / len(some))
    gc.enable()
    return min(parts) * 1e6


async def saved(led: LedPartition) -> tuple[float, float]:
    """Save the state as the node does; return how long it took and the longest delay, in ms."""
    began, pulse = time.perf_counter(), Pulse()
    for work in led.replica.take_snapshot():
        await asyncio.to_thread(work)
    return (time.perf_counter() - began) * 1_000, pulse.stop()


async def measured(folder: Path, *, scale: int) -> dict[str, float]:
    """Return every figure by its name."""
    found: dict[str, float] = {}
    async with in_process_broker(folder) as broker:
        service = broker.services[0]
        assert service is not None
        led = await filled(service, 400_000 // scale)
        rounds = 1_000 // scale
        made = 0
        for groups in (10, 100, 1_000, 10_000):
            groups //= scale  # noqa: PLW2901
            opening = (
                Open(f"g{number}", GroupKind.QUEUE, Offset(0), GroupSettings())
                for number in range(made, groups)
            )
            await changed(led, opening)
            made = max(made, groups)
            consumption = await lent(service, f"of-{groups}", 2 * rounds)
            micros = await settled(consumption, range(rounds, 2 * rounds))
            found[f"one settlement, {groups:,} groups, µs"] = micros
            await consumption.close()
        for pending in (100, 1_000, 10_000, 100_000):
            pending = max(pending // scale, 10)  # noqa: PLW2901
            consumption = await lent(service, f"lent-{pending}", pending)
            few = min(rounds, pending // 2)
            micros = await settled(consumption, range(pending - few, pending))
            found[f"one settlement, {pending:,} on loan, µs"] = micros
            await consumption.close()
        consumption = await lent(service, "scattered", 100_000 // scale)
        # Everything at once: many groups, one with very many records on loan, half of those
        # acknowledged in a scattered way, and one in which very many wait for another attempt.
        flat = tuple(one for at in range(0, 16_000 // scale, 2) for one in (at, at + 1))
        await consumption.settle([Settlement(TOPIC, 0, Verb.ACK, flat)])
        await changed(led, [Open("retries", GroupKind.QUEUE, Offset(0), GroupSettings())])
        group = led.replica.partition.machine.groups.by_name["retries"]
        late = Micros(led.around.now() + HOUR_MICROS)
        await changed(
            led,
            (
                Retry("retries", Index(group.generation), Offset(one), 1, late, "later")
                for one in range(100_000 // scale)
            ),
        )
        settling = asyncio.create_task(settle_on(consumption, range(20_001 // scale, 10**9, 2)))
        took, longest = await saved(led)
        settling.cancel()
        found["saving all of it, ms"] = took
        state, began = led.replica.partition.machine.snapshot(), time.perf_counter()
        PartitionMachine(led.replica.partition.machine.limits).restore(state)
        found["reading it back, ms"] = (time.perf_counter() - began) * 1_000
        found["its size, KB"] = len(state) / 1_000
        found["longest delay of the event loop meanwhile, ms"] = longest
    return found


async def settle_on(consumption: LocalConsumption, offsets: Iterable[int]) -> None:
    """Acknowledge record after record, until cancelled."""
    for offset in offsets:
        await consumption.settle([Settlement(TOPIC, 0, Verb.ACK, (offset, offset + 1))])


def main() -> None:
    """Measure, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with (
        tempfile.TemporaryDirectory(prefix="many-groups-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        found = runner.run(measured(Path(folder), scale=10 if options.quick else 1))
    if options.format == "json":
        print(json.dumps(found, indent=2))
        return
    for name, figure in found.items():
        print(f"{name:<56}{figure:>12,.1f}")


if __name__ == "__main__":
    main()
