"""Requests that say the same in other bytes get the same decision, or a clear refusal.

Twins of every route are made from its declaration: its words, variables and query names, in every
way in which a client can encode them. A check that looks at bytes, beside a router that decodes
them, lets some of these through.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pytest
from tests.accounts import AccountsInMemory, account, authenticator
from tests.component.doors.http.opened_http import LOCALHOST, opened
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker
from tests.unit.doors.grpc.memory_groups import MemoryGroups

from angarium.api import TopicConfig
from angarium.doors.callers import Callers
from angarium.doors.http import HttpDoor
from angarium.doors.http.faces import Behind
from angarium_compat.bale.metrics import BaleMetrics, BaleMetricsDoor
from angarium_compat.hermes import HermesHttpDoor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from angarium.wire.http.router import Route

HEADS_S: Final = 10.0
"""How long the head of an answer may take."""


class Asker(NamedTuple):
    """What a request says beside its target."""

    name: str
    headers: tuple[str, ...]
    reads: bool = False
    """Whether it sends GET alone: what would change something is left to the others."""


BROWSER = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"
LINK = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document", BROWSER)
ASKERS = [
    Asker("a program", (), reads=True),
    Asker("a link elsewhere", LINK),
    Asker("a link elsewhere, on plain HTTP", (BROWSER,), reads=True),
    Asker("an image elsewhere", ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: image", BROWSER)),
    Asker("a page elsewhere", ("Origin: https://localhost", BROWSER)),
]


@dataclass(frozen=True)
class Target:
    """A path and a query, in parts that are not encoded."""

    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        said = "&".join(f"{name}={value}" for name, value in self.query)
        return f"/{'/'.join(self.segments)}{'?' if said else ''}{said}"


def sample(kind: object) -> str:
    """Return a value of a parameter that makes sense where any does."""
    shown = str(kind)
    return "0" if "int" in shown else "true" if "bool" in shown else "g"


def targets_of(route: Route) -> Iterator[Target]:
    """Yield the plain forms of a route: with what it needs, and with each choice in turn."""
    variables = {"topic": "orders", "group": "g"}
    fields = {one.name: one for one in msgspec.structs.fields(route.parameters)}
    segments, needed = [], []
    for part in route.path[1:].split("/"):
        name = part[1:-1]
        kind = fields.pop(name).type if part.startswith("{") else None
        segments.append(variables.get(name, sample(kind)) if kind is not None else part)
    for one in list(fields.values()):
        if one.required or one.name == "topic":
            needed.append((one.name, variables.get(one.name, sample(one.type))))
            del fields[one.name]
    yield Target(tuple(segments), tuple(needed))
    for one in fields.values():
        yield Target(tuple(segments), (*needed, (one.name, sample(one.type))))


def quoted(text: str, *, low: bool = False) -> str:
    return "".join(f"%{ord(one):02{'x' if low else 'X'}}" for one in text)


def same(target: Target) -> Iterator[str]:
    """Yield other ways to say it that mean the same."""
    for low in (False, True):
        path = tuple(quoted(one, low=low) for one in target.segments)
        query = tuple((quoted(one, low=low), quoted(it, low=low)) for one, it in target.query)
        yield str(Target(path, query))
        yield str(Target(path, target.query))
        yield str(Target(target.segments, query))
    for at, (name, value) in enumerate(target.query):
        first = quoted(name[0], low=True) + name[1:]
        query = (*target.query[:at], (first, value), *target.query[at + 1 :])
        yield str(Target(target.segments, query))
    if target.query:
        yield str(target).replace("?", "?&", 1) + "&"


def nearly(target: Target) -> Iterator[str]:
    """Yield what another program in between, or a careless check, may take for the same."""
    plain, path = str(target), "/".join(target.segments)
    yield f"http://localhost{plain}"
    yield f"https://localhost{plain}"
    yield f"{plain}#"
    yield f"{plain}#?group=g"
    yield f"/{plain}"
    yield f"/.{plain}"
    yield f"/%2e%2e{plain}"
    yield f"/{quoted(path)}"
    yield plain.replace("/", "\\")
    yield f"/{';'.join((path, 'a=b'))}"
    yield f"/{'/'.join(quoted(one).replace('%', '%25') for one in target.segments)}"
    yield f"/{path.upper()}"
    yield f"/{path}/"
    yield f"/{path}%00"
    for at, (name, value) in enumerate(target.query):
        before, after = target.query[:at], target.query[at + 1 :]
        for odd in (
            (quoted(name).replace("%", "%25"), value),
            (name.upper(), value),
            (f"{name}%00", value),
            (f"+{name}", value),
            (f"{name}[]", value),
            (f"x=y;{name}", value),
        ):
            yield str(Target(target.segments, (*before, odd, *after)))
        twice = ((name, value), (quoted(name), value))
        yield str(Target(target.segments, (*before, *twice, *after)))


async def status_of(port: int, method: str, target: str, headers: tuple[str, ...]) -> int:
    """Return the status of the answer, whatever goes on behind its head."""
    reader, writer = await asyncio.open_connection(LOCALHOST, port)
    try:
        said = [f"{method} {target} HTTP/1.1", "Host: localhost", *headers, "", ""]
        writer.write("\r\n".join(said).encode("latin-1"))
        async with asyncio.timeout(HEADS_S):
            return int((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
    finally:
        writer.close()


async def check(port: int, routes: tuple[Route, ...], asker: Asker) -> int:
    """Ask for every twin of every route; return how many there were."""
    found = 0
    for route in routes:
        if asker.reads and route.method != "GET":
            continue
        for target in targets_of(route):
            plain = await status_of(port, route.method, str(target), asker.headers)
            twins = [(one, {plain, 400}) for one in same(target)]
            # These are other requests: none of them is admitted where the plain one is not.
            others = {plain, 400, 401, 403, 404, 405, 426}
            if plain not in {401, 403}:
                others.add(200)
            twins += [(one, others) for one in nearly(target)]
            for twin, decisions in twins:
                status = await status_of(port, route.method, twin, asker.headers)
                assert status in decisions, (asker.name, route.method, twin, status, plain)
            cased = tuple(one.swapcase().partition(":")[0] + ":\t" for one in asker.headers)
            values = [one.partition(": ")[2] + " \t" for one in asker.headers]
            said = tuple(name + value for name, value in zip(cased, values, strict=True))
            assert await status_of(port, route.method, str(target), said) == plain, asker.name
            found += len(twins) + 1
    return found


@asynccontextmanager
async def doors() -> AsyncIterator[list[tuple[int, tuple[Route, ...]]]]:
    """Open every listener that speaks HTTP."""
    async with opened(groups=MemoryGroups()) as door:
        broker: Any = door.broker
        broker.subscribe_passing = lambda *_: broker.subscribe([])
        pages = HermesHttpDoor(broker, broker, host=LOCALHOST, port=0)
        metrics = BaleMetricsDoor(BaleMetrics(), host=LOCALHOST, ports=[0])
        try:
            yield [
                (door.port, door.door._guests.router.routes),
                (await pages.start(), pages._router.routes),
                ((await metrics.start())[0], metrics._router.routes),
            ]
        finally:
            await pages.stop(grace_s=0)
            await metrics.stop(grace_s=0)


@pytest.mark.parametrize("asker", ASKERS, ids=lambda one: one.name)
def test_encoded_twins_get_the_decision_of_the_plain_form(asker: Asker) -> None:
    async def story() -> None:
        async with doors() as found:
            counts = [await check(port, routes, asker) for port, routes in found]
            assert min(counts) >= 20
            assert sum(counts) >= 1_000

    run(story())


def test_encoded_twins_need_the_same_proof() -> None:
    async def story() -> None:
        accounts = authenticator(AccountsInMemory(account("alice", "right")))
        broker: Any = MemoryBroker()
        await broker.create_topic("orders", partitions=4, config=TopicConfig())
        door = HttpDoor(Callers(accounts, lambda _: Behind(broker, broker)), host=LOCALHOST, port=0)
        port = await door.start()
        try:
            asker = Asker("a program without a proof", ())
            assert await check(port, door._guests.router.routes, asker) >= 1_000
            for target in ("/healthz", "/%68ealthz", "/v1/openapi%2ejson"):
                assert await status_of(port, "GET", target, ()) == 200, target
            for target in ("/v1/topics", "/v1/%74opics", "/healthz/%2e%2e/v1/topics"):
                assert await status_of(port, "GET", target, ()) == 401, target
        finally:
            await door.stop(grace_s=0)

    run(story())


@pytest.mark.parametrize("name", ["group", "%67roup", "%67%72%6f%75%70", "grou%70"])
@pytest.mark.parametrize("headers", [LINK, (BROWSER,)], ids=["told", "plain"])
def test_a_link_elsewhere_takes_nothing_from_a_group(name: str, headers: tuple[str, ...]) -> None:
    async def story() -> None:
        async with opened(groups=MemoryGroups()) as door:
            target = f"/v1/topics/orders/stream?{name}=workers"
            assert await status_of(door.port, "GET", target, headers) == 403
            # A program gets as far as the groups, of which there are none.
            assert await status_of(door.port, "GET", target, ()) == 404
            # And a link may lead to what takes nothing.
            assert await status_of(door.port, "GET", "/v1/topics", headers) == 200

    run(story())


@pytest.mark.parametrize(
    "name",
    ["Host", "Authorization", "Origin", "Sec-Fetch-Site", "User-Agent", "Content-Type"],
)
def test_a_header_that_decides_comes_once(name: str) -> None:
    async def story() -> None:
        async with opened() as door:
            for second in ("a", "b"):
                headers = (f"{name}: a", f"{name.upper()}: {second}")
                assert await status_of(door.port, "GET", "/v1/topics", headers) == 400

    run(story())


def test_every_get_that_takes_part_in_a_group_says_that_it_changes_something() -> None:
    async def story() -> None:
        async with doors() as found:
            seen = 0
            for _, routes in found:
                for route in routes:
                    fields = {one.name for one in msgspec.structs.fields(route.parameters)}
                    takes_part = "group" in fields and "{group}" not in route.path
                    if route.method == "GET" and takes_part:
                        seen += 1
                        assert route.changes is not None, route.path
                        values = {"topic": "orders", "group": "g"}
                        assert route.changes(msgspec.convert(values, route.parameters))
            assert seen == 2

    run(story())
