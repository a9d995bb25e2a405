"""The rounds of `benchmarks.peers` count what came back, and say what is missing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.peers import known
from benchmarks.peers.figures import Gathered
from benchmarks.peers.port import NotInstalled
from benchmarks.peers.rates import table
from benchmarks.peers.servers import Servers, program
from benchmarks.peers.shapes import Delays, Shapes
from tests.on_a_loop import on_a_loop

from angarium.bench.resources import usage

if TYPE_CHECKING:
    from collections.abc import Sequence


class InMemory:
    """A peer that keeps records in a list; `mischief` may change what readers are shown."""

    key = "memory"
    promise = "it is in a list"

    def __init__(self, mischief: str = "") -> None:
        self.topics: dict[str, list[bytes]] = {}
        self.mischief = mischief

    async def make_topic(self, topic: str) -> None:
        self.topics[topic] = []

    async def drop_topic(self, topic: str) -> None:
        del self.topics[topic]

    async def client(self, *, is_alone: bool) -> InMemory:
        return self

    async def publish(self, topic: str, value: bytes) -> None:
        await self.publish_all(topic, [value])

    async def publish_all(self, topic: str, values: Sequence[bytes]) -> None:
        await asyncio.sleep(0)
        self.topics[topic] += values

    async def reader(self, topics: Sequence[str]) -> InMemoryReader:
        return InMemoryReader(self, topics)

    async def close(self) -> None:
        pass


class InMemoryReader:
    def __init__(self, peer: InMemory, topics: Sequence[str]) -> None:
        self._peer = peer
        self._read = dict.fromkeys(topics, 0)

    async def some(self) -> list[bytes]:
        found: list[bytes] = []
        while not found:
            await asyncio.sleep(0)
            for topic, read in self._read.items():
                found += self._peer.topics[topic][read:]
                self._read[topic] = len(self._peer.topics[topic])
        if self._peer.mischief == "twice":
            found[0] = found[-1]  # one is missing, another came twice
        if self._peer.mischief == "strange":
            found[0] = bytes(7) + b"\xff" + found[0][8:]
        return found

    async def close(self) -> None:
        pass


@on_a_loop
async def test_every_load_gives_its_figure() -> None:
    load = Shapes(InMemory(), seconds=0.02)
    published = await load.batched()
    assert published.acknowledged_per_s > 0
    assert published.read_per_s > 0
    assert await load.awaiting(60, connections=1) > 0
    assert await load.awaiting(60, connections=60) > 0
    assert await load.one_by_one_p50_ms() > 0
    delays = await load.end_to_end(topics=4, rate=1_000)
    assert 0 < delays.p50_ms <= delays.p99_ms
    delays = await load.end_to_end(topics=1, rate=1_000, workers=4)
    assert 0 < delays.p50_ms <= delays.p99_ms


@pytest.mark.parametrize(
    ("mischief", "said"), [("twice", "1 are missing, 0 were"), ("strange", "1 were never sent")]
)
@on_a_loop
async def test_a_peer_that_does_not_give_back_what_it_took_ends_the_run(
    mischief: str, said: str
) -> None:
    with pytest.raises(SystemExit, match=said):
        await Shapes(InMemory(mischief), seconds=0.02).awaiting(3, connections=1)


def test_a_ratio_is_between_rounds_that_alternated() -> None:
    gathered = Gathered()
    gathered.add([100.0, 120.0, 80.0], {"nats": [50.0, 50.0, 10.0]})
    gathered.add([10.0, 10.0, 10.0], {"kafka": [20.0]})  # a slow minute, for both
    figure = gathered.figure("consistent_batched")
    assert (figure.peer_or_baseline, figure.ratio) == (50.0, 2.0)
    assert figure.peers["kafka"].ratio == 0.5
    assert figure.ours == 45.0


def test_rates_are_reached_by_p99_alone_and_beside_the_other() -> None:
    ours = [Delays(1.0, 9.0), Delays(2.0, 30.0), Delays(3.0, 10.0)]
    found = {
        (1, 100): {"nats": [Delays(4.0, 40.0)], "angarium": ours},
        (20, 100): {"nats": [Delays(4.0, 16.0)], "angarium": ours},
    }
    assert table(found).splitlines()[2:] == [
        "| 1 | 100 | 2.0, 10.0 (9.0 to 30.0) | nats | 4.0, 40.0 (40.0 to 40.0) | 0.50 | 0.25"
        " | yes |",
        "| 20 | 100 | 2.0, 10.0 (9.0 to 30.0) | nats | 4.0, 16.0 (16.0 to 16.0) | 0.50 | 0.62"
        " | **no** |",
    ]


def test_a_peer_that_is_not_installed_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(NotInstalled, match="apt-get install nobody"):
        program("a-server-that-nobody-has", "apt-get install nobody")
    monkeypatch.setitem(known.KNOWN, "nobody", ("nobody", "Nobody"))
    with pytest.raises(NotInstalled, match="peers"):
        known.peer_named("nobody", tmp_path)


@on_a_loop
async def test_a_server_ends_with_what_it_started(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    servers.launch("script", ["sh", "-c", "sleep 300 & echo $! > child; wait"])

    async def has_started() -> bool:
        child = tmp_path / "child"
        return child.exists() and child.read_text(encoding="ascii").strip().isdigit()

    await servers.until(has_started)
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    assert usage(servers.watched[0]) is not None
    servers.stop()
    for _ in range(1_000):  # whoever adopted it buries it when it can
        if _state(child) == "Z":
            return
        await asyncio.sleep(0.01)
    pytest.fail("the script's child is still there")


@on_a_loop
async def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    servers.launch("broken", ["sh", "-c", "echo the disk is full; exit 3"])

    async def never() -> bool:
        return False

    with pytest.raises(SystemExit, match="broken: the disk is full"):
        await servers.until(never)
    servers.stop()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
